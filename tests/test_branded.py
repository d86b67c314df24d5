"""Branded domains, selected by the Host header: the paths that they serve and those that they do not."""

from collections.abc import Callable

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from linkmgr.core.database import statements
from tests.conftest import BASE_URL, Client, check
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import signed_in

HOST = "go.example.org"
ROOT, NOT_FOUND = "https://example.com/welcome", "https://example.com/lost"

Fetch = Callable[..., TestResponse]


@pytest.fixture
def fetch(app: Flask) -> Fetch:
    """Send a request to a host, by default the branded one."""

    def get(path: str, host: str = HOST, method: str = "GET") -> TestResponse:
        return app.test_client().open(path, method=method, headers={"Host": host})

    return get


@pytest.fixture
def plain(alice: Client) -> int:
    return alice.add("/api/domain/add", {"domain": f"https://{HOST}"})


@pytest.fixture
def redirecting(alice: Client) -> int:
    return alice.add("/api/domain/add", {"domain": f"https://{HOST}", "redirectroot": ROOT, "redirect404": NOT_FOUND})


OURS = ["/login", "/login/x", "/account", "/account/key", "/console", "/console/links", "/avatar/alice.png"]
PATHS = ["/", "/nothing", "/q/nothing", "/r/nothing", "/u/nobody/list-1", "/qr/nothing"]


@pytest.mark.usefixtures("redirecting")
@pytest.mark.parametrize("host", [HOST, "GO.example.ORG", f"{HOST}.", f"{HOST}:8080"])
def test_the_root_and_unknown_paths_redirect_as_the_owner_configured(fetch: Fetch, host: str) -> None:
    answers = {path: fetch(path, host) for path in PATHS}
    assert {answer.status_code for answer in answers.values()} == {302}
    assert answers.pop("/").headers["Location"] == ROOT
    assert {answer.headers["Location"] for answer in answers.values()} == {NOT_FOUND}
    assert fetch("/nothing", host).headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.usefixtures("plain")
def test_without_redirects_there_is_a_plain_page_and_the_404_page(fetch: Fetch) -> None:
    root = fetch("/")
    assert root.status_code == 200
    assert f"open a short link on {HOST}" in root.text
    assert root.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert {path: fetch(path).status_code for path in PATHS[1:]} == dict.fromkeys(PATHS[1:], 404)
    assert {fetch(path).text for path in OURS} == {fetch("/nothing").text}


@pytest.mark.usefixtures("redirecting")
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_our_own_pages_do_not_exist_on_a_branded_domain(fetch: Fetch, method: str) -> None:
    answers = [fetch(path, method=method) for path in OURS]
    assert {(answer.status_code, answer.headers["Location"]) for answer in answers} == {(302, NOT_FOUND)}


@pytest.mark.usefixtures("redirecting")
@pytest.mark.parametrize("path", ["/api", "/api/account", "/api/", "/healthz"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_paths_that_only_programs_request_do_not_exist_on_a_branded_domain(
    fetch: Fetch, sql: Sql, path: str, method: str
) -> None:
    before = sql("SELECT count FROM rate_windows")
    answer = fetch(path, method=method)
    assert answer.status_code == 404
    assert "Location" not in answer.headers
    if path.startswith("/api"):
        check(answer)
    assert sql("SELECT count FROM rate_windows") == before, "nothing was counted"


@pytest.mark.usefixtures("redirecting")
def test_short_urls_work_on_a_branded_domain_as_on_our_own_host(fetch: Fetch, alice: Client, sql: Sql) -> None:
    made = alice.post("/api/qr/add", {"type": "link", "data": "https://example.com/menu"}).get_json()
    campaign = alice.post("/api/campaign/add", {"slug": "spring", "public": True}).get_json()
    link_id = factories.link(sql, alice.id, url="https://example.com/page")
    alice.post(f"/api/campaign/{campaign['id']}/assign/{link_id}")
    code = made["link"].rpartition("/")[2]
    assert fetch(f"/q/{code}").headers["Location"] == "https://example.com/menu"
    short = fetch("/r/spring").headers["Location"]
    assert fetch(short.removeprefix(BASE_URL), "127.0.0.1:5000").headers["Location"] == "https://example.com/page"
    assert fetch(f"/u/alice/spring-{campaign['id']}").status_code == 200
    assert fetch(f"/qr/{code}").mimetype == "image/png"
    assert fetch(f"/qr/{code}").data == fetch(f"/qr/{code}", "127.0.0.1:5000").data, "its image contains BASE_URL"
    with fetch("/static/style.css") as sheet:
        assert sheet.status_code == 200
    assert alice.get(f"/api/qr/{made['id']}").get_json()["data"]["clicks"] == 1


@pytest.mark.usefixtures("redirecting")
@pytest.mark.parametrize("word", ["login", "console", "q"])
def test_a_link_may_have_the_path_of_a_page_of_ours(app: Flask, fetch: Fetch, alice: Client, word: str) -> None:
    ours = fetch(f"/{word}", "127.0.0.1:5000")
    pixel = alice.add("/api/pixel/add", {"type": "gtmpixel", "name": "Shop", "tag": "GTM-ABC123"})
    link = {"url": "https://example.com/page", "custom": word, "domain": HOST}
    link_id = alice.add("/api/url/add", link)
    assert fetch(f"/{word}").headers["Location"] == "https://example.com/page"
    assert fetch(f"/{word}/qr").mimetype == "image/png"
    alice.put(f"/api/url/{link_id}/update", {"pixels": [pixel]})
    assert f'src="/{word}/pixels"' in fetch(f"/{word}").text
    assert fetch(f"/{word}/pixels").status_code == 200
    alice.put(f"/api/url/{link_id}/update", {"password": "secret", "pixels": []})
    assert "password" in fetch(f"/{word}").text
    answer = app.test_client().post(f"/{word}", data={"password": "secret"}, headers={"Host": HOST})
    assert (answer.status_code, answer.headers["Location"]) == (303, "https://example.com/page")
    assert fetch(f"/{word}", "127.0.0.1:5000").status_code == ours.status_code
    assert fetch(f"/{word}/nothing").headers["Location"] == NOT_FOUND


def test_a_link_may_have_a_word_before_the_codes_of_ours(fetch: Fetch, alice: Client) -> None:
    pixel = alice.add("/api/pixel/add", {"type": "gtmpixel", "name": "Shop", "tag": "GTM-ABC123"})
    for word in ("q", "qr", "r", "u", "o"):
        alice.add("/api/url/add", {"url": "https://example.com/page", "custom": word, "pixels": [pixel]})
        assert f'src="/{word}/pixels"' in fetch(f"/{word}", "127.0.0.1:5000").text
        assert fetch(f"/{word}/pixels", "127.0.0.1:5000").status_code == 200
        assert fetch(f"/{word}/qr", "127.0.0.1:5000").mimetype == "image/png"
    campaign = alice.add("/api/campaign/add", {"slug": "pixels", "public": True})
    alice.post(f"/api/campaign/{campaign}/assign/{alice.add('/api/url/add', {'url': 'https://example.com/'})}")
    assert fetch("/r/pixels", "127.0.0.1:5000").status_code == 302


@pytest.mark.usefixtures("redirecting")
def test_pages_of_the_branded_domain_count_as_direct(app: Flask, alice: Client) -> None:
    made = alice.post("/api/qr/add", {"type": "link", "data": "https://example.com/menu"}).get_json()
    path = f"/q/{made['link'].rpartition('/')[2]}"
    app.test_client().get(path, headers={"Host": f"{HOST}:443", "Referer": f"https://{HOST}/u/alice/list-1"})
    assert alice.get(f"/api/qr/{made['id']}").get_json()["data"]["topReferrers"] == {"Direct, email and other": "1"}


@pytest.mark.usefixtures("redirecting")
@pytest.mark.parametrize("host", ["[::1]:5000", "localhost"])
def test_another_host_name_of_the_service_never_appears_in_a_url(fetch: Fetch, alice: Client, host: str) -> None:
    assert fetch("/healthz", host).status_code == 200
    assert fetch("/nothing", host).status_code == 404
    answer = alice.post("/api/campaign/add", {"slug": "spring"}, headers={"Host": host})
    assert answer.get_json()["rotator"] == f"{BASE_URL}/r/spring"
    assert host not in fetch("/", host).headers["Location"]


def test_a_deleted_domain_is_an_unknown_host(fetch: Fetch, alice: Client, redirecting: int) -> None:
    assert fetch("/").headers["Location"] == ROOT
    alice.delete(f"/api/domain/{redirecting}/delete")
    assert "LINKMGR_BASE_URL" in fetch("/nothing").text
    assert fetch("/healthz").status_code == 200


def test_our_own_host_costs_no_query(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a query")

    monkeypatch.setattr(statements.Database, "execute", refuse)
    assert fetch("/$/thing", "127.0.0.1:5000").status_code == 404
    assert fetch("/", "127.0.0.1:5000").status_code == 302


def test_while_the_database_is_unavailable_a_branded_domain_says_so(app_with: Callable[..., Flask]) -> None:
    lost = app_with(database_url="postgresql://postgres@127.0.0.1:1/linkmgr").test_client()
    statuses = {path: lost.get(path, headers={"Host": HOST}).status_code for path in ("/", "/no/thing", "/q/code")}
    assert statuses == {"/": 503, "/no/thing": 503, "/q/code": 503}


@pytest.mark.usefixtures("plain")
def test_a_branded_host_serves_nothing_of_other_users(fetch: Fetch, alice: Client, bob: Client, sql: Sql) -> None:
    for owner, status in ((alice, {200, 302}), (bob, {404})):
        code = owner.add("/api/qr/add", {"type": "link", "data": "https://example.com/"})
        [found] = sql("SELECT code FROM qrs WHERE id = %(id)s", id=code)
        name = owner.username
        campaign = owner.add("/api/campaign/add", {"name": "Bank", "slug": f"bank-{name}", "public": True})
        link = owner.add("/api/url/add", {"url": "https://example.com/"})
        owner.post(f"/api/campaign/{campaign}/assign/{link}")
        paths = [f"/q/{found['code']}", f"/qr/{found['code']}", f"/r/bank-{name}", f"/u/{name}/bank-{name}-{campaign}"]
        assert {fetch(path).status_code for path in paths} == status
        assert {fetch(path, "127.0.0.1:5000").status_code for path in paths} == {200, 302}


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(("members", "status"), [({"expiry": "2020-01-01"}, 410), ({"starts": "2090-01-01"}, 404)])
def test_the_owner_of_a_link_that_does_not_work_finds_it_in_the_console_and_nobody_else_does(
    *, app: Flask, fetch: Fetch, alice: Client, bob: Client, members: dict[str, str], status: int
) -> None:
    body = {"url": "https://example.com/", "custom": "sale", "domain": f"https://{HOST}"}
    link = alice.add("/api/url/add", body | members)
    stopped = fetch("/sale")
    assert (stopped.status_code, '<a href="/sale/owner" rel="nofollow">Is this your link?</a>' in stopped.text) == (
        status, True,
    )  # fmt: skip
    assert BASE_URL not in stopped.text, "the page does not say who operates the service"
    moved, unknown = fetch("/sale/owner"), fetch("/other/owner")
    assert moved.headers["Location"].startswith(f"{BASE_URL}/console/links/by-address?url=")
    assert unknown.headers["Location"] == moved.headers["Location"].replace("sale", "other"), "it tells nothing"
    path = moved.headers["Location"].removeprefix(BASE_URL)
    assert app.test_client().get(path).headers["Location"] == "/login"
    assert signed_in(app).get(path).headers["Location"] == f"/console/links/{link}"
    stranger = signed_in(app, "bob@example.com")
    lists = {stranger.get(to.removeprefix(BASE_URL)).headers["Location"] for to in (path, path.replace("sale", "no"))}
    assert lists == {"/console/links"}
    assert "Is this your link?" not in fetch("/sale", "127.0.0.1:5000").text
