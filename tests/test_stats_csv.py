"""Statistics over time: administrators, the last minutes, and CSV."""

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask

from linkmgr.core.web.operation import Route
from tests.conftest import Client
from tests.support.document import operations
from tests.support.factories import Sql
from tests.support.operations import Call
from tests.support.reports import TODAY, date, refusal, report, rows
from tests.support.stage import Stage
from tests.support.visited import Store, Visited, purge

# --- administrators


def test_an_administrator_reads_the_statistics_of_a_user_and_of_all(
    admin: Client, alice: Client, bob_link: tuple[Client, int], store: Store, visited: list[Visited]
) -> None:
    bob, link = bob_link[0], visited[0].tracked_id
    store([Visited(bob_link[1], TODAY)])
    assert report(admin)["data"]["totals"] == {"clicks": 0}
    for metrics in ("clicks", "clicks,visitors"):
        counted = {
            user: report(admin, f"metrics={metrics}&user={user}")["data"]["totals"]["clicks"]
            for user in (alice.id, bob.id, "all")
        }
        assert counted == {alice.id: 3, bob.id: 1, "all": 4}
    assert report(admin, f"user={alice.id}&ids={link}")["data"]["totals"] == {"clicks": 3}
    assert report(admin, "user=all&period=all")["data"]["totals"] == {"clicks": 4}
    assert refusal(admin, f"user={bob.id}&ids={link}", 404) == refusal(admin, f"ids={link}", 404)
    assert refusal(admin, "user=987654321", 404) == "There is no user with this id."
    assert "user must be an id such as 17, or all" in refusal(admin, "user=everyone")
    assert "without ids" in refusal(admin, f"user=all&ids={link}")


@pytest.mark.parametrize("path", ["/api/stats", "/api/stats/live"])
def test_only_administrators_name_a_user(alice: Client, bob: Client, path: str) -> None:
    for user in (alice.id, bob.id, 2**62, "all", "x"):
        answer = alice.get(f"{path}?user={user}")
        assert (answer.status_code, answer.get_json()["code"]) == (403, "administrators_only")


# --- live


def test_live_counts_the_last_30_minutes_by_minute(
    alice: Client, admin: Client, bob: Client, store: Store, link: int
) -> None:
    minute = timedelta(minutes=1)
    now = datetime.now(UTC)
    store([Visited(link, now), Visited(link, now, bot=True), Visited(link, now - 10 * minute),
                 Visited(link, now - 31 * minute)])  # fmt: skip
    answer = alice.get("/api/stats/live").get_json()
    assert len(answer["data"]["rows"]) == 30
    counted = {row["time"]: row["clicks"] for row in answer["data"]["rows"] if row["clicks"]}
    assert counted == {at.strftime("%Y-%m-%d %H:%M:00"): 1 for at in (now, now - 10 * minute)}
    assert answer["data"]["totals"] == {"clicks": 2}
    assert alice.get("/api/stats/live?bots=include").get_json()["data"]["totals"] == {"clicks": 3}
    assert bob.get("/api/stats/live").get_json()["data"]["totals"] == {"clicks": 0}
    for user, clicks in ((alice.id, 2), (bob.id, 0), ("all", 2)):
        assert admin.get(f"/api/stats/live?user={user}").get_json()["data"]["totals"] == {"clicks": clicks}
    assert admin.get("/api/stats/live?user=987654321").status_code == 404
    assert alice.get("/api/stats/live?period=7d").status_code == 400


def test_minutes_are_kept_for_two_hours(app: Flask, store: Store, link: int, sql: Sql) -> None:
    now = datetime.now(UTC)
    store([Visited(link, now), Visited(link, now - timedelta(minutes=61))])
    assert sql("SELECT to_char(minute, 'HH24:MI') AS minute FROM visit_minutes") == [{"minute": f"{now:%H:%M}"}]
    for minutes, remaining in ((118, 1), (3, 0)):
        sql("UPDATE visit_minutes SET minute = minute - make_interval(mins => %(n)s) RETURNING 1", n=minutes)
        purge(app)
        assert len(sql("SELECT FROM visit_minutes")) == remaining


# --- CSV

CSV = {"Accept": "text/csv"}


def table(client: Client, path: str) -> list[list[str]]:
    answer = client.get(path, headers=CSV)
    assert (answer.status_code, answer.mimetype) == (200, "text/csv")
    assert answer.text.endswith("\r\n")
    return list(csv.reader(io.StringIO(answer.text, newline="")))


def test_csv_has_the_same_rows(alice: Client, visited: list[Visited]) -> None:
    query = "by=time:day,referrer&metrics=clicks,visitors&period=7d"
    expected = rows(alice, query)
    assert table(alice, f"/api/stats?{query}") == [
        list(expected[0]),
        *[[str(value) for value in row.values()] for row in expected],
    ]
    assert table(alice, "/api/stats?by=country&metrics=visitors")[0] == ["country", "visitors"]
    assert len(table(alice, "/api/stats/live")) == 31


def test_a_null_is_an_empty_cell(free: Client) -> None:
    assert table(free, f"/api/stats?metrics=visitors&from={date(100)}&to={date(99)}") == [
        ["time", "visitors"],
        [date(100), ""],
    ]


@pytest.mark.parametrize("label", ["=1+1", "+1", "-1", "@sum", "\tx", "\rx", 'a"b,c\nd'])
def test_a_cell_that_looks_like_a_formula_is_neutralized(alice: Client, store: Store, link: int, label: str) -> None:
    store([Visited(link, TODAY, browser=label)])
    shown = label if label.startswith("a") else f"'{label}"
    assert table(alice, "/api/stats?by=browser") == [["browser", "clicks"], [shown, "1"]]


def test_json_is_returned_unless_csv_is_preferred(alice: Client) -> None:
    for accept in ("*/*", "application/json", "text/html", "text/csv;q=0.5, application/json", "text/*;q=0.1, */*"):
        assert alice.get("/api/stats", headers={"Accept": accept}).mimetype == "application/json", accept
    assert alice.get("/api/stats", headers={"Accept": "text/csv, application/json;q=0.9"}).mimetype == "text/csv"
    assert alice.get("/api/stats?by=x", headers=CSV).mimetype == "application/json"


@pytest.mark.parametrize(
    "route", [route for route in operations() if route.path.endswith(".csv")], ids=lambda r: r.path
)
def test_a_csv_has_a_path_of_its_own_and_is_also_sent_to_clients_that_accept_it(stage: Stage, route: Route) -> None:
    path = stage.path(Call(route, route.path))
    answer = stage.alice.get(path, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.mimetype) == (200, "text/csv")
    assert len(answer.text.splitlines()) > 1
    assert stage.alice.get(path.removesuffix(".csv"), headers={"Accept": "text/csv"}).data == answer.data
