"""Imported visits: the labels of an exported account, and visits that the plan does not count."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask

from linkmgr.core.fields.countries import NAMES
from linkmgr.core.fields.languages import NAMES as LANGUAGES
from linkmgr.features.imports import job
from linkmgr.visits import bots
from tests.conftest import Client
from tests.support.archives import archive, export, normalized, zipped
from tests.support.factories import Sql
from tests.support.imported import Import, details, import_of, send, yourls
from tests.support.pages import signed_in, words
from tests.support.reports import rows
from tests.support.targets import Target

NOW = datetime.now(UTC)
Visit = dict[str, Any]
VISIT: Visit = {
    "target": 7,
    "visitor": "ab" * 16,
    "country": "Germany",
    "city": "Berlin",
    "referrer": "t.co",
    "browser": "Firefox",
    "os": "Linux",
    "device": "desktop",
    "kind": "click",
    "language": "German",
    "bot": False,
}


def account(*visits: Visit, clicks: int = 0) -> bytes:
    """Return the zip of an account with one link and its visits, one a second."""
    link = {"id": 7, "url": "https://example.com/", "alias": "sale", "custom": True, "clicks": clicks}
    lines = [
        json.dumps(VISIT | {"time": f"{NOW - timedelta(seconds=n):%Y-%m-%d %H:%M:%S.%f}"} | visit)
        for n, visit in enumerate(reversed(visits), 1)
    ]
    return zipped(manifest__json="{}", links__jsonl=json.dumps(link), visits__jsonl="\n".join(reversed(lines)))


@pytest.mark.parametrize(
    ("visit", "name", "stored"),
    [
        ({}, "country", "Unknown"),
        ({}, "device", "Unknown"),
        ({}, "language", "Unknown"),
        ({"bot": True}, "browser", "Other bot"),
    ],
)
def test_invented_labels_of_imported_visits_are_unknown(
    alice: Client, run_import: Import, visit: Visit, name: str, stored: str
) -> None:
    found = run_import(alice, account(*(visit | {name: f"Label {n}"} for n in range(3)), clicks=3))
    assert (found["state"], found["visits"]) == ("done", 3)
    for query in ("by=", "metrics=clicks,visitors&by="):
        assert [row[name] for row in rows(alice, f"bots=include&{query}{name}")] == [stored]


def test_the_name_of_an_imported_country_is_written_in_one_way(alice: Client, run_import: Import) -> None:
    run_import(alice, account({"country": "gErMaNy"}, {"country": "Bolivia (Plurinational State of)"}))
    assert {row["country"] for row in rows(alice, "by=country")} == {"Germany", "Bolivia"}


def test_all_labels_that_the_service_gives_are_restored(alice: Client, bob: Client, run_import: Import) -> None:
    labels: dict[str, set[str]] = {
        "country": {*NAMES, *(name for names in NAMES.values() for name in names), "Unknown"},
        "device": {"phone", "tablet", "desktop", "Unknown"},
        "language": {*(names[0] for names in LANGUAGES.values()), "Unknown"},
    }
    visits: list[Visit] = [{name: label} for name, known in labels.items() for label in known]
    visits += [{"bot": True, "browser": name} for name in (*bots.NAMES, bots.OTHER_BOT)]
    run_import(alice, account(*visits))
    before = export(alice)
    assert alice.delete(f"/api/url/{details(alice, 'sale')['id']}/delete").status_code == 200
    run_import(bob, before)
    assert normalized(export(bob)) == normalized(before)
    lines = normalized(before)["visits"]
    assert {name: {line[name] for line in lines} for name in labels} == labels


@pytest.mark.parametrize("host", ["bücher.example", "xn--bcher-kva.example"])
def test_a_referrer_with_an_international_host_keeps_it(alice: Client, run_import: Import, sql: Sql, host: str) -> None:
    run_import(alice, yourls("sale", 2, 2).replace(b"t.co", host.encode()))
    assert sql("SELECT DISTINCT referrer FROM visits") == [{"referrer": "xn--bcher-kva.example"}]


# --- visits that the plan does not count


@pytest.fixture
def tiny(register: Callable[..., Client], sql: Sql) -> Client:
    """A user whose plan counts 50 clicks a month."""
    sql(
        """
        INSERT INTO plans (name, free, limits)
        SELECT 'Tiny', false, jsonb_set(limits::jsonb, '{clicks}', '50') FROM plans WHERE name = 'Business' RETURNING 1
        """
    )
    return register("carol", plan="Tiny")


def clicks_of(client: Client, alias: str) -> tuple[int, int | None]:
    """Return the clicks of a link, and its imported clicks."""
    link = details(client, alias)
    return client.get(f"/api/url/{link['id']}").get_json()["data"]["clicks"], link["imported_clicks"]


@pytest.mark.parametrize("clicks", [200, 30])
def test_visits_beyond_the_clicks_of_the_plan_stay_imported_clicks(
    tiny: Client, one_batch: Callable[[], bool], run_jobs: Callable[[], None], monkeypatch: Any, clicks: int
) -> None:
    """A process is killed after each batch."""
    monkeypatch.setattr(job, "MAX_ROWS", 40)
    number = send(tiny, yourls("sale", 120, clicks)).get_json()["id"]
    for _ in range(4):
        assert one_batch()
        job._local.readings.clear()
    run_jobs()
    found = import_of(tiny, number)
    assert (found["state"], found["visits"]) == ("done", 50)
    assert tiny.get("/api/imports").get_json()["data"]["imports"][0]["visits"] == 50
    assert clicks_of(tiny, "sale") == (50, max(clicks - 50, 0) or None)


def test_imported_visits_leave_the_clicks_of_the_month_to_those_that_happen_now(
    app: Flask, tiny: Client, run_import: Import, sql: Sql
) -> None:
    run_import(tiny, account(*[{}] * 50, clicks=50))
    target = Target(app, sql, tiny.id)
    target.visit()
    assert target.clicks == 1
    page = words(signed_in(app, "carol@example.com").get("/account").text)
    assert "1 <small>of 50</small>" in page


def test_refused_bots_of_an_account_are_no_clicks(tiny: Client, run_import: Import) -> None:
    visits: list[Visit] = [{}] * 60 + [{"bot": True}] * 60
    assert run_import(tiny, account(*visits, clicks=70))["visits"] == 100
    assert clicks_of(tiny, "sale") == (50, 20)


PAGE = {"public": True, "period": "all", "tables": ["os"]}


def test_public_statistics_move_with_their_address_and_password(
    *, app: Flask, alice: Client, bob: Client, run_import: Import, sql: Sql
) -> None:
    link = alice.add("/api/url/add", {"url": "https://example.com/", "custom": "sale"})
    hidden = alice.add("/api/url/add", {"url": "https://example.com/hidden", "custom": "hidden"})
    campaign = alice.add("/api/campaign/add", {"name": "Fair"})
    paths = [f"/api/url/{link}/public", f"/api/url/{hidden}/public", f"/api/campaign/{campaign}/public"]
    members = [PAGE | {"password": "open sesame"}, PAGE | {"public": False}, {"public": True, "password": "x"}]
    before = [alice.put(path, sent).get_json()["data"] for path, sent in zip(paths, members, strict=True)]
    exported = export(alice)
    assert run_import(alice, exported)["made"] == 0
    assert [alice.get(path).get_json()["data"] for path in paths] == before
    copies = run_import(alice, exported, "?on_conflict=rename")  # of which the addresses are taken
    assert (copies["made"], copies["failed"]) == (2, 0)
    sql("DELETE FROM links WHERE user_id = %(id)s RETURNING 1", id=alice.id)
    sql("DELETE FROM campaigns WHERE user_id = %(id)s RETURNING 1", id=alice.id)
    assert run_import(bob, exported)["failed"] == 0
    links = {row["alias"]: row["id"] for row in bob.get("/api/urls").get_json()["data"]["urls"]}
    [fair] = bob.get("/api/campaigns").get_json()["data"]["campaigns"]
    paths = [f"/api/url/{links[alias]}/public" for alias in ("sale", "hidden")] + [f"/api/campaign/{fair['id']}/public"]
    assert [bob.get(path).get_json()["data"] for path in paths] == before
    page = urlsplit(before[0]["url"]).path
    answers = [app.test_client().post(page, data={"password": word}) for word in ("wrong", "open sesame")]
    assert [answer.status_code for answer in answers] == [401, 200]


@pytest.mark.parametrize(("token", "is_kept"), [("y" * 43, True), ("x", False), ("../" * 14 + "x", False), (7, False)])
def test_an_address_of_public_statistics_that_can_be_guessed_is_replaced(
    alice: Client, run_import: Import, token: object, is_kept: bool
) -> None:
    link = {"id": 7, "url": "https://example.com/", "custom": "sale", "alias": "sale"}
    assert run_import(alice, archive(links=[link], public=[PAGE | {"link": 7, "token": token}]))["failed"] == 0
    [stored] = alice.get("/api/urls").get_json()["data"]["urls"]
    kept = alice.get(f"/api/url/{stored['id']}/public").get_json()["data"]["url"].rpartition("/")[2]
    assert (kept == token, len(kept)) == (is_kept, 43)


@pytest.mark.parametrize(
    "broken",
    [{"period": "1d"}, {"tables": "os"}, {"password_hash": "x"}, {"password_hash": 7}, {"public": "yes"}],
    ids=str,
)
def test_a_page_of_statistics_with_a_bad_setting_is_not_public(
    alice: Client, run_import: Import, sql: Sql, broken: dict[str, Any]
) -> None:
    link = {"id": 7, "url": "https://example.com/", "custom": "sale", "alias": "sale"}
    found = run_import(alice, archive(links=[link], public=[PAGE | {"link": 7} | broken]))
    assert (found["made"], found["failed"]) == (1, 1)
    assert sql("SELECT FROM public_statistics") == []
    mended = run_import(alice, alice.get(f"/api/imports/{found['id']}/errors.csv").data)
    assert (mended["made"], mended["failed"]) == (0, 1)


def test_conversions_of_an_account_are_restored(alice: Client, bob: Client, run_import: Import, sql: Sql) -> None:
    at = f"{NOW - timedelta(hours=1):%Y-%m-%d %H:%M:%S.%f}"
    labels = {"variant": "A", "country": "Peru", "kind": "x", "color": "red"}
    sale = {"link": 7, "click": at, "date": at, "event": "sale", "order": "A-1", "value": 2.5, "currency": "EUR",
            "source": "page", "problem": "", "labels": labels}  # fmt: skip
    lines = [
        sale,
        sale | {"order": "A-2", "value": None, "problem": "unreadable"},
        sale | {"order": "A-1"},  # again
        sale | {"order": "A-3", "value": "1"},
        sale | {"order": "A-3", "labels": []},
        sale | {"order": "A-3", "click": "x"},
        sale | {"order": "A-3", "link": 8},
    ]
    content = zipped(
        manifest__json="{}",
        links__jsonl=json.dumps({"id": 7, "url": "https://example.com/", "alias": "sale"}),
        conversions__jsonl="\n".join(map(json.dumps, lines)),
    )
    assert run_import(alice, content)["state"] == "done"
    assert run_import(bob, export(alice))["state"] == "done"
    for client in (alice, bob):
        found = client.get("/api/conversions").get_json()["data"]["conversions"]
        shown = [(row["order"], row["value"], row["problem"], row["source"], row["date"]) for row in found]
        assert shown == [("A-2", None, "unreadable", "page", at[:19]), ("A-1", 2.5, "", "page", at[:19])]
        assert found[1]["labels"] == {"variant": "A", "country": "Peru", "kind": "Unknown"}
    assert sql("SELECT DISTINCT click = %(at)s::timestamptz AS same FROM conversions", at=at) == [{"same": True}]


def test_settings_of_conversions_are_restored_where_the_account_has_none(
    alice: Client, bob: Client, run_import: Import
) -> None:
    def setup(client: Client) -> dict[str, Any]:
        data = client.get("/api/conversions/setup").get_json()["data"]
        return {name: data[name] for name in ("clickid", "page_value")}

    alice.put("/api/conversions/setup", {"clickid": True, "page_value": 99.5})
    assert run_import(bob, export(alice))["state"] == "done"
    assert setup(bob) == {"clickid": True, "page_value": 99.5}
    bob.put("/api/conversions/setup", {"page_value": 7})
    assert run_import(bob, export(alice))["state"] == "done"
    assert setup(bob) == {"clickid": True, "page_value": 7}
    found = run_import(alice, archive(settings=[{"page_value": "much"}, {"clickid": False}, {}]))
    assert (found["state"], found["failed"]) == ("done", 1)
    assert "page_value" in alice.get(f"/api/imports/{found['id']}/errors.csv").text
    assert setup(alice) == {"clickid": True, "page_value": 99.5}
