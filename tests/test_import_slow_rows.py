"""Rows of an import that take longer to store than a statement may."""

import json
from typing import Any

import pytest

from linkmgr.db.statements import run
from linkmgr.imports import batch, storing
from linkmgr.repository import bulk
from tests.conftest import Client
from tests.support.archives import zipped
from tests.support.factories import Sql
from tests.support.imported import Import, aliases, counts, sale, shlink


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let PostgreSQL cancel statements that store the link `slow`. Return the numbers of links of all statements."""
    sizes: list[int] = []
    add = bulk.add_links

    def add_links(user_id: int, sent: list[Any], **options: Any) -> Any:
        sizes.append(len(sent))
        if any("slow" in (link.get("custom"), link.get("alias")) for link in sent):
            run("SELECT set_config('statement_timeout', '10', true)")
            run("SELECT pg_sleep(60)")
        return add(user_id, sent, **options)

    monkeypatch.setattr(bulk, "add_links", add_links)
    return sizes


def test_a_row_that_takes_too_long_fails_alone(
    alice: Client, run_import: Import, slow: list[int], sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "MAX_ROWS", 16)
    names = [f"row-{n}" for n in range(60)]
    names[5] = "slow"
    found = run_import(alice, shlink(*map(sale, names)))
    assert counts(found) == ("done", 60, 59, 0, 0, 1)
    assert aliases(sql, alice) == sorted(set(names) - {"slow"})
    [error] = sql("SELECT number, code, message FROM import_rows WHERE code IS NOT NULL")
    assert error == {"number": 6, "code": "busy", "message": batch.TOO_SLOW}
    assert slow[:3] == [16, 8, 4]
    assert slow[-1] < 16 == max(slow[1:]), "batches grow again"


def test_a_line_of_a_zip_that_takes_too_long_fails_alone(
    alice: Client, run_import: Import, slow: list[int], sql: Sql
) -> None:
    lines = [{"url": "https://example.com", "alias": name, "custom": name} for name in ("first", "slow", "last")]
    found = run_import(alice, zipped(manifest__json="{}", links__jsonl="\n".join(map(json.dumps, lines))))
    assert counts(found) == ("done", 3, 2, 0, 0, 1)
    assert aliases(sql, alice) == ["first", "last"]
    assert slow


def test_a_row_has_a_limited_number_of_channels(alice: Client, run_import: Import, sql: Sql) -> None:
    tags = {"many": [f"many {n}" for n in range(101)], "most": [f"most {n}" for n in range(100)], "same": ["x"] * 1000}
    lines = [{"url": "https://example.com", "custom": name, "tags": names} for name, names in tags.items()]
    found = run_import(alice, "\n".join(map(json.dumps, lines)).encode(), "?source=linkmgr")
    assert counts(found) == ("done", 3, 2, 0, 0, 1)
    [failed] = sql("SELECT message FROM import_rows WHERE code IS NOT NULL")
    assert failed["message"] == "tags must have at most 100 names."
    assert sql("SELECT count(*)::int AS number FROM channels") == [{"number": 101}], "the row that failed makes none"
