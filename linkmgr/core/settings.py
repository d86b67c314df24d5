"""All settings: name, default and parser. The README describes them; a test compares its table with
them."""

import fcntl
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields
from email.headerregistry import Address
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from flask import Flask, current_app
from limits import parse
from werkzeug.local import LocalProxy

from linkmgr.core import setting_types

RELEASE = "1.0.0"
PREFIX = "LINKMGR_"
# Also read from a file, such as LINKMGR_SECRET_KEY_FILE: other programs see the environment of a
# process.
SECRETS = (
    "database_url",
    "replica_url",
    "secret_key",
    "secret_key_fallbacks",
    "rate_limit_storage",
    "metrics_token",
    "mail_url",
    "oidc_client_secret",
)
_MAX_PORT = 65535


class InvalidSetting(SystemExit):
    """Stops the start with one sentence."""


def _setting(default: Any, parse: Callable[[str], Any], must_be: str) -> Any:
    return field(default=default, metadata={"parse": parse, "must_be": must_be})


def _switch(default: bool) -> Any:
    return _setting(default, setting_types.switch, "0 or 1")


def _database() -> Any:
    return _setting("", setting_types.database, "a URL such as postgresql://user@host/name")


def _rate(default: str) -> Any:
    return _setting(
        default, setting_types.rate, f"a rate such as '{default}', with a window of at most one day"
    )


@dataclass(frozen=True)
class Settings:
    database_url: str = _database()
    replica_url: str = _database()
    data_dir: str = "var"
    base_url: str = _setting(
        "", setting_types.base_url, "a URL such as https://go.example.org, without a path"
    )
    secret_key: str = _setting(
        "",
        setting_types.secret_key,
        "at least 32 characters, for example the output of 'openssl rand -hex 32'; move a shorter "
        f"key that is in use to {PREFIX}SECRET_KEY_FALLBACKS",
    )
    secret_key_fallbacks: str = ""
    rate_limit: str = _rate("30 per minute")
    page_rate_limit: str = _rate("300 per minute")
    rate_limit_storage: str = _setting("", setting_types.redis, "a redis:// URL")
    bulk_rows: str = _rate("5000 per minute")
    domain_check: str = _setting("http", setting_types.matching("http|off"), "'http' or 'off'")
    demo: bool = _switch(True)
    geoip_database: str = _setting("", setting_types.mmdb, "a readable .mmdb file")
    visitor_salt: str = _setting(
        "monthly", setting_types.matching("lasting|monthly|daily"), "lasting, monthly or daily"
    )
    respect_dnt: bool = _switch(False)
    click_parameter: str = _setting(
        "lm_click", setting_types.matching("[A-Za-z_][A-Za-z0-9_]{0,29}"), "a name of letters, digits and _"
    )
    key_lifetime_days: int | None = _setting(
        None, setting_types.integer(1, 36500), "a number of days from 1 to 36500"
    )
    trusted_proxies: int = _setting(0, setting_types.integer(0, 10), "a number from 0 to 10")
    serve_loopback: bool = _switch(False)
    log_addresses: str = _setting("0", setting_types.matching("0|network|full"), "0, network or full")
    metrics_token: str = _setting(
        "", setting_types.bearer_token, "at least 16 characters from A-Z, a-z, 0-9 and -._~+/="
    )
    visit_spool_mb: int = _setting(64, setting_types.integer(1, 100_000), "a number of MiB from 1 to 100000")
    private_networks: tuple[IPv4Network | IPv6Network, ...] = _setting(
        (), setting_types.networks, "networks such as '10.0.0.0/8, fd00::/8'"
    )
    private_networks_for_all: bool = _switch(False)
    link_check: int = _setting(7, setting_types.integer(0, 365), "a number of days from 0 to 365")
    reports: bool = _switch(True)
    blocklist_url: str = _setting(
        "", setting_types.matching(r"https?://[^\s]+"), "an http:// or https:// URL"
    )
    mail_url: setting_types.MailServer | None = _setting(  # noqa: RUF009
        None,
        setting_types.mail_server,
        "a URL such as smtp://user:password@mail.example.org:587 or smtps://user:password@mail.example.org",
    )
    mail_from: Address | None = _setting(  # noqa: RUF009
        None,
        setting_types.mail_address,
        "an e-mail address such as links@example.org, or with a name 'Links <links@example.org>'",
    )
    admin_factor: bool = _switch(False)
    prepare: bool = _switch(True)
    features: tuple[str, ...] = _setting(("all",), setting_types.words, "names, separated by commas")
    aliases: tuple[str, ...] = _setting(
        (), setting_types.options("ignorecase", "widealiases"), "'ignorecase', 'widealiases' or both"
    )

    passwords: bool = _switch(True)
    new_accounts: tuple[str, ...] = _setting(
        ("off",), setting_types.accounts, "off, on, or domains such as 'example.org, example.com'"
    )
    oidc_issuer: str = _setting(
        "",
        setting_types.issuer,
        "an https:// URL, or an http:// URL of this machine such as http://127.0.0.1:3000",
    )
    oidc_client_id: str = ""
    oidc_client_secret: str = ""
    oidc_name: str = "single sign-on"
    oidc_scopes: tuple[str, ...] = _setting(
        ("openid", "email", "profile"),
        setting_types.scopes,
        "scopes with openid, such as 'openid email profile'",
    )
    oidc_match_email: bool = _switch(False)
    oidc_groups: tuple[tuple[str, str], ...] = _setting(
        (), setting_types.groups, "groups such as 'staff=plan:Pro, ops=admin'"
    )
    oidc_groups_claim: str = "groups"
    remote_user_header: str = _setting(
        "", setting_types.matching("[A-Za-z][A-Za-z0-9-]*"), "the name of a header such as Remote-User"
    )
    remote_user_proxies: tuple[IPv4Network | IPv6Network, ...] = _setting(
        (), setting_types.proxies, "networks of your proxies, such as '10.0.0.5/32', and not all addresses"
    )

    name: str = "linkmgr"
    logo: str = ""
    accent: str = _setting(
        "", setting_types.colors, "one or two colors such as '#4355d9' or '#4355d9 #9aacff'"
    )
    footer: str = ""

    @property
    def folder(self) -> Path:
        return Path(current_app.root_path).parent / self.data_dir

    @property
    def is_https(self) -> bool:
        return self.base_url.startswith("https://")

    @cached_property
    def host(self) -> str:
        return (urlsplit(self.base_url).hostname or "").removesuffix(".")

    @cached_property
    def of_callers(self) -> dict[str, Any]:
        """The parameters of the statements that identify callers. The windows, in seconds, are None
        if Redis counts. The rate of a plan is per minute."""
        in_redis = bool(self.rate_limit_storage)
        return {
            "lifetime": self.key_lifetime_days,
            "rate": self.rate_limit,
            "window": None if in_redis else parse(self.rate_limit).get_expiry(),
            "plan_window": None if in_redis else 60,
        }


VARIABLES = {setting.name.upper() for setting in fields(Settings)}
VARIABLES |= {f"{name.upper()}_FILE" for name in SECRETS}


def port() -> int:
    text = os.environ.get("PORT", "5000")
    try:
        return setting_types.integer(1, _MAX_PORT)(text)
    except ValueError:
        raise InvalidSetting(f"PORT must be a number from 1 to {_MAX_PORT}; it is {text!r}.") from None


def _parse(texts: dict[str, str]) -> Settings:
    values = {}
    for setting in fields(Settings):
        if text := texts.get(setting.name):
            try:
                values[setting.name] = setting.metadata.get("parse", str)(text)
            except ValueError:
                # The message omits the value, which may contain a password.
                name = PREFIX + setting.name.upper()
                raise InvalidSetting(f"{name} must be {setting.metadata['must_be']}.") from None
    return Settings(**values)


def _stored_secret(folder: Path) -> str:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(folder / "secret_key", os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # several processes may start at once
            secret = file.read().strip()
            if not secret:
                secret = secrets.token_urlsafe(32)
                file.write(secret)
                file.flush()
                os.fsync(file.fileno())
            return secret
    except UnicodeDecodeError:
        raise InvalidSetting(
            f"{folder / 'secret_key'} is not a text file. Restore the file, or set {PREFIX}SECRET_KEY."
        ) from None
    except OSError as error:
        raise InvalidSetting(
            f"{PREFIX}DATA_DIR must be a folder that this user can write to: {error.filename}: "
            f"{error.strerror}."
        ) from None


def _read_secret(variable: str) -> str:
    if os.environ.get(variable):
        raise InvalidSetting(f"{variable} and {variable}_FILE are both set: remove one.")
    with suppress(OSError, UnicodeDecodeError):
        if text := Path(os.environ[f"{variable}_FILE"]).read_text().strip():
            return text
    raise InvalidSetting(f"{variable}_FILE must name a readable file with the value of {variable}.")


def init_app(app: Flask, **overrides: str) -> None:
    for variable in os.environ:
        if variable.startswith(PREFIX) and variable.removeprefix(PREFIX) not in VARIABLES:
            raise InvalidSetting(f"{variable} is not a setting. The README lists all settings.")
    app.config.from_prefixed_env(PREFIX.rstrip("_"), loads=str)
    texts = {"base_url": f"http://127.0.0.1:{port()}"}
    texts |= {name.lower(): app.config[name] for name in VARIABLES if app.config.get(name)}
    texts |= {
        name: _read_secret(PREFIX + name.upper())
        for name in SECRETS
        if app.config.get(f"{name.upper()}_FILE")
    }
    settings = _parse(texts | overrides)
    app.config["SECRET_KEY"] = settings.secret_key or _stored_secret(
        Path(app.root_path).parent / settings.data_dir
    )
    app.config["SECRET_KEY_FALLBACKS"] = settings.secret_key_fallbacks.replace(",", " ").split()
    app.extensions["linkmgr_settings"] = settings


# Return the application object itself. The proxy `current_app` looks it up for each attribute.
this_app: Callable[[], Flask] = cast("LocalProxy[Flask]", current_app)._get_current_object


def settings() -> Settings:
    current: Settings = this_app().extensions["linkmgr_settings"]
    return current
