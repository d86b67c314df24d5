"""The list of browser sessions on the account page, and ending them."""

import re

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.core.database.statements import Row
from linkmgr.core.web import session_store
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.pages import PASSWORD, is_signed_in, login_path
from tests.support.targets import IPHONE

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
SINCE = r" since [A-Z][a-z]{2} \d+, \d{4}, \d\d:\d\d UTC"
ENDING = re.compile(r'action="(/account/sessions/[0-9a-f]{64}/end)"')


def signed_in(app: Flask, user: Client, agent: str = FIREFOX) -> FlaskClient:
    browser = app.test_client()
    browser.environ_base["HTTP_USER_AGENT"] = agent
    form = {"email": f"{user.username}@example.com", "password": PASSWORD}
    assert browser.post("/login", data=form).status_code == 303
    return browser


def listed(browser: FlaskClient) -> list[str]:
    """Return the text of each row of the list."""
    page = browser.get("/account").text
    rows = page.split('<ul class="sessions">')[1].split("</ul>")[0].split("<li>")[1:]
    return [" ".join(re.sub("<.*?>", " ", row).split()) for row in rows]


def ending(browser: FlaskClient) -> list[str]:
    return ENDING.findall(browser.get("/account").text)


def test_each_session_has_its_browser_and_system_and_this_one_is_marked(app: Flask, alice: Client) -> None:
    browser = signed_in(app, alice)
    signed_in(app, alice, IPHONE)
    signed_in(app, alice, "\x80 no browser")
    rows = listed(browser)
    assert [re.sub(SINCE, "", row) for row in rows] == [
        "Firefox on Linux This browser Signed in , last used just now",
        "Unknown browser Signed in , last used just now Sign out",
        "Mobile Safari on iOS Signed in , last used just now Sign out",
    ]
    assert all(re.search(SINCE, row) for row in rows)


def test_a_session_has_its_country_and_when_it_was_last_used_to_ten_minutes(
    app: Flask, alice: Client, sql: Sql
) -> None:
    browser, away = app.test_client(), app.test_client()
    away.environ_base["REMOTE_ADDR"] = "8.8.8.8"
    for client in (browser, away):
        client.post("/login", data={"email": "alice", "password": PASSWORD})
    sql("UPDATE sessions SET used = used - interval '9 minutes' RETURNING 1")
    before = sql("SELECT xmin::text, place FROM sessions ORDER BY place")
    assert [row["place"] for row in before] == ["", "United States"]
    assert ["9 minutes ago" in row for row in listed(browser)] == [True, True]
    assert "8.8.8.8" not in str(sql("SELECT row_to_json(s)::text AS row FROM sessions s"))
    assert sql("SELECT xmin::text, place FROM sessions ORDER BY place") == before  # a page writes nothing
    sql("UPDATE sessions SET used = used - interval '2 minutes' RETURNING 1")
    listed(browser)
    assert ["just now" in row for row in listed(browser)] == [True, False]
    assert "United States" in listed(browser)[1]


@pytest.mark.parametrize("source", ["api", "command", "console"])
def test_a_session_by_a_link_of_an_administrator_says_so_on_every_page(
    app: Flask, admin: Client, alice: Client, source: str
) -> None:
    browser, manager = app.test_client(), signed_in(app, admin)
    if source == "api":
        path = login_path(admin, alice)
    else:
        text = (
            app.test_cli_runner().invoke(args=["users", "login", "alice"]).output
            if source == "command"
            else manager.post(
                f"/console/administration/users/{alice.id}/login", data={"current_password": PASSWORD}
            ).text
        )
        path = "/login/" + re.findall(r"/login/([\w-]{43})", text)[0]
    browser.post(path)
    said = "An administrator made the link with which this browser signed in."
    assert [said in browser.get(page).text for page in ("/account", "/console", "/console/links")] == [True] * 3
    assert said not in manager.get("/account").text


def test_a_cookie_opens_nothing_on_a_branded_domain(app: Flask, alice: Client, sql: Sql) -> None:
    alice.add("/api/domain/add", {"domain": "https://brand.example.org"})
    link = alice.post(
        "/api/url/add", {"url": "https://example.com", "domain": "https://brand.example.org", "custom": "gone"}
    )
    sql("UPDATE links SET expiry = now() - interval '1 day' WHERE id = %(id)s RETURNING 1", id=link.get_json()["id"])
    cookie = signed_in(app, alice).get_cookie("linkmgr")
    assert cookie
    headers = {"Host": "brand.example.org", "Cookie": f"linkmgr={cookie.value}"}
    visitor = app.test_client(use_cookies=False)
    for path in (
        "/account",
        "/console",
        "/console/links",
        "/login",
        "/login/code",
        "/account/factors",
        "/account/confirm",
    ):
        assert visitor.get(path, headers=headers).status_code == 404, path
    stopped = visitor.get("/gone", headers=headers)
    assert (stopped.status_code, "/console/links/" in stopped.text) == (410, False)


def test_a_session_of_a_login_link_has_its_browser_too(app: Flask, admin: Client, alice: Client) -> None:
    browser = app.test_client()
    token = admin.get(f"/api/user/login/{alice.id}").get_json()["url"].rsplit("/", 1)[1]
    browser.post(f"/login/{token}", headers={"User-Agent": FIREFOX})
    assert listed(browser)[0].startswith("Firefox on Linux This browser")


def test_one_session_is_ended_and_the_others_remain(app: Flask, alice: Client) -> None:
    browser, lost, kept = signed_in(app, alice), signed_in(app, alice), signed_in(app, alice, IPHONE)
    [_, path] = ending(browser)
    answer = browser.post(path)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/account")
    assert "The browser has been signed out." in browser.get("/account").text
    assert [is_signed_in(each) for each in (browser, lost, kept)] == [True, False, True]
    browser.post(path)
    assert "This browser was signed out before." in browser.get("/account").text


def test_a_login_link_is_no_session_until_it_is_used(
    app: Flask, admin: Client, alice: Client, monkeypatch: pytest.MonkeyPatch, sql: Sql
) -> None:
    monkeypatch.setattr(session_store, "MAX_SESSIONS", 1)
    browser, path = signed_in(app, alice), login_path(admin, alice)
    assert len(listed(browser)) == 1
    browser.post("/account/sessions/end-others")
    [link] = sql("SELECT digest FROM sessions WHERE is_link")
    browser.post(f"/account/sessions/{bytes(link['digest']).hex()}/end")
    with app.app_context():
        assert session_store.find_session(bytes(link["digest"])) is None
    signed_in(app, alice)
    assert app.test_client().post(path).status_code == 303


def test_all_other_sessions_are_ended_at_once(app: Flask, alice: Client, bob: Client) -> None:
    browser, others, of_bob = signed_in(app, alice), [signed_in(app, alice) for _ in range(2)], signed_in(app, bob)
    assert "Sign out all other browsers" in browser.get("/account").text
    browser.post("/account/sessions/end-others")
    page = browser.get("/account").text
    assert "All other browsers have been signed out." in page
    assert "Sign out all other browsers" not in page
    assert [is_signed_in(each) for each in (*others, of_bob)] == [False, False, True]


def test_the_session_of_another_user_cannot_be_ended(app: Flask, alice: Client, bob: Client) -> None:
    browser, other = signed_in(app, alice), signed_in(app, alice)
    [path] = ending(browser)
    of_bob = signed_in(app, bob)
    assert of_bob.post(path).status_code == 303
    assert "This browser was signed out before." in of_bob.get("/account").text
    assert is_signed_in(other)
    assert of_bob.post("/account/sessions/nonsense/end").status_code == 404


def test_a_sign_in_beyond_the_maximum_ends_the_oldest_session(app: Flask, alice: Client, bob: Client, sql: Sql) -> None:
    of_bob, oldest = signed_in(app, bob), signed_in(app, alice)
    sql("UPDATE sessions SET created = created - interval '1 day' RETURNING 1")
    sql(
        "INSERT INTO sessions (digest, user_id) SELECT sha256(int4send(n)), %(id)s"
        "  FROM generate_series(2, %(many)s) n RETURNING 1",
        id=alice.id,
        many=session_store.MAX_SESSIONS,
    )
    assert is_signed_in(oldest)
    newest = signed_in(app, alice)
    assert [is_signed_in(browser) for browser in (newest, of_bob, oldest)] == [True, True, False]
    assert len(listed(newest)) == session_store.MAX_SESSIONS


def test_an_expired_session_is_not_listed(app: Flask, alice: Client, sql: Sql) -> None:
    signed_in(app, alice)
    sql("UPDATE sessions SET created = created - interval '30 days' RETURNING 1")
    rows: list[Row] = sql("SELECT 1 FROM sessions")
    browser = signed_in(app, alice)
    assert (len(rows), len(listed(browser))) == (1, 1)
