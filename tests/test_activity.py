"""The audit trail: /console/administration/activity."""

import re
from functools import partial
from html import unescape

import pytest
from flask import Flask

from linkmgr.console import admin_activity as activity
from tests.conftest import Client
from tests.support import explain
from tests.support.factories import Sql
from tests.support.pages import PASSWORD, get, signed_in, words
from tests.support.receivers import Deliver
from tests.support.schemas import execute

PATH = "/console/administration/activity"


def lines(page: str) -> list[str]:
    """Return the text of each event without its time."""
    events = re.findall("<li><div>(.*?)</li>", page.replace("<br><small>", "").replace("<br>", "; "), re.DOTALL)
    return [words(unescape(re.sub("<time.*?</time>|<[^>]+>", "", event))).replace(" ,", ",") for event in events]


def test_administrators_read_what_happened_without_a_subscription(
    *, app: Flask, admin: Client, alice: Client, bob: Client, deliver: Deliver, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = alice.post("/api/key/add", {"name": "Robot <1>", "scopes": ["links:read"]}).get_json()
    alice.put(f"/api/key/{key['id']}/update", {"scopes": ["links:write", "links:read"]})
    admin.put(f"/api/user/{alice.id}/update", {"suspended": "access"})
    admin.put(f"/api/user/{alice.id}/update", {"suspended": "no"})
    admin.get(f"/api/user/{alice.id}")
    admin.delete(f"/api/user/{bob.id}/delete")
    app.test_cli_runner().invoke(args=["users", "login", "alice"])
    app.test_cli_runner().invoke(args=["plans", "add", "Extra", "--free"])
    console = signed_in(app)
    console.post("/account/password", data={"password": "another password", "current_password": PASSWORD})
    browser = signed_in(app, "admin@example.com")
    deliver()
    trail = lines(get(browser, PATH))
    assert trail[:11] == [
        "admin signed in",
        "The user alice was changed, by alice; Password",
        "alice signed in",
        "The plan Extra was created, on the server",
        "A sign-in link for alice was created, on the server",
        "The user bob was deleted, by admin",
        "The API key of alice was shown, by admin",
        "The user alice was changed, by admin; Suspended: access → no",
        "The user alice was changed, by admin; Suspended: no → access",
        "The API key Robot <1> of alice was changed, by alice; Scopes: links:read → links:write, links:read",
        "The API key Robot <1> of alice was created, by alice",
    ]
    assert "The user alice was changed, on the server; Plan: Free plan → Business" in trail
    monkeypatch.setattr(activity, "_PER_PAGE", 4)
    pages, page = [], get(browser, f"{PATH}?user={alice.id}")
    while older := re.search('rel="next" href="(.+?)"', page):
        pages.append(lines(page))
        page = get(browser, unescape(older[1]))
    assert [line for older in [*pages, lines(page)] for line in older] == [line for line in trail if "alice" in line]
    assert "Newest" in page


def test_the_events_of_a_user_are_found_without_reading_those_of_others(
    app: Flask, admin: Client, sql: Sql, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = """'{"user_id": 0}', '{"actor": {"user": 0}}'"""
    columns, numbers = "user_id, type, data, extra, created", "generate_series(1, 40000)"
    sql(f"INSERT INTO events ({columns}) SELECT 0, 'audit.key', {data}, now() FROM {numbers} RETURNING 1")
    execute(dsn, "ANALYZE events")
    browser = signed_in(app, "admin@example.com")
    blocks = explain.blocks_read(monkeypatch, dsn, partial(browser.get, f"{PATH}?user={admin.id}"))
    assert max(blocks) < 600, blocks  # of more than 1200
