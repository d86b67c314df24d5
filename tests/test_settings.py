"""Settings: an invalid value stops the start with one sentence."""

import re
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from flask import Flask

from linkmgr import create_app
from linkmgr.core import setting_types, settings
from linkmgr.core.settings import InvalidSetting

UNUSABLE = {
    "database_url": ["mysql://user:hidden@host/name", "host=/tmp dbname=x", "postgresql://host/name?colour=red"],
    "replica_url": ["mysql://user:hidden@host/name"],
    "base_url": [
        "go.example.org",
        "ftp://go.example.org",
        "https://go.example.org/path",
        "https://go.example.org?query",
        "https://user@go.example.org",
        "https://go.example.org:99999",
        "https://go.example.org:0",
        "https://go example.org",
        "https://",
        "https://go..example.org",
        f"https://{'a' * 64}.example.org",
    ],
    "secret_key": ["a", "too-short-a-secret", "x" * 31],
    "rate_limit": ["often", "0 per minute", "30 per minute; 5 per second", "30 per 2 days", "99999999999 per minute"],
    "rate_limit_storage": ["memcached://host", "redis://host:port", "redis", "unix:///socket"],
    "domain_check": ["dns", "HTTP"],
    "demo": ["yes", "2"],
    "geoip_database": ["/does/not/exist.mmdb", __file__],
    "key_lifetime_days": ["0", "-1", "1.5", "soon", "1e9", "٣"],
    "trusted_proxies": ["-1", "11", "many"],
    "metrics_token": ["short", "sixteen letters and spaces"],
    "mail_url": [
        "mail.example.org",
        "http://mail.example.org",
        "smtp://",
        "smtp://mail.example.org:0",
        "smtp://user:hidden@mail.example.org:99999",
        "smtp://user:hidd%C3%A4n@mail.example.org",
        "smtp://mail.example.org/path",
        "smtp://mail.example.org?tls=1",
        "smtps://mail.example.org?starttls=1",
    ],
    "mail_from": [
        "links",
        "links@",
        "a@example.org, b@example.org",
        "links@example.org\nBcc: all@example.org",
        "Links <>",
    ],
    "prepare": ["no"],
    "respect_dnt": ["true", "01"],
    "private_networks": ["localhost", "10.0.0.1/8", "10.0.0.0/8; 192.168.0.0/16"],
    "accent": ["red", "#45d", "#4355d9;", "#4355d9 #9aacff #000000", "#ffee00", "#4355d9 #101010"],
    "passwords": ["off"],
    "new_accounts": ["nobody", "on, example.org", "@example.org", "example.org; example.com"],
    "oidc_issuer": [
        "sso.example.org",
        "http://sso.example.org",
        "http://10.0.0.1",
        "https://",
        "https://sso.example.org?a",
        "https://a b",
        "http://127.0.0.1.example.org",
        "ftp://127.0.0.1",
        "https://sso.example.org/#x",
    ],
    "oidc_scopes": ["email profile"],
    "oidc_match_email": ["yes"],
    "oidc_groups": ["staff", "staff=", "=admin", "staff=plan:", "staff=owner", "staff=plan:Pro,,ops=admin"],
    "remote_user_header": ["Remote User", "Remote_User", "Remote-User:", "-"],
    "remote_user_proxies": ["proxy", "0.0.0.0/0", "10.0.0.0/8, ::/0"],
    "logo": ["missing.png", ".", "../logo.png", "/etc/hostname"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in UNUSABLE.items() for value in values])
def test_an_invalid_value_stops_the_start_with_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str
) -> None:
    monkeypatch.setenv("LINKMGR_DATA_DIR", str(tmp_path))
    monkeypatch.setenv(f"LINKMGR_{name.upper()}", value)
    with pytest.raises(InvalidSetting) as refused:
        create_app()
    sentence = str(refused.value)
    assert not re.search("hidden|too-short", sentence), "it may be a password"
    assert sentence.startswith(f"LINKMGR_{name.upper()} must be ")
    assert sentence.endswith(".")


@pytest.mark.parametrize("port", ["abc", "", "0", "65536", "-1", "5000 "])
def test_an_invalid_port_is_named_even_if_the_base_url_is_set(
    make_app: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch, port: str
) -> None:
    monkeypatch.setenv("PORT", port)
    with pytest.raises(InvalidSetting) as refused:
        make_app()
    assert str(refused.value) == f"PORT must be a number from 1 to 65535; it is {port!r}."


@pytest.mark.parametrize("name", ["LINKMGR_RATELIMIT", "LINKMGR_demo", "LINKMGR_DEBUG", "LINKMGR_A__B"])
def test_an_unknown_setting_stops_the_start(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(InvalidSetting, match=f"{name} is not a setting"):
        create_app()


def test_an_unusable_data_folder_stops_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LINKMGR_DATA_DIR", str(tmp_path / "file"))
    with pytest.raises(InvalidSetting, match="LINKMGR_DATA_DIR must be a folder"):
        create_app()


def test_a_secret_that_is_no_text_stops_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_bytes(b"\xff" * 40)
    monkeypatch.setenv("LINKMGR_DATA_DIR", str(tmp_path))
    with pytest.raises(InvalidSetting, match="secret_key is not a text file"):
        create_app()


def test_settings_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = {"BASE_URL": "https://go.example.org/", "KEY_LIFETIME_DAYS": "30", "TRUSTED_PROXIES": "1", "DEMO": ""}
    for name, value in (given | {"DATA_DIR": str(tmp_path)}).items():
        monkeypatch.setenv(f"LINKMGR_{name}", value)
    found = create_app().extensions["linkmgr_settings"]
    assert (found.base_url, found.host) == ("https://go.example.org", "go.example.org")
    assert (found.key_lifetime_days, found.trusted_proxies, found.demo) == (30, 1, True)


def test_secrets_are_read_from_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    monkeypatch.setenv("LINKMGR_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("LINKMGR_MAIL_FROM", "links@example.org")
    for name in settings.SECRETS:
        variable = f"LINKMGR_{name.upper()}"
        value = "postgresql://user:password@host/name" if name.endswith("url") else "x" * 40
        others = {"rate_limit_storage": "redis://:password@host", "mail_url": "smtp://user:password@host"}
        value = others.get(name, value)
        with monkeypatch.context() as environment:
            environment.setenv(f"{variable}_FILE", str(file))
            for unusable in (None, b"", b"\n", b"\xff" * 40):
                file.unlink(missing_ok=True) if unusable is None else file.write_bytes(unusable)
                with pytest.raises(InvalidSetting, match=f"^{variable}_FILE must name a readable file with the value"):
                    create_app()
            file.write_text(f" {value}\n")
            stored = getattr(create_app().extensions["linkmgr_settings"], name)
            assert stored == (setting_types.mail_server(value) if name == "mail_url" else value)
            environment.setenv(variable, value)
            with pytest.raises(InvalidSetting, match=f"^{variable} and {variable}_FILE are both set: remove one.$"):
                create_app()


def test_the_secret_is_generated_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    def secret(_: int) -> str:
        app = Flask(__name__)  # without routes: compiling them in two threads raises an error in Python 3.11
        settings.init_app(app, data_dir=str(tmp_path))
        return str(app.config["SECRET_KEY"])

    with ThreadPoolExecutor(8) as starts:
        made = set(starts.map(secret, range(8)))
    assert made == {(tmp_path / "secret_key").read_text()}
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


def test_a_secret_from_the_settings_is_not_stored(make_app: Callable[..., Flask], tmp_path: Path) -> None:
    app = make_app(
        data_dir=str(tmp_path), secret_key="a secret of the operator, of any kind", secret_key_fallbacks="older, oldest"
    )
    assert app.config["SECRET_KEY"] == "a secret of the operator, of any kind"
    assert app.config["SECRET_KEY_FALLBACKS"] == ["older", "oldest"]
    assert not list(tmp_path.iterdir())
