"""Each route of the console for each role in the account of another user."""

import io
import re
from collections.abc import Callable

import pytest
from flask import Flask

from tests.conftest import Client
from tests.support import factories
from tests.support.archives import archive
from tests.support.factories import Sql
from tests.support.joined import joined
from tests.support.pages import ROWS, console_rules, get, seen, signed_in
from tests.support.worlds import Rows

# By the words below /console: what a viewer, an editor and an owner may do, "r" see or "w" change. A new page needs a
# line here, and else is for owners.
EDITED = ("", "links", "qrs", "bios", "campaigns", "channels", "splash", "overlays", "pixels", "utm", "imports",
          "statistics", "conversions")  # fmt: skip
EXPECTED = dict.fromkeys(EDITED, ("r", "w", "w")) | {
    **dict.fromkeys(("domains", "members", "export/links.csv", "conversions.csv"), ("r", "r", "w")),
    **dict.fromkeys(("keys", "webhooks", "export/account.zip"), ("", "", "w")),
    "administration": ("", "", ""),
}
ROLES = ("viewer", "editor", "owner")
READ, CHANGED = "Only owners of this account can open this page", "You can look at this, but not change it"


def word_of(rule: str) -> str:
    parts = rule.split("/")[2:]
    return "/".join(parts) if parts[:1] == ["export"] else (parts or [""])[0]


def test_each_page_of_the_console_states_its_roles(app: Flask) -> None:
    assert {word_of(rule) for _, rule in console_rules(app)} == EXPECTED.keys()


@pytest.mark.parametrize("role", ROLES)
def test_each_route_of_the_console_does_what_the_role_may(
    *, app: Flask, alice: Client, bob: Client, sql: Sql, dump: Callable[[], Rows], role: str
) -> None:
    ids = {word: make(sql, alice.id) for word, make in ROWS.items()}
    browser = joined(app, sql, alice, bob, role)
    before = dump()
    assert len(before["links"]) == len(before["conversions"]) == 1
    wrong, allowed = [], []
    for method, rule in sorted(console_rules(app)):  # reads first
        word = word_of(rule)
        path = re.sub("<any[^>]+>", "links", rule)
        path = re.sub("<[^>]+>", str(ids.get(word, alice.id)), path)
        may = EXPECTED[word][ROLES.index(role)]
        if may == "w" or (may and method == "GET"):
            allowed.append((method, path))
            continue
        answer = browser.open(path, method=method)
        refusal = CHANGED if may else "Only administrators can open" if role == "owner" else READ
        if answer.status_code != 403 or refusal not in answer.text:
            wrong.append((method, path, answer.status_code))
    assert (wrong, dump()) == ([], before)
    for method, path in allowed:
        answer = browser.open(path, method=method)
        answer.get_data()  # a file is streamed
        if answer.status_code in (401, 403) or answer.status_code >= 500:
            wrong.append((method, path, answer.status_code))
        if method == "GET" and role == "viewer":
            assert dump() == before, path
    assert wrong == []


def test_a_viewer_is_told_so_and_sees_no_buttons_that_change(app: Flask, alice: Client, bob: Client, sql: Sql) -> None:
    link = factories.link(sql, alice.id)
    browser = joined(app, sql, alice, bob, "viewer")
    page = get(browser, f"/console/links/{link}")
    assert ('class="console looks"' in page, CHANGED in seen(page)) == (True, True)
    menu = {*re.findall('href="(/console/[a-z]+)', page)}
    assert {"/console/links", "/console/members"} <= menu
    assert not {"/console/keys", "/console/webhooks", "/console/administration"} & menu
    for path in ("conversions", f"conversions/{factories.conversion(sql, alice.id)}"):
        assert 'class="console looks"' in get(browser, f"/console/{path}")
    page = get(joined(app, sql, bob, alice, "editor"), "/console/links")
    assert ('class="console looks"' in page, CHANGED in seen(page)) == (False, False)


@pytest.mark.parametrize(("role", "status"), [("editor", 403), ("owner", 303)])
def test_an_editor_makes_no_domains_of_an_exported_account(
    *, app: Flask, alice: Client, bob: Client, sql: Sql, run_jobs: Callable[[], None], role: str, status: int
) -> None:
    def sent() -> dict[str, tuple[io.BytesIO, str]]:
        return {"file": (io.BytesIO(archive(domains=[{"id": 1, "domain": "https://own.example.net"}])), "a.zip")}

    browser, own = joined(app, sql, alice, bob, role), signed_in(app)
    added = browser.post("/console/imports/new", data=sent()).headers["Location"]
    assert (added == "/console/imports") == (role == "editor")
    draft = own.post("/console/imports/new", data=sent()).headers["Location"]
    assert browser.post(draft, data={}).status_code == status
    run_jobs()
    assert len(sql("SELECT FROM domains")) == (role == "owner")
    file = {"file": (io.BytesIO(b"url\nhttps://example.com\n"), "a.csv")}
    assert browser.post("/console/imports/new", data=file).headers["Location"] > "/console/imports/"


def test_rows_of_the_own_account_do_not_exist_in_the_other_one(
    app: Flask, alice: Client, bob: Client, sql: Sql
) -> None:
    own = {word: make(sql, bob.id) for word, make in ROWS.items()}
    browser = joined(app, sql, alice, bob, "owner")
    for method, rule in console_rules(app):
        word = word_of(rule)
        if "row_id>" in rule and word != "administration":
            path = re.sub("<any[^>]+>", "links", rule)
            answer = browser.open(re.sub("<[^>]+>", str(own[word]), path), method=method)
            assert answer.status_code in (404, 400), (method, path)  # 400: the form lacks a password


def test_without_members_pages_are_the_same_bytes_as_without_the_feature(
    app: Flask, make_app: Callable[..., Flask], register: Callable[..., Client], sql: Sql
) -> None:
    dave = register("dave", plan="Pro")
    factories.key(sql, dave.id)
    browser, other = signed_in(app, "dave@example.com"), make_app(features=["-members"])
    without = other.test_client()
    without.set_cookie("linkmgr", browser.get_cookie("linkmgr").value)  # type: ignore[union-attr]
    for path in ("/console", "/account", "/console/keys", "/console/links/new"):
        first, second = (re.sub('nonce="[^"]+"', "", get(client, path)) for client in (browser, without))
        assert first == second, path


def test_without_the_feature_a_session_works_in_the_own_account(
    app: Flask, make_app: Callable[..., Flask], alice: Client, bob: Client, sql: Sql
) -> None:
    browser, without = joined(app, sql, alice, bob), make_app(features=["-members"]).test_client()
    without.set_cookie("linkmgr", browser.get_cookie("linkmgr").value)  # type: ignore[union-attr]
    assert without.post("/console/channels/new", data={"name": "Own"}).status_code == 303
    assert bob.get("/api/channels").get_json()["data"]["result"] == 1
    assert "Account alice" not in seen(get(without, "/console"))
    assert "Account alice" in seen(get(browser, "/console"))
