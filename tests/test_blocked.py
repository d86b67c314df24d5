"""Blocked links and hosts: their page, and targets that are refused in every way in."""

from collections.abc import Callable
from typing import Any

import psycopg2
import pytest
from flask import Flask

from linkmgr.repository import public, reports
from linkmgr.resources.reports import decide_reports
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.shortlinks import TARGET, Make

EVIL, BELOW = "https://evil.example/x", "https://www.evil.example/x"
Block = Callable[[str], int]
# Columns of links that lead this visitor to a host below a blocked one
LED: list[dict[str, Any]] = [
    {"url": BELOW},
    {"variants": [{"name": name, "url": BELOW, "weight": 1} for name in "ab"]},
    {"devices": {"windows": BELOW, "linux": BELOW}},
    {"starts": "2999-01-01 00:00:00+00", "expired_url": BELOW},
]
BODIES: list[dict[str, Any]] = [
    {"url": BELOW},
    {"expiredurl": BELOW},
    {"rules": [{"when": {"device": ["mobile"]}, "url": BELOW}]},
    {"variants": [{"name": "a", "url": BELOW, "weight": 1}, {"name": "b", "url": TARGET, "weight": 1}]},
    {"deeplink": {"apple": BELOW}},
    {"geotarget": [{"location": "fr", "link": BELOW}]},
]


@pytest.fixture
def block(located: Flask, admin: Client) -> Block:
    def add(host: str) -> int:
        with located.app_context():
            return reports.block_host(host, by=admin.id)

    return add


@pytest.mark.parametrize("columns", LED, ids=str)
def test_a_link_that_leads_to_a_blocked_host_is_a_page_until_it_is_unblocked(
    short: Make, block: Block, located: Flask, admin: Client, columns: dict[str, Any]
) -> None:
    link, other = short(**columns), short(url="https://notevil.example/")
    assert link.redirect_target() == BELOW
    before, number = link.clicks, block("evil.example")
    answer = link.ask()
    assert (answer.status_code, "Location" in answer.headers) == (410, False)
    assert "This link is blocked" in answer.text
    assert link.clicks == before
    assert other.redirect_target() == "https://notevil.example/"
    with located.app_context():
        reports.unblock(number, by=admin.id)
    assert link.redirect_target() == BELOW


def test_a_try_says_that_the_link_is_blocked(short: Make, block: Block, alice: Client) -> None:
    link, other = short(url=BELOW), short()
    block("evil.example")
    answers = [alice.post(f"/api/url/{row.id}/try", {}).get_json()["data"] for row in (link, other)]
    assert [(answer["state"], answer["url"]) for answer in answers] == [("blocked", None), ("active", TARGET)]


def test_a_blocked_link_stays_so_in_the_bin_and_without_the_database(
    short: Make, located: Flask, alice: Client, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = short(expired_url=TARGET)
    assert link.redirect_target() == TARGET
    assert alice.get(f"/api/url/{link.id}").get_json()["details"]["blocked"] is None
    with located.app_context():
        decide_reports(link.id, "link", by=admin.id)
    with monkeypatch.context() as patched:
        patched.setattr(public, "short_link", lambda *_, **__: (_ for _ in ()).throw(psycopg2.OperationalError))
        assert link.ask().status_code == 503
    assert link.ask().status_code == 410
    assert alice.get(f"/api/url/{link.id}").get_json()["details"]["blocked"]
    alice.delete(f"/api/url/{link.id}/delete?bin=1")
    assert link.ask().status_code == 404
    assert alice.post(f"/api/url/{link.id}/restore", {}).status_code == 200
    assert link.ask().status_code == 410


def test_a_target_on_a_blocked_host_is_refused_in_every_way_in(
    located: Flask, alice: Client, block: Block, sql: Sql
) -> None:
    kept = alice.add("/api/url/add", {"url": EVIL, "geotarget": [{"location": "fr", "link": EVIL}]})
    code = alice.add("/api/qr/add", {"type": "link", "data": EVIL})
    bio = alice.add("/api/bio/add", {"name": "A", "links": [{"title": "x", "url": EVIL}]})
    block("evil.example")
    before = sql("SELECT count(*) FROM links")
    for body in BODIES:
        for answer in (
            alice.post("/api/url/add", {"url": TARGET} | body),
            alice.put(f"/api/url/{kept}/update", body),
            alice.post("/api/urls/bulk", {"urls": [{"url": TARGET} | body, {"url": TARGET}], "atomic": True}),
            alice.put("/api/urls/bulk", {"ids": [kept], "data": body}),
        ):
            found = answer.get_json()
            assert "target_blocked" in (found.get("code"), *(row.get("code") for row in found.get("results", ()))), (
                found
            )
    assert sql("SELECT count(*) FROM links") == before
    shown = alice.get(f"/api/url/{kept}").get_json()["details"]
    assert alice.put(f"/api/url/{kept}/update", {"url": EVIL, "title": "Kept"}).status_code == 200, shown
    qr = {"type": "link", "data": BELOW}
    page = {"name": "B", "links": [{"title": "x", "url": EVIL}, {"title": "y", "url": BELOW}]}
    for answer in (
        alice.post("/api/qr/add", qr),
        alice.put(f"/api/qr/{code}/update", {"data": BELOW}),
        alice.post("/api/bio/add", page),
        alice.put(f"/api/bio/{bio}/update", page),
    ):
        assert (answer.status_code, answer.get_json()["code"]) == (400, "target_blocked")
    assert alice.put(f"/api/bio/{bio}/update", {"links": page["links"][:1]}).status_code == 200
    scan = alice.get(f"/api/qr/{code}").get_json()["details"]["link"].replace("/qr/", "/q/")
    assert located.test_client().get(scan).status_code == 410
