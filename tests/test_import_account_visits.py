"""Visits of an exported account: their labels, and those that the plan does not count."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from linkmgr.fields.countries import NAMES
from linkmgr.fields.languages import LANGUAGES
from linkmgr.visits import bots
from tests.conftest import Client
from tests.imported import Import, details
from tests.reports import rows
from tests.test_import_account import export, normalized, zipped

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
        "language": {*(name.capitalize() for name in LANGUAGES.values()), "Unknown"},
    }
    visits: list[Visit] = [{name: label} for name, known in labels.items() for label in known]
    visits += [{"bot": True, "browser": name} for name in (*bots._NAMES, bots._OTHER_BOT)]
    run_import(alice, account(*visits))
    before = export(alice)
    assert alice.delete(f"/api/url/{details(alice, 'sale')['id']}/delete").status_code == 200
    run_import(bob, before)
    assert normalized(export(bob)) == normalized(before)
    lines = normalized(before)["visits"]
    assert {name: {line[name] for line in lines} for name in labels} == labels
