"""`extrapath`: what follows the alias in the path of a short URL is added to the path of the target."""

from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy import queues
from linkmgr.core.fields.urls import MAX_URL
from linkmgr.core.web import passwords
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.shortlinks import BRANDED, Make, Short, add

DOCS = "https://example.com/docs"


@pytest.fixture
def docs(short: Make) -> Short:
    return short(url=DOCS, extrapath=True)


@pytest.mark.parametrize(
    ("url", "rest", "expected"),
    [
        (DOCS, "/a/b", f"{DOCS}/a/b"),
        (f"{DOCS}/", "/a/b/", f"{DOCS}/a/b/"),
        ("https://example.com", "/a", "https://example.com/a"),
        (f"{DOCS}?v=2#top", "/a", f"{DOCS}/a?v=2#top"),
        (f"{DOCS}#/?", "/a", f"{DOCS}/a#/?"),
        (DOCS, "", DOCS),
        (DOCS, "/", DOCS),
        (DOCS, "/a//b", f"{DOCS}/a//b"),
        (DOCS, "/a/./b/../c", f"{DOCS}/a/c"),
        (DOCS, "/a/%2E%2e/c", f"{DOCS}/c"),
        (DOCS, "/%e4%bd%a0/%FF", f"{DOCS}/%E4%BD%A0/%FF"),
        (DOCS, "/a%2Fb%3Fc%23d%25%5c", f"{DOCS}/a%2Fb%3Fc%23d%25%5C"),
        (DOCS, "/%252e%252e/a", f"{DOCS}/%252e%252e/a"),
        (DOCS, "/a%09X%00", f"{DOCS}/a%09X%00"),
        (DOCS, "/@evil.example/:x", f"{DOCS}/@evil.example/:x"),
        ("https://example.com", "/@evil.example", "https://example.com/@evil.example"),
    ],
)
def test_the_rest_of_the_path_is_that_of_the_target_in_its_encoding(
    short: Make, url: str, rest: str, expected: str
) -> None:
    link = short(url=url, extrapath=True)
    assert link.redirect_target(path=rest) == expected
    assert link.clicks == 1


@pytest.mark.parametrize(
    "rest",
    [
        "/..",
        "/../a",
        "/a/../../b",
        "/%2e%2e/a",
        "/..%2Fa",
        "/a/..%5c..%5Cb",
        "/a%2f..%2f..",
        "/..;/a",
        "/a/..;x=1/../b",
        "//example.org",
        "/a%0d%0aX:b",
        "/" + "a" * MAX_URL,
    ],
    ids=lambda rest: rest[:20],
)
def test_a_path_that_leads_out_of_the_target_or_is_too_long_is_not_found(docs: Short, rest: str) -> None:
    answer = docs.ask(path=rest)
    assert (answer.status_code, docs.clicks) == (404, 0)


@given(
    st.lists(st.sampled_from(["a", ".", "..", "%2e", "%2F", "%5C", "\\", "/", "%25", "%", "@", ":", ";", "é"])).map(
        "".join
    )
)
def test_no_path_leads_out_of_the_target(docs: Short, rest: str) -> None:
    location = docs.ask(path=f"/{rest}").headers.get("Location", DOCS)
    target = urlsplit(location)
    depth, least = 0, 0
    for segment in unquote(target.path.removeprefix("/docs")).replace("\\", "/").split("/")[1:]:
        depth += {"..": -1, ".": 0}.get(segment, 1)
        least = min(depth, least)
    assert (target.netloc, target.path[:5], target.query, least) == ("example.com", "/docs", "", 0)
    assert "/./" not in target.path
    assert location.isascii()


def test_a_redirect_takes_one_statement(docs: Short, executed: list[str]) -> None:
    docs.redirect_target(path="/a")
    executed.clear()
    docs.redirect_target(path="/a")
    assert len([statement for statement in executed if " links " in statement]) == 1  # not those of jobs


def test_a_link_without_it_has_no_paths_behind_its_alias(short: Make, alice: Client) -> None:
    link = short(url=DOCS)
    assert [link.ask(path="/a", method=method).status_code for method in ("GET", "HEAD", "POST")] == [404] * 3
    alice.add("/api/bio/add", {"name": "Alice", "alias": "alice"})
    client = link.app.test_client()
    assert [client.get(path).status_code for path in ("/alice", "/alice/a")] == [200, 404]
    assert link.clicks == 0


def test_pages_of_the_link_stay_what_they_are(docs: Short) -> None:
    assert docs.ask(path="/qr").mimetype == "image/png"
    assert "/console/links/by-address" in docs.ask(path="/owner").headers["Location"]
    assert docs.ask(path="/pixels").status_code == 404
    assert docs.ask(path="/qr/a/b").headers["Location"] == f"{DOCS}/qr/a/b"


def test_it_goes_with_other_targets_parameters_and_the_query(short: Make) -> None:
    link = short(
        url=DOCS,
        extrapath=True,
        forwardquery=True,
        parameters=[["utm_source", "mail"]],
        languagetarget={"fr": "https://example.com/fr?a=1"},
    )
    assert link.redirect_target(path="/x?b=2") == f"{DOCS}/x?utm_source=mail&b=2"
    french = link.redirect_target(path="/x?b=2", Accept_Language="fr")
    assert french == "https://example.com/fr/x?a=1&utm_source=mail&b=2"


def test_a_password_and_states_hold_for_every_path(short: Make) -> None:
    locked = short(url=DOCS, extrapath=True, password_hash=passwords.hashed("secret"))
    assert "Location" not in locked.ask(path="/a").headers
    opened = locked.ask(path="/a", method="POST", data={"password": "secret"})
    assert (opened.status_code, opened.headers["Location"]) == (303, f"{DOCS}/a")
    without = short(url=DOCS, extrapath=True)
    reopened = without.ask(path="/a/b", method="POST")
    assert (reopened.status_code, reopened.headers["Location"]) == (303, f"{without.path}/a/b")
    over = short(url=DOCS, extrapath=True, expiry="2020-01-01", expiredurl="https://example.com/over")
    assert over.redirect_target(path="/a") == "https://example.com/over"


@pytest.mark.parametrize(
    ("path", "number"),
    [
        *((path, queues.PASSWORDS) for path in ("/docs", "/docs/a/b", "/statistics/token", "/login")),
        *((path, queues.OTHERS) for path in ("/api/url/add", "/console/links/17/edit", "/account/email", "/o/answer")),
    ],
)
def test_passwords_of_every_path_have_half_of_the_threads(path: str, number: int) -> None:
    pages = frozenset({"account", "api", "console", "login"})
    environ = {"PATH_INFO": path, "REQUEST_METHOD": "POST"}
    assert queues.additional(environ, pages) == number
    figures = {"PATH_INFO": "/statistics/token", "REQUEST_METHOD": "GET"}
    assert queues.additional(figures, pages) == queues.OTHERS


def test_on_a_branded_domain_other_paths_go_to_its_page_for_them(docs: Short, short: Make, sql: Sql) -> None:
    docs.brand()
    sql("UPDATE domains SET redirect404 = 'https://example.com/404' RETURNING 1")
    assert docs.redirect_target(path="/a", Host=BRANDED) == f"{DOCS}/a"
    other = short(url=DOCS)
    sql("UPDATE links SET domain_id = (SELECT id FROM domains) WHERE id = %(id)s RETURNING 1", id=other.id)
    assert other.redirect_target(path="/a", Host=BRANDED) == "https://example.com/404"
    assert docs.ask(path="/a").status_code == 404


def test_a_loop_through_the_path_is_refused(docs: Short, alice: Client, sql: Sql) -> None:
    docs.brand()
    sql("UPDATE links SET url = %(url)s RETURNING 1", url=f"https://{BRANDED}{docs.path}")
    assert docs.ask(path="/a", Host=BRANDED).status_code == 508
    sql("UPDATE links SET url = %(url)s RETURNING 1", url=f"https://{BRANDED}{docs.path}/b")
    assert docs.ask(path="/a", Host=BRANDED).status_code == 508


def test_members_of_links_have_it(alice: Client) -> None:
    made = add(alice, extrapath=True)
    details: dict[str, Any] = alice.get(f"/api/url/{made['id']}").get_json()["details"]
    assert details["extrapath"] is True
    assert alice.put(f"/api/url/{made['id']}/update", {"extrapath": False}).status_code == 200
    assert alice.get(f"/api/url/{made['id']}").get_json()["details"]["extrapath"] is False
