"""Requests that take long have slots of their own, by user, and never wait for one (linkmgr/core/web/pool.py)."""

import re

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from linkmgr.core.web import pool
from linkmgr.qr import image
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.operations import KEYED
from tests.support.pages import ROWS, console_rules, signed_in
from tests.support.shortlinks import Make
from tests.support.slots import full
from tests.support.worlds import World, ask

# The operations whose examples take long, by the code of their error if no slot is free.
LONG = {
    "export_busy": """
        GET /api/users  GET /api/imports/{import_id}/errors  GET /api/imports/{import_id}/errors.csv
        GET /api/account/export  GET /api/urls/export  GET /api/qr/export  GET /api/campaigns/export
        GET /api/channels/export  GET /api/pixels/export  GET /api/splash/export  GET /api/overlay/export
        GET /api/bio/export  GET /api/domains/export  GET /api/overlay/answers/export
        GET /api/url/{link_id}/visits/export  GET /api/qr/{qr_id}/visits/export  GET /api/urls/export.csv
        GET /api/qr/export.csv  GET /api/campaigns/export.csv  GET /api/channels/export.csv
        GET /api/pixels/export.csv  GET /api/splash/export.csv  GET /api/overlay/export.csv
        GET /api/bio/export.csv  GET /api/domains/export.csv  GET /api/overlay/answers/export.csv
        GET /api/url/{link_id}/visits/export.csv  GET /api/qr/{qr_id}/visits/export.csv  GET /api/utm/export
        GET /api/utm/export.csv  GET /api/conversions/export  GET /api/conversions/export.csv""",
}
LONG_PAGES = {
    "/console/export/links.csv", "/console/export/account.zip", "/console/conversions.csv",
    "/console/imports/<id:row_id>/errors",
    "/console/links/<id:row_id>/qr", "/console/links/<id:row_id>/visits.csv",
    "/console/qrs/<id:row_id>/image", "/console/qrs/<id:row_id>/visits.csv",
    "/console/overlays/<id:row_id>/answers.csv",
}  # fmt: skip
_MANY = """
    INSERT INTO links (user_id, alias, url)
    SELECT %(user_id)s, 'many-' || n, 'https://example.com/' || n FROM generate_series(0, %(number)s) n
    RETURNING id
"""


def test_all_operations_that_are_streamed_or_take_long_are_known(world: World) -> None:
    admin, busy = world.clients["administrator"], dict[str, set[str]]()
    for call in sorted(KEYED, key=lambda call: call.method != "GET"):  # before rows are deleted
        ids = world.ids(call, "administrator")
        with full(world.app):
            answer = ask(admin, call, ids)
        if answer.status_code == 503:
            code = answer.get_json()["code"]
            assert code in call.operation.errors
            busy.setdefault(code, set()).add(str(call))
        elif call.method == "GET":
            assert "Content-Length" in ask(admin, call, ids).headers, f"{call} is streamed without a slot"
    assert busy == {code: set(re.findall(r"[A-Z]+ \S+", operations)) for code, operations in LONG.items()}


def test_all_pages_that_are_streamed_or_take_long_are_known(console: FlaskClient, alice: Client, sql: Sql) -> None:
    ids, busy = {word: make(sql, alice.id) for word, make in ROWS.items()}, set()
    image._code.cache_clear()
    for method, rule in console_rules(console.application):
        if method != "GET":
            continue
        path = re.sub("<.*?>", str(ids.get(rule.split("/")[2], 1)) if rule.count("/") > 1 else "", rule)
        with full(console.application):
            is_refused = console.get(path).status_code == 503
        if is_refused:
            busy.add(rule)
        else:
            assert "Content-Length" in console.get(path).headers, f"{rule} is streamed without a slot"
    assert busy == LONG_PAGES


@pytest.fixture
def many(alice: Client, sql: Sql) -> None:
    sql(_MANY, user_id=alice.id, number=pool.MANY_ROWS)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("path", "is_long"),
    [
        ("/api/urls?q=a", True),
        ("/api/urls?order=click", True),
        ("/console/links?q=a", True),
        ("/console/links?status=public", True),
        ("/console/campaigns/{campaign}", True),
        ("/console/statistics?campaign={campaign}", True),
        ("/api/stats?campaign={campaign}&by=time:day", True),
        ("/console/links", False),
        ("/api/urls", False),
        ("/api/stats?by=time:day", False),
    ],
)
def test_searches_and_sums_of_many_links_need_a_place(
    app: Flask, alice: Client, bob: Client, sql: Sql, *, path: str, is_long: bool
) -> None:
    of_alice, of_bob = (signed_in(app, f"{name}@example.com") for name in ("alice", "bob"))

    def get(client: Client, browser: FlaskClient) -> TestResponse:
        url = path.format(campaign=ROWS["campaigns"](sql, client.id))
        return client.get(url) if path.startswith("/api") else browser.get(url)

    with full(app):
        refused = get(alice, of_alice)
        assert (refused.status_code, refused.headers.get("Retry-After")) == ((503, "2") if is_long else (200, None))
        assert get(bob, of_bob).status_code == 200
    assert get(alice, of_alice).status_code == 200


def test_one_password_needs_no_place_and_a_bulk_request_with_several_does(app: Flask, alice: Client) -> None:
    urls = [{"url": "https://example.com", "password": f"secret {number}"} for number in range(2)]
    with full(app):
        assert alice.post("/api/url/add", urls[0]).status_code == 200
        assert alice.post("/api/urls/bulk", {"urls": urls[:1]}).status_code == 200
        assert alice.post("/api/urls/bulk", {"urls": urls}).get_json()["code"] == "password_busy"
    assert alice.post("/api/urls/bulk", {"urls": urls}).status_code == 200


def test_a_cursor_behind_many_visits_of_one_moment_needs_a_place(app: Flask, alice: Client, short: Make) -> None:
    path = f"/api/url/{short().id}/visits?after=20991231T235959.999999-"
    with full(app):
        assert alice.get(f"{path}0").status_code == 200
        assert alice.get(f"{path}999999999").get_json()["code"] == "stats_busy"
