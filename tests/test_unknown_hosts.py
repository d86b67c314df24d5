"""Requests under host names that the service does not know."""

import base64
import hashlib
import re
from collections.abc import Callable

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from linkmgr.core.error_catalogue import CATALOGUE
from tests.conftest import BASE_URL, Client, check
from tests.support import factories
from tests.support.factories import Sql

pytestmark = pytest.mark.slow

BRANDED = "links.example.net"
OWN = "go.example.org"
LOOPBACK = ["localhost", "LOCALHOST:5000", "localhost.", "app.localhost:80", "127.0.0.1", "127.0.0.1:81", "127.8.9.10"]
LOOPBACK += ["[::1]", "[::1]:5000", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0.0.0.0"]  # noqa: S104
FOREIGN = ["evil.example", f"sub.{OWN}", f"{OWN}.evil.example", "example", "192.0.2.7:5000", "[2001:db8::1]"]
FOREIGN += [
    "0xc0000207",
    "",
    "x y",
    "a:b:c",
    "[",
    "[::1",
    "my_host.example",
    "-",
    "go.\xfc.x",
    f"{OWN}@evil.example",
    "localhost.evil",
    f"go..{OWN}",
    f".{OWN}",
    "a" * 300,
    "a" * 64 + ".example",
]
EVERYWHERE = ["/healthz", "/metrics", "/.well-known/linkmgr/<token>"]
TOKEN = "prometheus-reads-this"
VALUES = {"alias": "known", "code": "c0de", "slug": "spring", "username": "alice", "size": "200", "token": "x"}


@pytest.fixture(scope="module")
def service(make_app: Callable[..., Flask], tmp_path_factory: pytest.TempPathFactory) -> Flask:
    """The service under a public name, on the database of the tests."""
    folder = str(tmp_path_factory.mktemp("service"))
    return make_app(base_url=f"https://{OWN}", data_dir=folder, metrics_token=TOKEN, secret_key="0123456789" * 4)


def ask(app: Flask, path: str, host: str, method: str = "GET", **headers: str) -> TestResponse:
    return app.test_client().open(path, method=method, headers={"Host": host} | headers)


@pytest.fixture
def paths(app: Flask, alice: Client, sql: Sql) -> list[str]:
    """Return a path for each GET route except the exceptions, with existing rows where the route needs them."""
    domain_id = alice.add("/api/domain/add", {"domain": f"https://{BRANDED}"})
    for domain in (None, domain_id):
        link_id = factories.link(sql, alice.id, url="https://example.com/page")
        sql(
            "UPDATE links SET alias = 'known', domain_id = %(domain)s WHERE id = %(id)s RETURNING 1",
            id=link_id,
            domain=domain,
        )
    campaign_id = alice.add("/api/campaign/add", {"slug": "spring", "public": True})
    alice.post(f"/api/campaign/{campaign_id}/assign/{link_id}")
    alice.add("/api/bio/add", {"name": "Alice", "alias": "alice"})
    code = alice.add("/api/qr/add", {"type": "link", "data": "https://example.com/menu"})
    sql("UPDATE qrs SET code = 'c0de' WHERE id = %(id)s RETURNING 1", id=code)
    known = VALUES | {"campaign_id": str(campaign_id), "filename": "style.css"}
    made = ["/alice", "/nothing", "/no/thing"]
    for rule in app.url_map.iter_rules():
        if "GET" in (rule.methods or ()) and rule.rule not in EVERYWHERE:
            made.append(re.sub(r"<(?:\w+:)?(\w+)>", lambda match: known.get(match[1], "1"), rule.rule))
    return made


def visits(app: Flask, sql: Sql) -> int:
    app.extensions["linkmgr_visit_queue"].flush()
    [row] = sql("SELECT count(*) AS visits FROM visits")
    return int(row["visits"])


def is_unknown(answer: TestResponse) -> bool:
    """Return True for the unknown host error, which names the setting and the way to add a domain."""
    message = CATALOGUE["unknown_host"][1]
    assert "LINKMGR_BASE_URL" in message
    assert "/api/domain/add" in message
    assert (answer.status_code, answer.headers.get("Location")) == (404, None)
    assert "Set-Cookie" not in answer.headers
    if answer.mimetype == "application/json":
        assert answer.get_json().items() >= {"error": 1, "message": message, "code": "unknown_host"}.items()
    else:
        assert message in answer.text
        assert answer.headers["Cache-Control"] == "no-store"
    return True


def test_nothing_is_served_under_an_unknown_host(service: Flask, paths: list[str], sql: Sql) -> None:
    counted = sql("SELECT bucket, count FROM rate_windows")
    for host in (*LOOPBACK, *FOREIGN):
        for path in paths if host in (LOOPBACK[0], FOREIGN[0]) else paths[::40]:
            assert is_unknown(ask(service, path, host)), (host, path)
            if path.startswith("/api"):
                check(ask(service, path, host))
        for path in ("/login", "/known", "/r/spring", "/api/url/add", "/o/answer", "/no/thing", "/static/style.css"):
            assert is_unknown(ask(service, path, host, "POST")), (host, path)
        assert ask(service, "/", host, Accept="application/json").get_json()["code"] == "unknown_host", host
    assert visits(service, sql) == 0
    assert sql("SELECT bucket, count FROM rate_windows") == counted, "nothing was counted"


@pytest.mark.usefixtures("app")
def test_the_page_of_an_unknown_host_has_its_style_within(service: Flask) -> None:
    page = ask(service, "/login", "evil.example")
    [style] = re.findall("<style>(.*?)</style>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in page.headers["Content-Security-Policy"]
    assert not re.findall(r'(?:href|src)="/', page.text), "nothing else is served on this host"


def test_health_metrics_and_the_domain_challenge_respond_under_every_host(service: Flask) -> None:
    for host in (*LOOPBACK, *FOREIGN, OWN):
        assert ask(service, "/healthz", host).status_code == 200, host
        assert ask(service, "/metrics", host, Authorization=f"Bearer {TOKEN}").status_code == 200, host
        assert ask(service, "/metrics", host).status_code == 401, host
        challenge = ask(service, "/.well-known/linkmgr/token", host)
        assert (challenge.status_code, challenge.mimetype) == (200, "text/plain"), host


@pytest.mark.parametrize("host", [OWN, OWN.upper(), f"{OWN}.", f"{OWN}:8443", BRANDED, f"{BRANDED.upper()}:80"])
@pytest.mark.usefixtures("paths")
def test_our_own_host_and_branded_hosts_are_served(service: Flask, host: str) -> None:
    assert ask(service, "/known", host).headers["Location"] == "https://example.com/page"
    assert ask(service, "/known/qr", host).mimetype == "image/png"
    assert ask(service, "/q/c0de", host).headers["Location"] == "https://example.com/menu"
    with ask(service, "/static/style.css", host) as style:
        assert style.status_code == 200


@pytest.mark.parametrize("base_url", [BASE_URL, "http://localhost:5000", "http://[::1]:5000", "http://127.9.9.9"])
def test_without_a_public_base_url_every_loopback_name_is_served(app_with: Callable[..., Flask], base_url: str) -> None:
    service = app_with(base_url=base_url)
    for host in LOOPBACK:
        assert ask(service, "/", host).headers["Location"] == "/login", host
        assert ask(service, "/login", host).status_code == 200, host
        assert ask(service, "/api/account", host).get_json()["code"] == "key_missing", host
    assert is_unknown(ask(service, "/login", "192.0.2.7"))


def test_the_loopback_setting_serves_loopback_names_beside_a_public_base_url(make_app: Callable[..., Flask]) -> None:
    service = make_app(base_url=f"https://{OWN}", serve_loopback="1")
    for host in (OWN, *LOOPBACK):
        assert ask(service, "/login", host).status_code == 200
    assert is_unknown(ask(service, "/login", "evil.example"))


@pytest.mark.parametrize("base_url", ["http://[2001:db8:0::1]:5000", "https://192.0.2.7", "https://go.example.org."])
def test_the_host_of_the_base_url_is_served_in_any_spelling(app_with: Callable[..., Flask], base_url: str) -> None:
    service = app_with(base_url=base_url)
    for host in {"[": ["[2001:db8::1]", "[2001:DB8::1]:80"], "1": ["192.0.2.7:80"], "g": [OWN]}[
        base_url.split("/")[2][0]
    ]:
        assert ask(service, "/login", host).status_code == 200


def test_while_the_database_is_unavailable_error_pages_on_branded_hosts_keep_their_style(
    make_app: Callable[..., Flask],
) -> None:
    lost = make_app(database_url="postgresql://nobody@127.0.0.1:1/none")
    assert ask(lost, "/known", BRANDED).status_code == 503
    with ask(lost, "/static/style.css", BRANDED) as style:
        assert style.status_code == 200
