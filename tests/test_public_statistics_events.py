"""The events of public statistics, and what the activity of an account says of them."""

import re
from typing import Any

import pytest
from flask import Flask

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.joined import joined
from tests.support.pages import get, seen
from tests.support.races import at_once
from tests.support.receivers import Deliver, events, subscribe
from tests.support.shortlinks import add

SECRET = "open sesame"
TABLES = ["country", "referrer", "device"]
SHOWN = {"public": True, "haspassword": True, "period": "28d", "tables": TABLES}


def put(client: Client, subject: str, **members: Any) -> dict[str, Any]:
    answer = client.put(f"/api/{subject}/public", {"public": True} | members)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.get_json()["data"]
    return page


@pytest.fixture
def link(alice: Client) -> int:
    return int(add(alice, custom="summer", title="Secret name")["id"])


def test_changes_are_events_and_activity_without_secrets(
    *, app: Flask, alice: Client, bob: Client, sql: Sql, deliver: Deliver, link: int
) -> None:
    browser = joined(app, sql, alice, bob)
    campaign = alice.add("/api/campaign/add", {"name": "Fair"})
    subscribe(alice, "", "public.*")
    browser.post(f"/console/links/{link}/public", data={"period": "7d", "tables": TABLES, "password": SECRET})
    put(alice, f"url/{link}", period="all", tables=["os"])
    put(alice, f"url/{link}")
    put(alice, f"url/{link}", public=False, password="")
    put(alice, f"campaign/{campaign}", public=False)
    token = put(alice, f"campaign/{campaign}", password=SECRET)["url"].rpartition("/")[2]
    put(alice, f"campaign/{campaign}", password="another")
    deliver()
    of_link = {"link": link, "campaign": None, "name": "Secret name"} | SHOWN
    of_campaign = {"link": None, "campaign": campaign, "name": "Fair"} | SHOWN
    read = [(event["actor"]["user"], event.get("changes", {}), event["data"]) for event in events(alice)]
    assert read == [
        (
            bob.id,
            {"public": [False, True], "haspassword": [False, True], "period": ["28d", "7d"]},
            of_link | {"period": "7d"},
        ),
        (
            alice.id,
            {"period": ["7d", "all"], "tables": [TABLES, ["os"]]},
            of_link | {"period": "all", "tables": ["os"]},
        ),
        (
            alice.id,
            {"public": [True, False], "haspassword": [True, False]},
            of_link | {"period": "all", "tables": ["os"], "public": False, "haspassword": False},
        ),
        (alice.id, {"public": [False, True], "haspassword": [False, True]}, of_campaign),
        (alice.id, {}, of_campaign),  # another password
    ]
    rows = alice.get("/api/activity?type=public.*").get_json()["data"]["activity"]
    assert [(row["name"], row["row"], row["actor"]["name"]) for row in rows] == [
        *[("Fair", campaign, "alice")] * 2, *[("Secret name", link, "alice")] * 2, ("Secret name", link, "bob"),
    ]  # fmt: skip
    page = get(browser, "/console/members/activity?type=public.*")
    assert "bob changed the public page Secret name" in seen(page)
    assert "Password: no → yes" in seen(page)
    assert not re.search(f"{SECRET}|another|argon2|{token}", page + str(events(alice)) + str(rows))


def test_of_twenty_requests_at_once_that_show_a_page_one_is_an_event(
    alice: Client, deliver: Deliver, link: int
) -> None:
    subscribe(alice, "", "public.*")
    urls = at_once(20, lambda _: put(alice, f"url/{link}")["url"])
    deliver()
    assert (len(set(urls)), len(events(alice))) == (1, 1)
    at_once(20, lambda number: put(alice, f"url/{link}", period="7d" if number % 2 else "28d"))
    deliver()
    changes = [event["changes"]["period"] for event in events(alice, "limit=50")[1:]]
    assert all(old != new for old, new in changes)
    assert [old for old, _ in changes[1:]] == [new for _, new in changes[:-1]], "each begins where the last one ended"


@pytest.mark.parametrize("selected", ["campaign", "domain"])
def test_events_of_pages_pass_the_filters_of_their_links(
    alice: Client, sql: Sql, deliver: Deliver, link: int, selected: str
) -> None:
    rows = {"campaign": alice.add("/api/campaign/add", {"name": "Fair"}), "domain": factories.domain(sql, alice.id)}
    host = sql("SELECT domain FROM domains")[0]["domain"]
    inside = add(alice, custom="inside", campaign=rows["campaign"], domain=host)["id"]
    subscribe(alice, "", "*", **{selected: rows[selected]})
    for row in (link, inside):
        put(alice, f"url/{row}")
    put(alice, f"campaign/{rows['campaign']}")
    deliver()
    expected = [inside, None] if selected == "campaign" else [inside]
    assert [event["data"]["link"] for event in events(alice)] == expected
