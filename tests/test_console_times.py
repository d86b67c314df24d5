"""Times of the console: the ends of the calendar, and hours that a change of the clock repeats."""

import re
from http import HTTPStatus

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import details, get, message, pages, signed_in

URL = "https://example.com/page"
FIRST, LAST = "0001-01-01 00:00:00", "9999-12-31 23:59:59"  # of the calendar
ENDS = pytest.mark.parametrize(("zone", "time"), [("Europe/Berlin", LAST), ("America/New_York", FIRST)])


@ENDS
def test_every_page_shows_times_at_the_ends_of_the_calendar(
    *, app: Flask, admin: Client, alice: Client, sql: Sql, zone: str, time: str
) -> None:
    plan = sql("SELECT id FROM plans WHERE NOT free")[0]["id"]
    assert admin.put(f"/api/plan/{plan}/user/{alice.id}", {"type": "yearly", "expiration": time}).status_code == 200
    for user_id in (admin.id, alice.id):
        factories.key(sql, user_id)
    sql("UPDATE api_keys SET expires = %(time)s::timestamp AT TIME ZONE 'UTC' RETURNING 1", time=time)
    sql("UPDATE users SET timezone = %(zone)s RETURNING 1", zone=zone)
    for client, email in ((admin, "admin@example.com"), (alice, "alice@example.com")):
        link_id = client.add("/api/url/add", {"url": URL, "expiry": time})
        console = signed_in(app, email)
        assert f"{time} UTC" in get(console, f"/console/links/{link_id}")
        for path in ("/account", f"/console/links/{link_id}/edit", *pages(app, sql, client.id)):
            assert console.get(path).status_code < HTTPStatus.INTERNAL_SERVER_ERROR, path
    account = get(signed_in(app, "admin@example.com"), f"/console/administration/users/{alice.id}")
    if time == LAST:
        assert f"Expires on {time} UTC" in account
        assert f"Expires on {time} UTC" in get(signed_in(app), "/account")


@ENDS
def test_a_time_at_the_end_of_the_calendar_can_be_typed(
    console: FlaskClient, alice: Client, zone: str, time: str
) -> None:
    console.post("/account/timezone", data={"timezone": zone})
    typed = (LAST if time == FIRST else FIRST).replace(" ", "T")
    answer = console.post("/console/links/new", data={"url": URL, "expiry": typed})
    assert answer.status_code == 303, message(answer.text, "expiry")
    assert details(alice, int(re.findall(r"\d+$", answer.headers["Location"])[0]))["expiry"] == typed.replace("T", " ")
