"""The activity of an account with members: who changed what."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from typing import Any
from unittest.mock import ANY

import pytest
from flask import Flask

from linkmgr.features.conversions import clicks
from linkmgr.features.webhooks import outbox
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.imported import HEADER, sale
from tests.support.joined import joined
from tests.support.pages import PASSWORD, get, seen, signed_in
from tests.support.races import at_once
from tests.support.receivers import Deliver, events, subscribe

URL = "https://example.com/page"


def activity(client: Client, query: str = "") -> list[dict[str, Any]]:
    return list(client.get(f"/api/activity?{query}").get_json()["data"]["activity"])


def brief(client: Client, query: str = "") -> list[tuple[str, str, str]]:
    return [(row["actor"]["name"], row["type"], row["name"]) for row in activity(client, query)]


def test_the_person_is_named_whatever_the_way(
    *, app: Flask, alice: Client, bob: Client, sql: Sql, deliver: Deliver, run_jobs: Callable[[], None]
) -> None:
    bobs = joined(app, sql, alice, bob, "owner")
    bobs.post("/console/channels/new", data={"name": "By console"})
    form = {"name": "Robot", "scopes": "*", "current_password": PASSWORD}
    secret = re.findall(r'id="secret">(\w+)<', bobs.post("/console/keys/new", data=form).text)[0]
    robot = Client(alice.http, secret)
    robot.add("/api/channel/add", {"name": "By key"})
    robot.add("/api/key/add", {"name": "Of robot", "scopes": ["links:read"]})
    alice.add("/api/channel/add", {"name": "By default key"})
    file = BytesIO("\r\n".join([HEADER, sale("imported")]).encode())
    drafted = bobs.post("/console/imports/new", data={"file": (file, "links.csv")}, content_type="multipart/form-data")
    bobs.post(drafted.headers["Location"], data={"on_conflict": "skip"})
    run_jobs()
    deliver()
    bobs.post(f"{drafted.headers['Location']}/undo")
    run_jobs()
    deliver()
    assert brief(alice) == [
        ("bob", "link.deleted", "Sale"),
        ("bob", "import.finished", "links.csv"),
        ("bob", "link.created", "Sale"),
        ("alice", "channel.created", "By default key"),
        ("bob", "key.created", "Of robot"),
        ("bob", "channel.created", "By key"),
        ("bob", "key.created", "Robot"),
        ("bob", "channel.created", "By console"),
        ("alice", "member.created", ANY),
    ]
    keys = alice.get("/api/keys").get_json()["data"]["keys"]
    assert [(key["name"], key["made_by"]) for key in keys] == [("Of robot", "bob"), ("Robot", "bob")]
    [by_key] = [row for row in activity(alice) if row["name"] == "By key"]
    assert by_key["actor"] == {"user": bob.id, "name": "bob", "key": ANY}
    assert events(alice) == []  # which is for webhooks


def test_what_changed_is_shown_without_secrets(
    app: Flask, alice: Client, bob: Client, sql: Sql, deliver: Deliver
) -> None:
    browser = joined(app, sql, alice, bob)
    subscribe(alice)
    link = alice.add("/api/url/add", {"url": URL, "custom": "sale", "password": "hidden-1"})
    wifi = {"ssid": "home", "encryption": "wpa", "password": "hidden-2"}
    code = alice.add("/api/qr/add", {"type": "wifi", "data": wifi, "name": "Guests"})
    alice.put(f"/api/url/{link}/update", {"title": "Summer", "password": "hidden-3"})
    alice.put(f"/api/qr/{code}/update", {"data": wifi | {"password": "hidden-4"}})
    key = alice.post("/api/key/add", {"name": "Shop", "scopes": ["links:read"]}).get_json()
    alice.post(f"/api/key/{key['id']}/rotate", {"overlap": 0})
    deliver()
    rows = activity(alice)
    assert [(row["type"], row["row"], row["changes"]) for row in rows[:4]] == [
        ("key.updated", key["id"], {"digest": []}),
        ("key.created", key["id"], {}),
        ("qr.updated", code, {"data": []}),
        ("link.updated", link, {"title": ["", "Summer"]}),
    ]
    text = alice.get("/api/activity").text + get(browser, "/console/members/activity")
    assert not re.search(r"hidden-|argon2|lmk_|token", text)
    assert "alice changed the link Summer" in seen(get(browser, "/console/members/activity"))
    assert "Title: none → Summer" in seen(get(browser, "/console/members/activity"))
    assert "link.updated" in {event["type"] for event in events(alice)}


def test_what_people_do_to_conversions_is_noted_and_what_shops_report_is_not(
    app: Flask, alice: Client, bob: Client, sql: Sql, deliver: Deliver
) -> None:
    browser = joined(app, sql, alice, bob)
    subscribe(alice)
    link = alice.add("/api/url/add", {"url": URL})
    with app.app_context():
        click = clicks.click_id(link, datetime.now(UTC).timestamp())
    reported = [{"click": click, "event": "sale", "order": "A-1", "value": 5}, {"click": click, "event": "lead"}]
    sale, lead = (alice.post("/api/conversions", report).get_json()["id"] for report in reported)
    sql("UPDATE conversions SET source = 'page' WHERE id = %(id)s RETURNING 1", id=lead)
    assert alice.post("/api/conversions", {"click": click, "event": "lead", "value": 7}).get_json()["id"] == lead
    browser.post(f"/console/conversions/{sale}", data={"refund": "2"})
    browser.post(f"/console/conversions/{lead}/delete")
    for setup in ({"clickid": True, "page_value": 50}, {"clickid": True}):
        alice.put("/api/conversions/setup", setup)
    deliver()
    rows = activity(alice)
    assert [(row["actor"]["name"], row["type"], row["row"], row["name"], row["changes"]) for row in rows[:-1]] == [
        ("alice", "conversion.setup", None, "", {"clickid": [False, True], "page_value": [None, 50]}),
        ("bob", "conversion.deleted", lead, "lead", {}),
        ("bob", "conversion.changed", sale, "A-1", {"value": [5, 3]}),
        ("alice", "link.created", link, ANY, {}),
    ]
    assert len(activity(alice, "type=conversion.*")) == 3
    assert len(activity(alice, "type=conversion.changed")) == 1
    text = seen(get(browser, "/console/members/activity"))
    assert "bob deleted the conversion lead" in text
    assert "alice changed the settings of conversions" in text
    assert "Click id: no \u2192 yes Page value: none \u2192 50 " in text


def test_an_account_that_never_had_members_notes_nothing(alice: Client, sql: Sql, deliver: Deliver) -> None:
    sql("DELETE FROM outbox RETURNING 1")
    alice.add("/api/channel/add", {"name": "Alone"})
    alice.put("/api/conversions/setup", {"clickid": True})
    assert sql("SELECT FROM outbox WHERE user_id <> 0") == []
    deliver()
    assert activity(alice) == []
    member = alice.add("/api/member/add", {"email": "erin@example.com", "role": "viewer"})
    alice.delete(f"/api/member/{member}/delete")
    alice.add("/api/channel/add", {"name": "With an activity"})
    deliver()
    assert [kind for _, kind, _ in brief(alice)] == ["channel.created", "member.deleted", "member.created"]


def test_filters_and_pages_select(app: Flask, alice: Client, bob: Client, sql: Sql, deliver: Deliver) -> None:
    browser = joined(app, sql, alice, bob)
    for number in range(30):
        alice.add("/api/channel/add", {"name": f"Channel {number}"})
    browser.post("/console/campaigns/new", data={"name": "Of bob"})
    deliver()
    sql("UPDATE events SET created = now() - interval '40 days' WHERE data ->> 'name' = 'Channel 0' RETURNING 1")
    assert [name for *_, name in brief(alice, f"user={bob.id}")] == ["Of bob"]
    assert len(brief(alice, "type=channel.*&limit=100")) == 30
    assert len(brief(alice, "type=channel.created&limit=100&from=2026-01-01&to=2099-01-01")) == 30
    [old] = sql("SELECT to_char(now() - interval '39 days', 'YYYY-MM-DD') AS day")
    assert [name for *_, name in brief(alice, f"to={old['day']}")] == ["Channel 0"]
    assert len(brief(alice, f"from={old['day']}&limit=100")) == 31
    ids, query = [], "limit=7"
    while query:
        data = alice.get(f"/api/activity?{query}").get_json()["data"]
        ids += [row["id"] for row in data["activity"]]
        query = f"limit=7&after={data['next']}" if "next" in data else ""
    assert (len(ids), ids) == (32, sorted(set(ids), reverse=True))
    for query in ("user=x", "type=nope", "type=visit", "from=yesterday", "after=0"):
        assert alice.get(f"/api/activity?{query}").status_code == 400, query
        assert browser.get(f"/console/members/activity?{query}").status_code == (200 if "after" in query else 400)
    page = get(browser, "/console/members/activity")
    assert page.count("created the channel") == 24
    older = re.findall(r'rel="next" href="([^"]+)"', page)[0].replace("&amp;", "&")
    assert get(browser, older).count("created the channel") == 6
    assert bob.get("/api/activity").get_json()["data"]["result"] == 0


def test_a_deleted_person_is_still_named_and_a_deleted_account_leaves_nothing(
    *, app: Flask, alice: Client, bob: Client, admin: Client, sql: Sql, deliver: Deliver, run_jobs: Callable[[], None]
) -> None:
    browser = joined(app, sql, alice, bob)
    browser.post("/console/channels/new", data={"name": "Of bob"})
    deliver()
    admin.delete(f"/api/user/{bob.id}/delete")
    deliver()
    assert brief(alice)[:2] == [("admin", "member.deleted", ANY), ("bob", "channel.created", "Of bob")]
    assert "bob created the channel Of bob" in seen(get(signed_in(app), "/console/members/activity"))
    factories.member(sql, alice.id)
    admin.delete(f"/api/user/{alice.id}/delete")
    run_jobs()
    assert sql("SELECT FROM events WHERE user_id = -%(id)s::bigint", id=alice.id) == []
    assert sql("SELECT FROM outbox WHERE user_id = -%(id)s::bigint", id=alice.id) == []


def test_activity_is_kept_for_90_days_and_bounded(
    app: Flask, alice: Client, sql: Sql, deliver: Deliver, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.member(sql, alice.id)
    for number in range(6):
        alice.add("/api/channel/add", {"name": f"Channel {number}"})
    deliver()
    for days, name in ((91, "Channel 0"), (89, "Channel 1")):
        aged = "UPDATE events SET created = now() - %(age)s * interval '1 day' WHERE data ->> 'name' = %(name)s"
        sql(f"{aged} RETURNING 1", age=days, name=name)
    app.test_cli_runner().invoke(args=["visits", "purge"])
    assert [name for *_, name in brief(alice, "type=channel.*")] == [f"Channel {number}" for number in range(5, 0, -1)]
    monkeypatch.setattr(outbox, "MAX_EVENTS", 3)
    alice.add("/api/channel/add", {"name": "Channel 6"})
    deliver()
    assert [name for *_, name in brief(alice)] == ["Channel 6", "Channel 5", "Channel 4"]


def test_changes_of_many_at_once_are_noted_once_each(
    app: Flask, alice: Client, bob: Client, sql: Sql, deliver: Deliver
) -> None:
    browsers = [joined(app, sql, alice, bob)] + [signed_in(app, "bob@example.com") for _ in range(3)]
    for browser in browsers[1:]:
        browser.post("/account/switch", data={"account": alice.id})
    at_once(12, lambda n: browsers[n % 4].post("/console/channels/new", data={"name": f"Channel {n}"}))
    deliver()
    expected = sorted(("bob", "channel.created", f"Channel {n}") for n in range(12))
    assert sorted(brief(alice, "type=channel.*")) == expected


def test_without_webhooks_members_work_and_have_no_activity(
    make_app: Callable[..., Flask], alice: Client, bob: Client, sql: Sql
) -> None:
    app = make_app(features=["-webhooks"])
    browser = joined(app, sql, alice, bob)
    client = Client(app.test_client(), alice.key)
    assert browser.get("/console/members/activity").status_code == 404
    assert 'href="/console/members/activity' not in get(browser, "/console/members")
    assert client.get("/api/activity").status_code == 404
    assert "Activity" not in client.http.get("/api/openapi.json").text
    assert client.get("/api/members").get_json()["data"]["result"] == 1
    assert browser.post("/console/channels/new", data={"name": "Of bob"}).status_code == 303
