"""`fields` leaves out members of records, in all reads and lists alike."""

from typing import Any

import pytest

from linkmgr.schemas.statistics import STATISTICS
from tests.conftest import Client
from tests.support.document import document
from tests.support.explain import rows_read
from tests.support.operations import READS
from tests.support.stage import Stage

SELECTING = [call for call in READS if call.operation.members and not call.operation.file]


def records(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a list, and the record of a read under each of its names."""
    data = answer["data"]
    if isinstance(data, list):
        return data
    lists = [value for value in data.values() if isinstance(value, list)] if "perpage" in data else []
    names = [name for name in ("details", "record") if name in answer]
    return [row for rows in lists for row in rows] + [answer[name] for name in names]


def test_records_have_the_members_that_are_named_and_their_ids(stage: Stage) -> None:
    for call in SELECTING:
        client, path = stage.caller(call), stage.path(call)
        whole = client.get(path).get_json()
        name = min(records(whole)[-1].keys() - {"id", "last_used"})
        answer = client.get(f"{path}?fields={name},{name}&fields=id")
        part = answer.get_json()
        assert records(part), call
        assert records(part) == [{key: row[key] for key in row if key in ("id", name)} for row in records(whole)], call
        assert (part.keys(), "warnings" in part) == (whole.keys(), False), call
        if "details" in whole or "perpage" in whole["data"]:
            assert part["data"].keys() == whole["data"].keys(), call
        elif "record" in whole:
            assert part["data"] == part["record"], call
        if etag := answer.headers.get("ETag"):
            assert client.get(f"{path}?fields={name}", headers={"If-None-Match": etag}).status_code == 304, call
        refused = client.get(f"{path}?fields={name},nonsense").get_json()
        assert (refused["code"], refused["errors"][0]["field"]) == ("invalid", "fields"), call
        assert f" {name}" in refused["message"], call


def test_every_operation_that_reads_records_has_the_parameter() -> None:
    named = {call.operation.id for call in READS if call.operation.members}
    for call in READS:
        entry = document()["paths"][call.route.path]["get"]
        written = str(call.operation.response)
        reads_records = "'record'" in written or "/Page'" in written or call.operation.id.endswith(".list")
        has_ids = call.operation.id not in ("domains.listMissing", "reports.list")  # paths and links with reports
        assert call.operation.id in named or not (reads_records and has_ids), call
        shared = {"$ref": "#/components/parameters/fields"} in entry.get("parameters", [])
        assert shared == (call.operation.id in named), call


def test_a_link_that_is_found_and_a_csv_have_fewer_members_too(alice: Client) -> None:
    alice.add("/api/url/add", {"url": "https://example.com/", "custom": "Summer"})
    found = alice.get("/api/urls?short=Summer&fields=alias,clicks").get_json()
    assert found["record"].keys() == {"id", "alias"}
    assert found["data"]["urls"][0].keys() == {"id", "alias", "clicks"}
    assert found["data"]["uniqueClicks"] == 0
    assert alice.get("/api/urls?short=Winter&fields=alias").get_json()["code"] == "short_url_unknown"
    for path in ("export?format=csv&", "export.csv?"):
        lines = alice.get(f"/api/urls/{path}fields=status").text.splitlines()
        assert lines[0] == "Long URL,Short code,Domain,Title,Tags,id,status"


def test_without_statistics_they_are_not_read(
    alice: Client, stage: Stage, monkeypatch: pytest.MonkeyPatch, dsn: str
) -> None:
    link, code = f"/api/url/{stage.ids['link']}", f"/api/qr/{stage.ids['qr']}"
    for path in (link, code):
        whole, part = (alice.get(f"{path}?statistics={flag}").get_json() for flag in "10")
        assert whole == alice.get(path).get_json()
        assert part == {name: whole[name] for name in whole if name != "data"}
        assert alice.get(f"{path}?statistics=no").get_json()["errors"][0]["field"] == "statistics"
    more = rows_read(monkeypatch, dsn, lambda: alice.get(link))[-1]
    assert rows_read(monkeypatch, dsn, lambda: alice.get(f"{link}?statistics=0"))[-1] < more
    short = alice.get(link).get_json()["details"]["alias"]
    whole, part = (alice.get(f"/api/urls?short={short}&statistics={flag}").get_json() for flag in "10")
    assert whole["data"].keys() - part["data"].keys() == STATISTICS["properties"].keys()
    assert part["data"]["urls"] == whole["data"]["urls"]
