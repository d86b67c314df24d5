"""Events that webhooks subscribe to."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask

from linkmgr.core.database.statements import Row
from linkmgr.features.conversions import clicks
from linkmgr.features.imports import job, links
from linkmgr.features.webhooks.schema import SUBJECTS
from linkmgr.repository import overlay
from linkmgr.visits.dimensions import BY_NAME
from tests.conftest import Client
from tests.support import factories
from tests.support.archives import zipped
from tests.support.bodies import LEAST
from tests.support.factories import Sql
from tests.support.imported import Import, import_of, sale, shlink, yourls
from tests.support.pages import signed_in
from tests.support.receivers import Deliver, Receiver, events, subscribe
from tests.support.visited import Store, Visited, purge

URL = "https://example.com/page"


CHANGES = {"link": {"metatitle": "New"}, "qr": {"data": "Hi"}, "domain": {"redirectroot": URL}, "pixel": {"tag": "x"}}


@pytest.mark.parametrize("kind", SUBJECTS)
def test_each_kind_of_row_has_events_for_its_changes(alice: Client, deliver: Deliver, kind: str) -> None:
    word = "url" if kind == "link" else kind
    subscribe(alice, "", f"{kind}.*")
    row_id = alice.add(f"/api/{word}/add", LEAST[word])
    path = f"/api/{word}/{row_id}"
    before = alice.get(path).get_json()["record"]
    deliver()
    assert alice.put(f"{path}/update", CHANGES.get(kind, {"name": "New"})).status_code == 200
    answer = alice.get(path).get_json()
    deliver()
    assert alice.delete(f"{path}/delete").status_code == 200
    deliver()
    created, changed, deleted = events(alice)
    types = [event["type"] for event in (created, changed, deleted)]
    assert types == [f"{kind}.{change}" for change in ("created", "updated", "deleted")]
    assert {event["data"]["id"] for event in (created, changed, deleted)} == {row_id}
    assert changed["data"] == answer["record"]
    assert {*CHANGES.get(kind, ["name"])} <= changed["changes"].keys()
    for name, values in changed["changes"].items():
        assert values == [before[name], answer["record"][name]]
        assert values[0] != values[1]
    assert all(event["actor"] == {"user": alice.id, "key": None} for event in (created, changed, deleted))
    assert not {"user_id", "password_hash"} & deleted["data"].keys()


@pytest.mark.parametrize("kind", SUBJECTS)
def test_each_event_carries_the_row_of_its_own_write(alice: Client, deliver: Deliver, kind: str) -> None:
    word = "url" if kind == "link" else kind
    subscribe(alice, "", f"{kind}.*")
    changes = CHANGES.get(kind, {"name": "New"})
    path = f"/api/{word}/{alice.add(f'/api/{word}/add', LEAST[word])}"
    written = [alice.get(path).get_json()["record"]]
    for value in ("New", "Newer"):
        body = {name: f"{URL}/{value}" if name == "redirectroot" else value for name in changes}
        assert alice.put(f"{path}/update", body).status_code == 200
        written.append(alice.get(path).get_json()["record"])
    assert alice.delete(f"{path}/delete").status_code == 200
    deliver()
    *carried, deleted = events(alice)
    assert [event["type"].partition(".")[2] for event in carried] == ["created", "updated", "updated"]
    assert [event["data"] for event in carried] == written
    for event, before in zip(carried[1:], written, strict=False):
        [name] = changes
        assert event["changes"][name] == [before[name], event["data"][name]]
    assert deleted["type"] == f"{kind}.deleted"


def test_the_event_of_a_row_that_has_gone_has_its_references_and_passes_filters(
    alice: Client, sql: Sql, deliver: Deliver
) -> None:
    ids = {kind: factories.ALL[kind](sql, alice.id) for kind in ("campaign", "splash", "pixel")}
    [domain] = sql("SELECT domain FROM domains WHERE id = %(id)s", id=factories.domain(sql, alice.id))
    subscribe(alice, "", "link.created", campaign=ids["campaign"])
    members = {"campaign": ids["campaign"], "type": str(ids["splash"]), "pixels": [ids["pixel"]], "password": "walnut"}
    own: Row
    for own in ({}, domain):
        link = alice.add("/api/url/add", {"url": URL} | members | own)
        record = alice.get(f"/api/url/{link}").get_json()["record"]
        assert alice.delete(f"/api/url/{link}/delete").status_code == 200
        deliver()
        assert events(alice)[-1]["data"] == record
        assert record["haspassword"] is True


def test_one_update_of_a_link_and_its_channels_is_one_event(alice: Client, sql: Sql, deliver: Deliver) -> None:
    link, channels = factories.link(sql, alice.id), [factories.channel(sql, alice.id) for _ in range(2)]
    subscribe(alice, "", "link.updated")
    bodies: list[Row] = [{"channel": [channels[0]], "metatitle": "New"}, {"channel": [channels[1]]}, {"channel": []}]
    for body in bodies:
        assert alice.put(f"/api/url/{link}/update", body).status_code == 200
    deliver()
    assert [event.get("changes", {}).get("metatitle") for event in events(alice)] == [["", "New"], None, None]


def test_an_update_names_its_key_and_the_members_that_changed(
    app: Flask, alice: Client, make_key: Callable[..., Client], sql: Sql, deliver: Deliver
) -> None:
    subscribe(alice, "", "link.*")
    rows = {kind: getattr(factories, kind)(sql, alice.id) for kind in ("campaign", "pixel", "splash", "overlay")}
    [domain] = sql("SELECT domain FROM domains WHERE id = %(id)s", id=factories.domain(sql, alice.id))
    link = alice.add("/api/url/add", {"url": URL, "custom": "first", "type": "splash", "password": "old secret"})
    changes: dict[str, Any] = {
        "custom": "second", "expiry": "2098-01-01 00:00:00", "campaign": rows["campaign"], "pixels": [rows["pixel"]],
        "type": f"overlay-{rows['overlay']}", "status": "private", "password": "secret", "title": "Title",
        "geotarget": [{"location": "peru", "link": URL}], "parameters": [{"name": "a", "value": "b"}],
        "languagetarget": [{"language": "french", "link": URL}], "devicetarget": [{"device": "ipad", "link": URL}],
        "deeplink": {"auto": True, "apple": URL}, "domain": domain["domain"], "url": f"{URL}/new",
    }  # fmt: skip
    key, path = make_key(alice, scopes=["links:write"]), f"/api/url/{link}"
    back = {"campaign": 0, "pixels": [], "type": rows["splash"], "expiry": "", "domain": "", "status": "public"}
    derived = {"shorturl", "longurl", "location", "device", "custom", "updated"}
    for body in (changes, back):
        deliver()
        before = alice.get(path).get_json()["record"]
        assert key.put(f"{path}/update", body).status_code == 200
        record = alice.get(path).get_json()["record"]
        assert alice.put(f"{path}/update", {"title": f"Other {len(body)}"}).status_code == 200  # within the same second
        deliver()
        event = events(alice)[-2]
        expected = {name: [before[name], record[name]] for name in record if before[name] != record[name]}
        assert event["changes"] == {name: values for name, values in expected.items() if name not in derived}
        [scoped] = sql("SELECT id FROM api_keys")
        assert event["actor"] == {"user": alice.id, "key": scoped["id"]}
    assert "secret" not in str(events(alice))
    signed_in(app).post(f"/console/links/{link}/delete", data={})
    deliver()
    assert events(alice)[-1]["actor"] == {"user": alice.id, "key": None}


def test_a_refused_change_and_a_link_that_exists_have_no_event(alice: Client, deliver: Deliver) -> None:
    subscribe(alice)
    alice.add("/api/url/add", {"url": URL, "custom": "summer"})
    assert alice.post("/api/url/add", {"url": URL, "custom": "summer"}).status_code == 400
    assert alice.put("/api/url/999/update", {"metatitle": "x"}).status_code == 404
    for _ in range(3):
        alice.add("/api/url/add", {"url": URL})
    deliver()
    assert [event["type"] for event in events(alice)] == ["link.created"] * 2


def test_an_event_goes_only_to_its_owner(alice: Client, bob: Client, receiver: Receiver, deliver: Deliver) -> None:
    subscribe(alice, receiver.url)
    subscribe(bob)
    bob.add("/api/url/add", {"url": URL})
    deliver()
    assert not receiver.received
    assert events(alice) == []
    assert len(events(bob)) == 1


def test_without_a_subscription_nothing_is_recorded(alice: Client, bob: Client, sql: Sql, deliver: Deliver) -> None:
    subscribe(bob, "", "channel.*")
    subscribe(alice, "", "campaign.*")
    alice.add("/api/url/add", {"url": URL})
    deliver()
    assert sql("SELECT FROM events WHERE user_id > 0 UNION ALL SELECT FROM outbox") == []


def test_a_webhook_that_is_off_gets_nothing(alice: Client, receiver: Receiver, deliver: Deliver) -> None:
    webhook_id, _ = subscribe(alice, receiver.url)
    alice.put(f"/api/webhook/{webhook_id}/update", {"active": False})
    alice.add("/api/url/add", {"url": URL})
    deliver()
    assert not receiver.received
    assert events(alice) == []


def test_filters_select_the_links_and_visits_of_a_row(alice: Client, sql: Sql, store: Store, deliver: Deliver) -> None:
    for name, make in (
        ("campaign", factories.campaign), ("channel", factories.channel), ("domain", factories.domain)
    ):  # fmt: skip
        row_id = make(sql, alice.id)
        webhook_id, _ = subscribe(alice, "", "link.created", "visit", **{name: row_id})
        value: Any = row_id
        if name == "domain":
            value = alice.get(f"/api/domain/{row_id}").get_json()["data"]["domain"]
        inside = alice.add("/api/url/add", {"url": f"{URL}?{name}", name: value})
        outside = alice.add("/api/url/add", {"url": f"{URL}?other{name}"})
        store([Visited(outside, datetime.now(UTC))])
        deliver()
        store([Visited(inside, datetime.now(UTC))])
        deliver()
        created, visited = events(alice)[-2:]
        assert (created["type"], created["data"]["id"]) == ("link.created", inside)
        assert visited["data"]["visits"][0]["id"] == inside
        assert len(events(alice, f"after={created['id'] - 1}")) == 2
        alice.delete(f"/api/webhook/{webhook_id}/delete")


def test_visits_are_gathered_and_carry_no_address(
    alice: Client, store: Store, sql: Sql, receiver: Receiver, deliver: Deliver
) -> None:
    subscribe(alice, receiver.url, "visit", "scan")
    link_id, code = factories.link(sql, alice.id), factories.qr(sql, alice.id)
    now = datetime.now(UTC)
    store(
        [Visited(link_id, now, referrer="r" * 250, city="c" * 250) for _ in range(90)]
        + [Visited(code, now), Visited(link_id, now, bot=True), Visited(link_id, now - timedelta(days=2))]
    )
    deliver()
    visits = [delivery.json for delivery in receiver.received if delivery.json["type"] == "visit"]
    assert sorted(len(event["data"]["visits"]) for event in visits) == [10, 40, 40]
    assert all(len(delivery.body) < 20_000 for delivery in receiver.received)
    [scan] = [delivery.json for delivery in receiver.received if delivery.json["type"] == "scan"]
    [visit] = scan["data"]["visits"]
    assert visit.keys() == {"id", "shorturl", "time", *BY_NAME, "country_code"}
    assert visit["shorturl"] == alice.get(f"/api/qr/{code}").get_json()["details"]["link"]


def test_an_answer_to_an_overlay_is_an_event(app: Flask, alice: Client, sql: Sql, deliver: Deliver) -> None:
    subscribe(alice, "", "answer.received")
    overlay_id = factories.overlay(sql, alice.id)
    with app.app_context():
        overlay.add_answer(alice.id, overlay_id, answer='{"email": "visitor@example.com"}')
    deliver()
    [event] = events(alice)
    [answer] = alice.get(f"/api/overlay/{overlay_id}/answers").get_json()["data"]["answers"]
    assert event["data"] == answer | {"overlay": overlay_id}


def test_an_answer_that_is_imported_is_an_event(alice: Client, run_import: Import, deliver: Deliver) -> None:
    subscribe(alice, "", "answer.received")
    lines = {
        "overlays__jsonl": '{"id": 1, "type": "newsletter", "name": "n"}',
        "answers__jsonl": '{"overlay": 1, "answer": {"email": "visitor@example.com"}, "date": "2026-01-02 03:04:05"}',
    }
    run_import(alice, zipped(manifest__json="{}", links__jsonl="", **lines))
    deliver()
    [event] = events(alice)
    assert (event["data"]["answer"], event["data"]["date"]) == ({"email": "visitor@example.com"}, "2026-01-02 03:04:05")


def test_a_link_that_is_imported_with_clicks_is_created_once(
    alice: Client, run_import: Import, deliver: Deliver
) -> None:
    subscribe(alice, "", "link.*")
    assert run_import(alice, shlink(sale("summer", clicks=7)))["made"] == 1
    deliver()
    [event] = events(alice)
    assert (event["type"], event["data"]["imported_clicks"]) == ("link.created", 7)


def test_the_numbers_and_dates_of_an_import_are_no_changes(
    *, alice: Client, bob: Client, run_import: Import, deliver: Deliver, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "MAX_ROWS", 2)
    subscribe(alice, "", "link.*")
    assert run_import(alice, yourls("summer", 5, 9))["visits"] == 5
    deliver()
    assert [event["type"] for event in events(alice)] == ["link.created"]

    for kind in ("campaign", "channel", "qr", "bio"):
        factories.ALL[kind](sql, alice.id)
    sql("UPDATE campaigns SET created = now() - interval '1 day' RETURNING 1")
    subscribe(bob, "", *(f"{kind}.*" for kind in SUBJECTS))
    assert run_import(bob, alice.get("/api/account/export").data, "?on_conflict=rename")["made"] == 5
    deliver()
    assert {event["type"] for event in events(bob)} == {
        f"{kind}.created" for kind in ("link", "campaign", "channel", "qr", "bio")
    }


def test_each_end_of_an_import_is_an_event(
    *, app: Flask, alice: Client, sql: Sql, run_import: Import, deliver: Deliver, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe(alice, "", "import.finished")
    run_import(alice, shlink(sale("sale")))
    with monkeypatch.context() as patched:
        patched.delattr(links, "store")
        run_import(alice, shlink(sale("fails")))
    for _ in range(2):
        factories.an_import(sql, alice.id)
    newest, expired = (row["id"] for row in sql("SELECT id FROM imports WHERE state = 'paused' ORDER BY id DESC"))
    assert alice.delete(f"/api/imports/{newest}").status_code == 200
    sql("UPDATE imports SET created = now() - interval '8 days' WHERE id = %(id)s RETURNING 1", id=expired)
    purge(app)
    deliver()
    ended = {event["data"]["id"]: event["data"] for event in events(alice)}
    assert [ended[number]["state"] for number in sorted(ended)] == ["done", "failed", "cancelled", "cancelled"]
    assert ended == {number: import_of(alice, number) for number in ended}


def test_the_last_row_that_a_plan_allows_is_announced(alice: Client, sql: Sql, deliver: Deliver) -> None:
    sql("""UPDATE plans SET limits = jsonb_set(limits::jsonb, '{links}', '2') WHERE name = 'Business' RETURNING 1""")
    try:
        subscribe(alice, "", "plan.limit_reached")
        for number in range(2):
            alice.add("/api/url/add", {"url": f"{URL}?{number}"})
        assert alice.post("/api/url/add", {"url": f"{URL}?3"}).status_code == 400
    finally:
        sql("UPDATE plans SET limits = jsonb_set(limits::jsonb, '{links}', '0') WHERE name = 'Business' RETURNING 1")
    deliver()
    assert [event["data"] for event in events(alice)] == [{"resource": "links", "limit": 2}]


def test_an_update_that_changes_nothing_is_no_event(alice: Client, deliver: Deliver, sql: Sql) -> None:
    pixel_id = factories.pixel(sql, alice.id)
    channels = [factories.channel(sql, alice.id) for _ in range(3)]
    link = {"url": URL, "metatitle": "Title", "pixels": [pixel_id], "channel": channels[0]}
    link_id, splash_id = alice.add("/api/url/add", link), alice.add("/api/splash/add", {"name": "Launch"})
    subscribe(alice)

    def put(path: str, body: dict[str, Any]) -> list[str]:
        before = len(events(alice, "limit=100"))
        assert alice.put(path, body).status_code == 200
        deliver()
        return [event["type"] for event in events(alice, "limit=100")[before:]]

    assert put(f"/api/url/{link_id}/update", link) == []
    assert put("/api/urls/bulk", {"ids": [link_id], "data": link}) == []
    assert put(f"/api/splash/{splash_id}/update", {"name": "Launch"}) == []
    assert put(f"/api/url/{link_id}/update", {"pixels": []}) == ["link.updated"]
    assert put(f"/api/url/{link_id}/update", {"channel": channels[1]}) == ["link.updated"]
    changes = {"metatitle": "Other", "pixels": [pixel_id], "channel": channels[2]}
    assert put(f"/api/url/{link_id}/update", changes) == ["link.updated"]


def test_conversions_are_events_when_they_are_stored_and_corrected(
    app: Flask, alice: Client, deliver: Deliver, sql: Sql
) -> None:
    campaign = factories.campaign(sql, alice.id)
    inside, outside = (alice.add("/api/url/add", {"url": URL} | of) for of in ({"campaign": campaign}, {"title": "x"}))
    subscribe(alice, "", "conversion.*", campaign=campaign)
    now = datetime.now(UTC).timestamp()
    with app.app_context():
        ids = [clicks.click_id(link, now) for link in (inside, outside)]
    for click in (*ids, ids[0]):  # again
        alice.post("/api/conversions", {"click": click, "value": 5})
    [row_id] = [row["id"] for row in sql("SELECT id FROM conversions WHERE tracked_id = %(id)s", id=inside)]
    record = alice.get(f"/api/conversion/{row_id}").get_json()["data"]
    path = f"/api/conversion/{row_id}/update"
    for body in ({"value": 5}, {"refund": 2}, {"value": 3}):
        assert alice.put(path, body).status_code == 200
    sql("UPDATE conversions SET source = 'page' WHERE id = %(id)s RETURNING 1", id=row_id)
    assert alice.post("/api/conversions", {"click": ids[0], "value": 7}).get_json()["id"] == row_id
    last = alice.get(f"/api/conversion/{row_id}").get_json()["data"]
    alice.delete(f"/api/conversion/{row_id}/delete")
    deliver()
    created, changed, replaced, deleted = events(alice)
    assert (created["type"], created["data"]) == ("conversion.created", record)
    assert (changed["type"], changed["data"]["value"]) == ("conversion.changed", 3)
    assert (changed["actor"], changed["changes"]) == ({"user": alice.id, "key": None}, {"value": [5, 3]})
    assert (replaced["type"], replaced["data"]["value"], "changes" in replaced) == ("conversion.changed", 7, False)
    assert (deleted["type"], deleted["data"], deleted["actor"]["user"]) == ("conversion.deleted", last, alice.id)


def test_a_deleted_link_is_announced_with_its_short_url(
    alice: Client, make_key: Callable[..., Client], deliver: Deliver, sql: Sql
) -> None:
    subscribe(alice)
    restricted = make_key(alice, own_only=True)  # it may not use the domain
    [domain] = sql("SELECT domain AS name FROM domains WHERE id = %(id)s",
                   id=factories.domain(sql, alice.id))  # fmt: skip
    for client, members in ((alice, {}), (alice, {"domain": domain["name"]}), (restricted, {"domain": domain["name"]})):
        link_id = client.add("/api/url/add", {"url": URL, "custom": "gone", "metatitle": "T"})
        assert alice.put(f"/api/url/{link_id}/update", members).status_code == 200
        record = alice.get(f"/api/url/{link_id}").get_json()["details"]
        assert client.delete(f"/api/url/{link_id}/delete").status_code == 200
        deliver()
        data = events(alice)[-1]["data"]
        names = ("id", "alias", "url", "shorturl", "domain")
        assert {name: data[name] for name in names} == {name: record[name] for name in names}
