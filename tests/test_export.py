"""Exports of rows as CSV, JSON and JSON lines."""

import csv
import io
import json
import tracemalloc
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from flask import Flask

from tests.conftest import Client
from tests.support import factories
from tests.support.document import operations
from tests.support.factories import Sql
from tests.support.stage import Stage

PATHS = [route.path for route in operations() if route.path.endswith("/export")]
LISTS = [path for path in PATHS if path != "/api/account/export" and "{" not in path]
COLUMNS = ["Long URL", "Short code", "Domain", "Title", "Tags"]


def table(text: str) -> list[dict[str, str]]:
    assert text.endswith("\r\n")
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def path_of(stage: Stage, path: str) -> str:
    return path.format(link_id=stage.ids["link"], qr_id=stage.ids["qr"])


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/api/account/export"])
def test_all_formats_have_the_same_rows(stage: Stage, path: str) -> None:
    path = path_of(stage, path)
    rows = stage.alice.get(path).get_json()["data"]
    assert len(rows) == 1
    lines = stage.alice.get(path, headers={"Accept": "application/x-ndjson"})
    assert (lines.mimetype, [json.loads(line) for line in lines.text.splitlines()]) == ("application/x-ndjson", rows)
    answer = stage.alice.get(f"{path}?format=csv", headers={"Accept": "application/json"})
    assert answer.content_type == "text/csv; charset=utf-8; header=present"
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="')
    [row] = table(answer.text)
    for name, cell in row.items():
        if name in rows[0]:
            value = rows[0][name]
            expected = value if isinstance(value, str) else "" if value is None else json.dumps(value)
            assert cell.replace(" ", "") == expected.replace(" ", ""), name


def test_a_link_has_the_columns_that_shlink_reads(alice: Client, sql: Sql) -> None:
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=factories.domain(sql, alice.id))[0]["host"]
    channels = [
        alice.add("/api/channel/add", {"name": name, "color": "#fff"}) for name in ("News|letter", "=HYPERLINK()")
    ]
    link = {"url": "https://example.com/a?b=c,d", "metatitle": '+1 "x"', "custom": "Spring", "channel": channels}
    alice.add("/api/url/add", link)
    alice.add("/api/url/add", {"url": "https://example.com/", "domain": host, "custom": "Summer"})
    first, second = table(alice.get("/api/urls/export?format=csv").text)
    assert list(first)[:5] == COLUMNS
    assert [first[name] for name in COLUMNS] == [
        "https://example.com/a?b=c,d", "Spring", "", "'+1 \"x\"", "News letter|=HYPERLINK()"
    ]  # fmt: skip
    assert [second[name] for name in COLUMNS[:3]] == ["https://example.com/", "Summer", host]


def test_a_link_has_the_members_of_a_single_read_but_no_secret(stage: Stage, sql: Sql) -> None:
    link_id = stage.ids["link"]
    sql("UPDATE totals SET clicks = 2, visitors = 1 WHERE tracked_id = %(id)s RETURNING 1", id=link_id)
    stage.alice.put(f"/api/url/{link_id}/update", {"password": "secret", "type": f"overlay-{stage.ids['overlay']}"})
    [link] = stage.alice.get("/api/urls/export").get_json()["data"]
    details = stage.alice.get(f"/api/url/{link_id}").get_json()["details"]
    assert {name: link[name] for name in details if name in link} == {
        name: details[name] for name in details if name in link
    }
    assert set(details) - set(link) == {"longurl", "location", "device"}
    assert "argon2" not in json.dumps(link)
    assert (link["haspassword"], link["clicks"], link["uniqueclicks"]) == (True, 2, 1)


@pytest.mark.parametrize("path", LISTS)
def test_an_export_of_nothing_is_complete(alice: Client, path: str) -> None:
    assert alice.get(path).get_json() == {"error": 0, "data": []}
    assert alice.get(f"{path}?format=jsonl").text == ""
    assert table(alice.get(f"{path}?format=csv").text) == []


@pytest.mark.parametrize("path", PATHS)
def test_a_plan_without_exports_is_a_403(on_plan: Callable[..., Client], sql: Sql, path: str) -> None:
    carol = on_plan(export={"enabled": "0"})
    path = path.format(link_id=factories.link(sql, carol.id), qr_id=factories.qr(sql, carol.id))
    answer = carol.get(path)
    assert (answer.status_code, answer.get_json()["code"]) == (403, "plan_feature")
    assert answer.get_json()["message"] == "Your plan does not include exports. Ask an administrator for another plan."
    sql("UPDATE users SET admin = true WHERE id = %(id)s RETURNING 1", id=carol.id)
    assert carol.get(path).status_code == 200


def test_rows_come_in_the_order_of_their_ids_over_several_batches(alice: Client, bob: Client, sql: Sql) -> None:
    for owner in (alice, bob):
        sql(
            """
            INSERT INTO links (user_id, alias, url)
            SELECT %(owner)s, %(name)s || n, 'https://example.com/' || n FROM generate_series(1, 1234) n RETURNING 1
            """,
            owner=owner.id,
            name=owner.username,
        )
    links = alice.get("/api/urls/export").get_json()["data"]
    assert [link["alias"] for link in links] == [f"alice{n}" for n in range(1, 1235)]
    assert len(alice.get("/api/urls/export?format=jsonl").text.splitlines()) == 1234
    assert len(table(alice.get("/api/urls/export?format=csv").text)) == 1234


def test_all_visits_at_the_same_time_are_exported(alice: Client, sql: Sql) -> None:
    link_id = factories.link(sql, alice.id)
    sql(
        """
        INSERT INTO visits (tracked_id, at, visitor, country, referrer, browser, os)
        SELECT %(id)s, date_trunc('minute', now()) - n %% 2 * interval '1 second', int4send(n), n::text, '', '', ''
          FROM generate_series(1, 2100) n RETURNING 1
        """,
        id=link_id,
    )
    visits = alice.get(f"/api/url/{link_id}/visits/export").get_json()["data"]
    assert sorted(int(visit["country"]) for visit in visits) == list(range(1, 2101))
    assert [visit["time"] for visit in visits] == sorted(visit["time"] for visit in visits)


def test_a_user_has_one_export_at_a_time_and_a_process_two(
    app: Flask, alice: Client, bob: Client, admin: Client
) -> None:
    path = "/api/urls/export"
    with ExitStack() as running:
        for client, code in ((alice, "own_export_busy"), (bob, "export_busy")):
            headers = {"Authorization": f"Bearer {client.key}"}
            response = running.enter_context(app.test_client().get(path, headers=headers, buffered=False))
            assert response.status_code == 200
            refused = alice.get(path) if client is alice else admin.get(path)
            assert (refused.status_code, refused.get_json()["code"]) == (503, code)
    for _ in range(3):
        alice.call("HEAD", path).close()
    assert [alice.get(f"{path}?format=xml").status_code for _ in range(3)] == [400] * 3
    assert [alice.get(path).status_code for _ in range(3)] == [200] * 3


def test_an_export_continues_behind_an_id(alice: Client) -> None:
    ids = [alice.add("/api/channel/add", {"name": f"Channel {number}"}) for number in range(4)]
    rows = alice.get(f"/api/channels/export?after={ids[1]}").get_json()["data"]
    assert [row["id"] for row in rows] == ids[2:]
    assert alice.get("/api/channels/export?after=x").status_code == 400


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "zip"])
def test_memory_does_not_grow_with_the_number_of_rows(alice: Client, sql: Sql, form: str) -> None:
    path = "/api/account/export" if form == "zip" else f"/api/urls/export?format={form}"
    peaks = []
    for number in (1_000, 6_000):
        sql(
            """
            INSERT INTO links (user_id, alias, url)
            SELECT %(owner)s, 'a' || %(number)s || '-' || n, 'https://example.com/' || n
              FROM generate_series(1, %(number)s) n
            RETURNING 1
            """,
            owner=alice.id,
            number=number,
        )
        tracemalloc.start()
        response = alice.http.get(path, headers={"Authorization": f"Bearer {alice.key}"}, buffered=False)
        size = sum(len(block) for block in response.iter_encoded())
        response.close()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert size > 60_000
    assert peaks[1] < peaks[0] + 1_000_000
