"""Sign-in as the user whose name an authenticating proxy sends."""

from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr import create_app
from linkmgr.core.settings import InvalidSetting
from tests.conftest import BASE_URL, ROOT, Client
from tests.support import nginx
from tests.support.factories import Sql
from tests.support.pages import by_link, is_signed_in, signed_in, words
from tests.support.races import at_once
from tests.support.raw_http import send
from tests.support.servers import free_port, serving

SETTINGS = {"remote_user_header": "Remote-User", "trusted_proxies": "1"}
PROXY, CLIENT = "127.0.0.1", "203.0.113.7"


@pytest.fixture
def behind(app_with: Callable[..., Flask], app: Flask) -> Callable[..., FlaskClient]:
    """Return a browser behind a proxy that sends this name."""

    def connect(name: str = "", peer: str = PROXY, *, header: str = "Remote-User", **settings: str) -> FlaskClient:
        browser = app_with(**SETTINGS | settings).test_client()
        browser.environ_base |= {"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": CLIENT}
        browser.environ_base |= {f"HTTP_{header.upper().replace('-', '_')}": name} if name else {}
        return browser

    return connect


def arrives_as(browser: FlaskClient) -> str:
    """Return the e-mail address of the account that the first page leads to, or ""."""
    page = browser.get("/login", follow_redirects=True)
    return (
        browser.get("/account").text.split('<p class="muted"><bdi>')[1].split("<")[0]
        if page.request.path == "/console"
        else ""
    )


@pytest.mark.parametrize("name", ["alice", "ALICE", "alice@example.com", " alice "])
def test_the_user_whom_the_proxy_names_is_signed_in(
    behind: Callable[..., FlaskClient], alice: Client, name: str
) -> None:
    assert arrives_as(behind(name)) == "alice@example.com"
    assert arrives_as(behind(name, "")) == "alice@example.com", "a Unix socket"
    assert arrives_as(behind(name, "::ffff:127.0.0.1")) == "alice@example.com"
    assert arrives_as(behind(name, "10.1.2.3", remote_user_proxies="10.0.0.0/8")) == "alice@example.com"
    assert arrives_as(behind(name, header="X-Auth", remote_user_header="X-Auth")) == "alice@example.com"


def test_concurrent_first_requests_add_one_user(behind: Callable[..., FlaskClient], sql: Sql) -> None:
    browsers = [behind("zoe@example.org", new_accounts="on") for _ in range(6)]
    assert at_once(6, lambda n: browsers[n].get("/login/network").status_code) == [303] * 6
    assert sql("SELECT count(*) AS n FROM users WHERE email = 'zoe@example.org'") == [{"n": 1}]


@pytest.mark.parametrize("peer", [CLIENT, "10.1.2.3", "2001:db8::1", "unix:", "nonsense", "[]:1"])
def test_the_header_of_anybody_else_is_ignored(behind: Callable[..., FlaskClient], alice: Client, peer: str) -> None:
    browser = behind("alice", peer)
    browser.environ_base["HTTP_X_FORWARDED_FOR"] = "127.0.0.1"
    assert arrives_as(browser) == ""
    answer = browser.get("/login/network")
    assert (answer.status_code, "has not sent the name of a user" in answer.text) == (403, True)
    assert not is_signed_in(browser)
    assert arrives_as(behind("alice", remote_user_proxies="10.0.0.0/8")) == "", "loopback is no default then"
    assert arrives_as(behind("alice", header="X-Auth")) == "", "another header"


@pytest.mark.parametrize("name", ["carol", "alice,admin", "alice\0", "\xff", "%", "x" * 5000])
def test_a_name_without_an_account_is_refused(behind: Callable[..., FlaskClient], alice: Client, name: str) -> None:
    answer = behind(name).get("/login/network")
    assert answer.status_code == 403
    assert "Sign in</h1>" in answer.text


def test_an_email_address_gets_an_account_if_the_setting_says_so(behind: Callable[..., FlaskClient], sql: Sql) -> None:
    assert behind("zoe@example.org").get("/login/network").status_code == 403
    assert behind("zoe@example.com", new_accounts="example.org").get("/login/network").status_code == 403
    browser = behind("zoe@example.org", new_accounts="example.org")
    assert arrives_as(browser) == arrives_as(behind("zoe@example.org", new_accounts="example.org")) == "zoe@example.org"
    assert "Set a password first" not in browser.get("/account").text
    assert [row["username"] for row in sql("SELECT username FROM users")] == ["zoe"]
    assert behind("no@ddress", new_accounts="on").get("/login/network").status_code == 400


def test_a_session_ends_when_the_proxy_names_another_user(
    behind: Callable[..., FlaskClient], alice: Client, bob: Client, admin: Client
) -> None:
    browser = behind("alice")
    arrives_as(browser)
    browser.environ_base["HTTP_REMOTE_USER"] = "bob"
    assert browser.get("/console").headers["Location"] == "/login"
    assert arrives_as(browser) == "bob@example.com"
    for kept in (signed_in(browser.application), by_link(browser.application, admin, alice)):
        kept.environ_base |= {"HTTP_REMOTE_USER": "bob"}
        assert "alice@example.com" in kept.get("/account").text, "it did not begin with the header"


def test_who_signs_out_is_not_signed_in_again_at_once(behind: Callable[..., FlaskClient], alice: Client) -> None:
    browser = behind("alice")
    arrives_as(browser)
    page = browser.post("/account/sign-out", follow_redirects=True)
    assert ("You have been signed out." in page.text, page.request.path) == (True, "/login")
    assert 'href="/login/network">Sign in with the account of your network</a>' in page.text
    assert browser.get("/login/network").status_code == 303
    assert is_signed_in(browser)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"trusted_proxies": "0"}, "LINKMGR_REMOTE_USER_HEADER needs LINKMGR_TRUSTED_PROXIES: without a proxy"),
        ({"remote_user_proxies": "10.0.0.0/8, ::/0"}, "LINKMGR_REMOTE_USER_PROXIES must be networks of your proxies"),
        ({"remote_user_header": "Remote_User"}, "LINKMGR_REMOTE_USER_HEADER must be the name of a header"),
        ({"oidc_issuer": "https://sso.example.org"}, "LINKMGR_OIDC_ISSUER needs LINKMGR_OIDC_CLIENT_ID"),
    ],
)
def test_unsafe_settings_stop_the_start(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidSetting, match=f"^{sentence}.*\\.$"):
        create_app(database_url="postgresql://unused", secret_key="unused" * 6, **SETTINGS | settings)


# --- as it is deployed

BEHIND_AUTHENTICATION = """
location ~ ^/(?:login/network|console|account(?!/unsubscribe))(?:/|$) {
    auth_basic "Network";
    auth_basic_user_file people;
    include linkmgr/proxy.conf;
    proxy_set_header Remote-User $remote_user;
}
"""


@pytest.mark.services
def test_nginx_sends_the_name_of_who_has_a_password_there_and_no_other(
    app: Flask, dsn: str, tmp_path: Path, alice: Client, bob: Client
) -> None:
    documented = (ROOT / "deploy/README.md").read_text()
    assert all(f"    {line}\n" in documented for line in BEHIND_AUTHENTICATION.strip().splitlines())
    port, folder = free_port(), tmp_path / "nginx"
    folder.mkdir()
    (folder / "people").write_text("alice:{PLAIN}network\n")
    settings = {"database_url": dsn, "data_dir": app.extensions["linkmgr_settings"].data_dir, "base_url": BASE_URL}
    with serving(port, tmp_path / "log", "--workers", "1", **SETTINGS, **settings):
        host = {"Host": BASE_URL.partition("//")[2]}
        start = f"GET /login/network HTTP/1.1\r\nHost: {host['Host']}\r\nConnection: close\r\n"
        assert send(f"http://127.0.0.1:{port}", f"{start}Remote_User: alice\r\n\r\n".encode())[0] == 403
        both = f"{start}Remote-User: bob\r\nRemote-User: alice\r\n\r\n"
        assert send(f"http://127.0.0.1:{port}", both.encode())[0] == 403
        with nginx.running(folder, port) as front:
            assert front.ask("/login/network", headers=host | {"Remote-User": "bob"}).status_code == 403
        with nginx.running(folder, port, own=BEHIND_AUTHENTICATION) as front:
            assert front.ask("/login/network", headers=host | {"Remote-User": "bob"}).status_code == 401
            assert front.ask("/account/unsubscribe/unknown", headers=host).status_code == 404
            known = host | {"Authorization": "Basic YWxpY2U6bmV0d29yaw==", "Remote-User": "bob"}
            answer = front.ask("/login/network", headers=known)
            assert (answer.status_code, answer.headers["Location"]) == (303, "/console")
            cookie = "; ".join(text.partition(";")[0] for text in answer.headers.getlist("Set-Cookie"))
            page = words(front.ask("/account", headers=known | {"Cookie": cookie}).text)
            assert ("alice@example.com" in page, "bob@example.com" in page) == (True, False)
