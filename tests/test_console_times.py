"""Times of the console: the ends of the calendar, and hours that a change of the clock repeats."""

import re
from http import HTTPStatus

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import details, get, message, pages, seen, signed_in, visit, words
from tests.support.visited import Store

URL = "https://example.com/page"
FIRST, LAST = "0001-01-01 00:00:00", "9999-12-31 23:59:59"  # of the calendar
SHOWN = {FIRST: "Jan 1, 1, 00:00 UTC", LAST: "Dec 31, 9999, 23:59 UTC"}
DAY = "[A-Z][a-z]{2} [0-9]{1,2}, [0-9]+"
CLOCK = f"{DAY}, [0-9]{{2}}:[0-9]{{2}}"
ENDS = pytest.mark.parametrize(("zone", "time"), [("Europe/Berlin", LAST), ("America/New_York", FIRST)])


@ENDS
def test_every_page_shows_times_at_the_ends_of_the_calendar(
    *, app: Flask, admin: Client, alice: Client, sql: Sql, zone: str, time: str
) -> None:
    paths = {user_id: [*pages(app, sql, user_id)] for user_id in (admin.id, alice.id)}
    plan = sql("SELECT id FROM plans WHERE NOT free")[0]["id"]
    assert admin.put(f"/api/plan/{plan}/user/{alice.id}", {"type": "yearly", "expiration": time}).status_code == 200
    for user_id in (admin.id, alice.id):
        factories.key(sql, user_id)
    sql("UPDATE api_keys SET expires = %(time)s::timestamp AT TIME ZONE 'UTC' RETURNING 1", time=time)
    sql("UPDATE users SET timezone = %(zone)s RETURNING 1", zone=zone)
    for client, email in ((admin, "admin@example.com"), (alice, "alice@example.com")):
        link_id = client.add("/api/url/add", {"url": URL, "expiry": time})
        console = signed_in(app, email)
        assert SHOWN[time] in get(console, f"/console/links/{link_id}")
        for path in ("/account", f"/console/links/{link_id}/edit", *paths[client.id]):
            assert console.get(path).status_code < HTTPStatus.INTERNAL_SERVER_ERROR, path
    account = get(signed_in(app, "admin@example.com"), f"/console/administration/users/{alice.id}")
    if time == LAST:
        assert f"Expires on {SHOWN[time]}" in account
        assert f"Expires on {SHOWN[time]}" in get(signed_in(app), "/account")


@ENDS
def test_a_time_at_the_end_of_the_calendar_can_be_typed(
    console: FlaskClient, alice: Client, zone: str, time: str
) -> None:
    console.post("/account/timezone", data={"timezone": zone})
    typed = (LAST if time == FIRST else FIRST).replace(" ", "T")
    answer = console.post("/console/links/new", data={"url": URL, "expiry": typed})
    assert answer.status_code == 303, message(answer.text, "expiry")
    assert details(alice, int(re.findall(r"\d+$", answer.headers["Location"])[0]))["expiry"] == typed.replace("T", " ")


def test_all_pages_show_times_in_one_format_with_the_zone(*, app: Flask, admin: Client, sql: Sql, store: Store) -> None:
    link_id = factories.link(sql, admin.id)
    domain = factories.domain(sql, admin.id)
    store([visit(link_id, days=2), visit(link_id)])
    sql("UPDATE users SET timezone = 'Europe/Berlin' WHERE id = %(id)s RETURNING 1", id=admin.id)
    old = "created = '2026-01-31 12:34:56+00', updated = '2026-01-31 12:34:56+00'"
    sql(f"UPDATE links SET {old}, expiry = '2050-07-01 10:00:00+00' WHERE id = %(id)s RETURNING 1", id=link_id)
    browser = signed_in(app, "admin@example.com")
    for path in ("/account", *pages(app, sql, admin.id, links=link_id, domains=domain)):
        answer = browser.get(path)
        if answer.mimetype != "text/html":
            continue
        for stamp, title, text in re.findall(
            r'<time datetime="([^"]*)"(?: title="([^"]*)")?>([^<]*)</time>', answer.text
        ):
            assert re.fullmatch("[0-9-]{10}T[0-9:]{8}Z", stamp), path
            assert re.fullmatch(rf"{CLOCK} CES?T", title or text), (path, title)
            assert re.fullmatch(rf"{CLOCK}( CES?T)?|{DAY}|just now|[0-9]+ (minute|hour)s? ago", text), (path, text)
        assert not re.search("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:", seen(answer.text)), path
    shown = '<time datetime="2026-01-31T12:34:56Z" title="Jan 31, 2026, 13:34 CET">Jan 31, 2026'
    listed, page = (get(browser, path) for path in ("/console/links", f"/console/links/{link_id}"))
    assert (f"Created {shown}</time>" in words(listed), f"{shown}, 13:34 CET</time>" in page) == (True, True)
    assert "expires Jul 1, 2050, 12:00 CEST" in seen(page)
    visits = page.split("<h2>Latest visits</h2>")[1].split("</table>")[0]
    assert '<th scope="col">Time, Europe/Berlin</th>' in visits
    assert len(re.findall(f">{CLOCK}</time>", visits)) == 2


def test_the_time_zone_can_be_chosen_on_the_first_page_with_any_zone_and_links(
    console: FlaskClient, alice: Client, sql: Sql
) -> None:
    factories.link(sql, alice.id)
    for zone in ("UTC", "Asia/Tokyo"):
        console.post("/account/timezone", data={"timezone": zone})
        page = get(console, "/console")
        assert 'action="/account/timezone" data-offer hidden' in page
        assert f"Times are shown in the time zone {zone}." in page
