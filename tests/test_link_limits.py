"""`starts`, `maxclicks` and `expiredurl`: links that do not work yet, or any more."""

import re
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.core.web import passwords
from linkmgr.repository import link_bin
from tests.conftest import Client
from tests.support.factories import Sql, row
from tests.support.pages import get
from tests.support.races import at_once
from tests.support.shortlinks import BRANDED, FACEBOOK, TARGET, Make, add, refused
from tests.support.targets import FIREFOX

SECRET = "https://example.com/secret"
OVER = "https://example.com/over"
PAST, FUTURE = "2020-01-01 08:30:00+00", "2999-01-01 08:30:00+00"
BOT = "curl/8.5"
UNCOUNTED: list[dict[str, Any]] = [
    {"method": "HEAD"},
    {"agent": BOT},
    {"agent": FACEBOOK},
    {"agent": ""},
    {"agent": "Mozilla/4.0 (compatible; ms-office; MSOffice 16)"},
    {"agent": "Microsoft Office Protocol Discovery"},
    {"agent": "Google-Safety"},
    {"agent": "com.apple.WebKit.Networking/8620.1.16.10.11 CFNetwork/1568.300.101 Darwin/24.2.0"},
    {"Sec_Purpose": "prefetch"},
    {"Purpose": "prefetch"},
    {"method": "POST", "agent": BOT},
]
STATES: dict[str, dict[str, Any]] = {
    "": {"starts": PAST, "expiry": FUTURE, "maxclicks": 9},
    "It begins on 2999-01-01 08:30 UTC.": {"starts": FUTURE, "maxclicks": 1},
    "This link has expired": {"starts": PAST, "expiry": "2020-01-02 00:00:00+00", "maxclicks": 9},
    "It has been opened as often as its owner allows.": {"expiry": FUTURE, "maxclicks": 5, "imported_clicks": 5},
}


@pytest.mark.parametrize("expiredurl", ["", OVER])
@pytest.mark.parametrize("text", STATES)
def test_each_state_has_a_page_or_leads_to_the_expiredurl(short: Make, text: str, expiredurl: str) -> None:
    link = short(**STATES[text], expiredurl=expiredurl, geotarget={"germany": "https://example.de/"})
    for request in ({}, {"method": "HEAD"}, {"agent": BOT}):
        answer = link.ask(**request)
        assert answer.headers["Cache-Control"] == "no-store"
        if not text and request:  # no click of a person
            assert (answer.status_code, answer.headers.get("Location")) == (200, None)
        elif expiredurl or not text:
            assert (answer.status_code, answer.headers["Location"]) == (302, expiredurl if text else TARGET)
        else:
            assert answer.status_code == (404 if "begins" in text else 410)
            assert text in answer.text or request.get("method")
    assert link.clicks == (not text)
    assert link.ask(path="/pixels").status_code == 404


def test_only_clicks_of_people_are_taken_and_the_last_one_ends_the_link(short: Make, alice: Client) -> None:
    link = short(maxclicks=2, expiredurl="")
    asked: list[dict[str, Any]] = [{}, *UNCOUNTED, {}, {}]
    statuses = [link.ask(**request).status_code for request in asked]
    assert statuses == [302, *[200] * len(UNCOUNTED), 302, 410]
    assert link.clicks == 2
    alice.put(f"/api/url/{link.id}/update", {"maxclicks": 3})
    assert [link.ask().status_code for _ in range(2)] == [302, 410]


def test_a_limit_that_is_set_counts_the_clicks_that_wait_in_all_processes(
    serve: Callable[..., str], short: Make, alice: Client
) -> None:
    base = serve("--workers", "2")
    address = urlsplit(base)
    for run in range(3):
        link = short()

        def ask(_: int = 0, path: str = link.path) -> int:
            with closing(HTTPConnection(address.hostname or "", address.port, timeout=60)) as client:
                client.request("GET", path, headers={"User-Agent": FIREFOX})
                return client.getresponse().status

        assert set(at_once(30, ask)) == {302}
        change = Request(f"{base}/api/url/{link.id}/update", b'{"maxclicks": 35}', method="PUT")
        change.add_header("Authorization", f"Bearer {alice.key}")
        urlopen(change).close()
        assert [ask() for _ in range(20)] == [302] * 5 + [410] * 15, run
        link.wait_for_clicks(35)
        assert ask() == 410


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"type": "frame"},
        {"type": "splash"},
        {"metatitle": "Sale", "metaimage": "https://example.com/image.png"},
        {"confirmclick": True, "metadescription": "Everything must go."},
        {"variants": [{"name": name, "url": f"{SECRET}/{name}", "weight": 1} for name in "AB"]},
        {"deeplink": {"auto": True, "apple": SECRET, "google": SECRET}},
        {"rules": [{"when": {"hours": {"from": "00:00"}}, "url": SECRET}]},
    ],
    ids=str,
)
def test_what_is_no_click_learns_no_target_of_a_link_with_a_limit(short: Make, columns: dict[str, Any]) -> None:
    link = short(url=SECRET, maxclicks=1, **columns)
    for request in UNCOUNTED:
        answer = link.ask(**request)
        assert answer.status_code == 200, request
        assert "secret" not in f"{answer.headers}{answer.text}", request
        assert "limited number of visits" in answer.text or request.get("method") == "HEAD"
    for path in ("+", "/pixels"):
        assert "secret" not in link.ask(path=path).text
    assert link.clicks == 0


def test_the_list_of_a_campaign_shows_no_target_of_a_link_with_a_limit(short: Make, alice: Client) -> None:
    members = {"name": "Sale", "slug": "sale", "public": True}
    campaign_id = alice.add("/api/campaign/add", members)
    link = short(url=SECRET, maxclicks=1, campaign=campaign_id)
    page = link.app.test_client().get(f"/u/{alice.username}/sale-{campaign_id}").text
    assert (link.path in page, "secret" in page) == (True, False)


@pytest.mark.parametrize("type_", ["direct", "frame"])
def test_with_confirmclick_only_the_button_leads_to_the_target_and_counts(short: Make, type_: str) -> None:
    link = short(url=SECRET, maxclicks=1, confirmclick=True, type=type_, parameters=[["a", "1"]])
    for _ in range(3):
        answer = link.ask(path="?utm_source=news")
        assert (answer.status_code, "secret" in answer.text) == (200, False)
        assert '<form method="post">' in answer.text
        assert "form-action *" in answer.headers["Content-Security-Policy"]
    assert link.clicks == 0
    answer = link.ask(method="POST", path="?utm_source=news")
    assert answer.status_code == (303 if type_ == "direct" else 200)
    assert f"{SECRET}?a=1" in answer.headers.get("Location", answer.text).replace("&amp;", "&")
    link.wait_for_clicks(1)
    [stored] = link.sql("SELECT utm_source FROM visits WHERE tracked_id = %(id)s", id=link.id)
    assert stored == {"utm_source": "news"}
    assert [link.ask(method=method).status_code for method in ("GET", "POST")] == [410, 410]


def test_confirmclick_waits_for_a_limit_and_a_password_is_a_click(short: Make) -> None:
    assert short(confirmclick=True).redirect_target() == TARGET
    link = short(maxclicks=1, confirmclick=True, password_hash=passwords.hashed("secret"))
    assert "Password required" in link.ask().text
    answer = link.ask(method="POST", data={"password": "secret"})
    assert (answer.status_code, answer.headers["Location"]) == (303, TARGET)


def test_of_200_visitors_at_once_exactly_as_many_are_led_on_as_the_limit_allows(
    serve: Callable[..., str], short: Make
) -> None:
    address = urlsplit(serve("--workers", "2"))
    for run in range(4):
        link = short(maxclicks=110, imported_clicks=10)

        def ask(number: int, path: str = link.path) -> int:
            client = HTTPConnection(address.hostname or "", address.port, timeout=60)
            with closing(client):
                client.request("GET", path, headers={"User-Agent": FIREFOX})
                status = client.getresponse().status
            return ask(number, path) if status == 503 else status  # the database has too much to do

        assert Counter(at_once(200, ask, threads=200)) == {302: 100, 410: 100}, run


def test_a_link_keeps_its_counter_in_the_bin_and_loses_it_when_it_is_deleted(
    short: Make, alice: Client, sql: Sql, run_jobs: Callable[[], None], app: Flask
) -> None:
    kept, deleted = short(maxclicks=2), short(maxclicks=2)
    for link in (kept, deleted):
        link.ask()
    with app.app_context():
        link_bin.put(alice.id, kept.id)
        link_bin.restore(alice.id, kept.id)
    alice.delete(f"/api/url/{deleted.id}/delete")
    run_jobs()
    assert sql("SELECT * FROM taken_clicks") == [{"link_id": kept.id, "total": 1}]


def test_a_link_begins_before_it_ends(alice: Client) -> None:
    message = "starts must be before expiry."
    assert refused(alice, starts="2030-01-02", expiry="2030-01-01") == message
    link = add(alice, starts="2030-01-02", expiry="2030-01-02")  # from its beginning to its end
    for path, body in (
        (f"/api/url/{link['id']}/update", {"expiry": "2030-01-01"}),
        ("/api/urls/bulk", {"ids": [link["id"]], "data": {"starts": "2031-01-01"}, "atomic": True}),
    ):
        assert message in alice.put(path, body).text
    record = alice.get(f"/api/url/{link['id']}").get_json()["details"]
    assert (record["starts"], record["expiry"]) == ("2030-01-02 00:00:00", "2030-01-02 23:59:59")


def test_the_form_has_them_and_the_pages_show_the_state(console: FlaskClient, alice: Client, sql: Sql) -> None:
    row(sql, "domains", user_id=alice.id, scheme="https", host=BRANDED, forwardquery=True)
    sent = {"url": TARGET, "domain": f"https://{BRANDED}", "type": "direct", "status": "public",
            "expiredurl": "a.example/x", "starts": "2999-01-31T08:30", "maxclicks": "7"}  # fmt: skip
    page = get(console, path := console.post("/console/links/new", data=sent).headers["Location"])
    assert "not active yet" in page
    assert "Jan 31, 2999, 08:30 UTC" in page
    assert "https://a.example/x" in page
    record = alice.get(f"/api/url/{path.rpartition('/')[2]}").get_json()["details"]
    assert (record["maxclicks"], record["forwardquery"]) == (7, True)
    version = re.findall(r'name="version" value="([^"]+)"', get(console, f"{path}/edit"))[0]
    cleared = sent | {"version": version, "starts": "", "maxclicks": "", "expiry": "2020-01-01T00:00"}
    assert console.post(f"{path}/edit", data=cleared).status_code == 303
    record = alice.get(f"/api/url/{path.rpartition('/')[2]}").get_json()["details"]
    assert (record["starts"], record["maxclicks"], record["forwardquery"]) == (None, 0, False)
    assert '<span class="badge warn">expired</span>' in get(console, "/console/links?expired=yes")


def test_rotators_and_public_lists_have_only_links_that_work(short: Make, alice: Client, sql: Sql) -> None:
    campaign_id = alice.add("/api/campaign/add", {"name": "Sale", "slug": "sale", "public": True})
    made = [short(**columns, campaign=campaign_id) for columns in STATES.values()]
    client = made[0].app.test_client()
    led_to = {client.get("/r/sale").headers["Location"].rpartition("/")[2] for _ in range(20)}
    shown = client.get(f"/u/{alice.username}/sale-{campaign_id}").text
    assert led_to == {made[0].alias} == {link.alias for link in made if link.path in shown}
