"""Every setting: its name, its default, and what it does.  The README's table is checked against this page."""

import fcntl
import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import psycopg2
from flask import Flask, current_app
from limits import parse_many
from psycopg2.extensions import parse_dsn
from redis.connection import parse_url
from werkzeug.local import LocalProxy

PREFIX = "LINKMGR_"
_MMDB_MARK = b"\xab\xcd\xefMaxMind.com"  # begins the last part of an .mmdb file, at most 128 KiB
_SHORTEST_KEY = 32  # characters
_MAX_REQUESTS, _MAX_WINDOW = 10**9, 86400  # and seconds, of a rate limit


class UnusableSetting(SystemExit):
    """Stops the start with one sentence."""


# --- what a setting's text must be, else ValueError


def _text(text: str) -> str:
    return text


def _one_of(*choices: str) -> Callable[[str], str]:
    return lambda text: choices[choices.index(text)]


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (re.fullmatch(r"[0-9]{1,9}", text) and least <= int(text) <= most):
            raise ValueError
        return int(text)

    return parse


def _address(text: str) -> str:
    found = re.fullmatch(r"(https?://(?:[A-Za-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?)/?", text)
    if not found or urlsplit(text).port == 0:  # above 65535 urlsplit itself refuses it
        raise ValueError
    return found[1]


def _database(text: str) -> str:
    if not text.startswith(("postgresql://", "postgres://")):
        raise ValueError
    try:
        parse_dsn(text)
    except psycopg2.ProgrammingError:
        raise ValueError from None
    return text


def _redis(text: str) -> str:
    if not text.startswith("redis"):
        raise ValueError
    parse_url(text.replace("redis+unix://", "unix://"))  # type: ignore[no-untyped-call]
    return text


def _rate(text: str) -> str:
    [rate] = parse_many(text)
    if not 0 < rate.amount <= _MAX_REQUESTS or rate.get_expiry() > _MAX_WINDOW:
        raise ValueError
    return text


def _secret_key(text: str) -> str:
    if len(text) < _SHORTEST_KEY:
        raise ValueError
    return text


def _long_secret(text: str) -> str:
    if not re.fullmatch("[A-Za-z0-9._~+/=-]{16,}", text):
        raise ValueError
    return text


def _mmdb(text: str) -> str:
    try:
        content = Path(text).read_bytes()
    except OSError:
        raise ValueError from None
    if _MMDB_MARK not in content[-128 * 1024 :]:
        raise ValueError
    return text


def _setting(default: Any, doc: str, parse: Callable[[str], Any] = _text, must_be: str = "") -> Any:
    return field(default=default, metadata={"doc": doc, "parse": parse, "must_be": must_be})


@dataclass(frozen=True)
class Settings:
    database_url: str = _setting(
        "",
        "Where PostgreSQL is, as a libpq URL. Unset: a private PostgreSQL in the data folder.",
        _database,
        "a URL such as postgresql://user@host/name",
    )
    replica_url: str = _setting(
        "",
        "A streaming replica that lists and statistics are read from while it is close behind. Unset: there is none.",
        _database,
        "a URL such as postgresql://user@host/name",
    )
    data_dir: str = _setting(
        "var", "The folder of the private PostgreSQL, the secret, the logos and the pictures that were drawn."
    )
    base_url: str = _setting(
        "",
        "The URL of the service, which all its links begin with. Other hosts are not served. "
        "Unset: `http://127.0.0.1:$PORT`.",
        _address,
        "an address such as https://go.example.org, without a path",
    )
    secret_key: str = _setting(
        "",
        "Encrypts the API keys and signs the cookies, in 32 characters or more. Unset: made once, in the data folder.",
        _secret_key,
        "at least 32 characters, such as 'openssl rand -hex 32' prints; a shorter one that was in use "
        f"belongs in {PREFIX}SECRET_KEY_FALLBACKS",
    )
    secret_key_fallbacks: str = _setting("", "Earlier secrets that are still honoured, separated by commas.")
    rate_limit: str = _setting(
        "30 per minute",
        "Requests to the API, for each user and each failing address.",
        _rate,
        "a rate such as '30 per minute', over a day at most",
    )
    rate_limit_storage: str = _setting(
        "", "A `redis://` URL where requests are counted. Unset: in PostgreSQL.", _redis, "a redis:// URL"
    )
    domain_check: str = _setting(
        "http",
        "`http`: a branded domain must answer a challenge. `off`: it is taken at its word.",
        _one_of("http", "off"),
        "'http' or 'off'",
    )
    demo: str = _setting("1", "`0`: `make dev` makes no user `demo`.", _one_of("0", "1"), "0 or 1")
    geoip_database: str = _setting(
        "", "An `.mmdb` file that tells the country of a visitor.", _mmdb, "an .mmdb file that can be read"
    )
    key_lifetime_days: int | None = _setting(
        None, "Days after which an API key expires. Unset: never.", _whole(1, 36500), "a number of days, 1 to 36500"
    )
    trusted_proxies: int = _setting(
        0,
        "How many proxies in front of the service set `X-Forwarded-For`: 1 behind nginx.",
        _whole(0, 10),
        "a number from 0 to 10",
    )
    serve_loopback: str = _setting(
        "0",
        "`1`: serve loopback names such as `localhost` too, as `make dev` does. Always done while `LINKMGR_BASE_URL` "
        "has such a name.",
        _one_of("0", "1"),
        "0 or 1",
    )
    metrics_token: str = _setting(
        "",
        "Opens `/metrics` to who sends it as `Authorization: Bearer TOKEN`. Unset: there is none.",
        _long_secret,
        "at least 16 characters out of A-Z, a-z, 0-9 and -._~+/=",
    )
    visit_spool_mb: int = _setting(
        64,
        "Space in the data folder, in MiB, for visits that each process has not stored yet, as while the database is "
        "unavailable. Visits beyond it are lost.",
        _whole(1, 100_000),
        "a number of MiB, 1 to 100000",
    )
    prepare: str = _setting(
        "1",
        "`0`: nothing is kept in a session, such as prepared statements: for pgbouncer in transaction mode.",
        _one_of("0", "1"),
        "0 or 1",
    )

    @property
    def folder(self) -> Path:
        return Path(current_app.root_path).parent / self.data_dir

    @property
    def host(self) -> str:
        return (urlsplit(self.base_url).hostname or "").removesuffix(".")


def _parsed(given: dict[str, str]) -> Settings:
    values = {}
    for each in fields(Settings):
        if text := given.get(each.name):
            try:
                values[each.name] = each.metadata["parse"](text)
            except ValueError:
                # Without the value, which may hold a password.
                raise UnusableSetting(f"{PREFIX}{each.name.upper()} must be {each.metadata['must_be']}.") from None
    return Settings(**values)


def _kept_secret(folder: Path) -> str:
    """The secret in the data folder, made at the first start and readable by nobody else."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(folder / "secret_key", os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # of several first starts at once one makes it
            secret = file.read().strip()
            if not secret:
                secret = secrets.token_urlsafe(32)
                file.write(secret)
                file.flush()
                os.fsync(file.fileno())
            return secret
    except OSError as error:
        raise UnusableSetting(
            f"{PREFIX}DATA_DIR must be a folder that this user can write to: {error.filename}: {error.strerror}."
        ) from None


def init_app(app: Flask, **overrides: str) -> None:
    """Reads the environment, then `overrides`; an unusable value stops the start with a sentence."""
    names = {each.name for each in fields(Settings)}
    for name in os.environ:
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in {known.upper() for known in names}:
            raise UnusableSetting(f"{name} is not a setting; the README lists all of them.")
    app.config.from_prefixed_env(PREFIX.rstrip("_"), loads=str)
    given = {name: app.config[name.upper()] for name in names if app.config.get(name.upper())}
    default = {"base_url": f"http://127.0.0.1:{os.environ.get('PORT', '5000')}"}
    settings = _parsed(default | given | overrides)
    app.config["SECRET_KEY"] = settings.secret_key or _kept_secret(Path(app.root_path).parent / settings.data_dir)
    app.config["SECRET_KEY_FALLBACKS"] = settings.secret_key_fallbacks.replace(",", " ").split()
    app.extensions["linkmgr_settings"] = settings


# `current_app` looks the application up for each of its attributes, which takes longer than most of what they do.
this_app: Callable[[], Flask] = cast("LocalProxy[Flask]", current_app)._get_current_object


def settings() -> Settings:
    found: Settings = this_app().extensions["linkmgr_settings"]
    return found
