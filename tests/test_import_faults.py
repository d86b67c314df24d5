"""Faults of imports that users found."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from linkmgr.imports import storing
from linkmgr.repository import plans
from tests.conftest import BASE_URL, Client
from tests.support.archives import zipped
from tests.support.factories import Sql
from tests.support.imported import Import, aliases, counts, details, sale, send, shlink

PAGE = "https://example.com"


def test_links_of_other_services_keep_aliases_of_one_character(alice: Client, run_import: Import, app: Flask) -> None:
    assert counts(run_import(alice, shlink(sale("1"), sale("a-"), sale("q")))) == ("done", 3, 2, 0, 0, 1)
    assert alice.post("/api/urls/bulk", {"urls": [{"url": PAGE, "custom": "2"}]}).get_json()["created"] == 1
    for alias in ("1", "2", "a-"):
        assert details(alice, alias)["shorturl"] == f"{BASE_URL}/{alias}"
        assert app.test_client().get(f"/{alias}").status_code == 302


def test_no_way_into_the_service_gives_an_alias_that_the_plan_denies(
    app: Flask, register: Callable[..., Client], run_import: Import, sql: Sql
) -> None:
    with app.app_context():
        plans.add("Plain", free=False, limits={"api": {"enabled": "1"}, "alias": {"enabled": "0"}})
    carol, said = register("carol", plan="Plain"), "Your plan does not include custom aliases. Ask an administrator"
    link: dict[str, Any] = {"url": PAGE, "custom": "chosen"}
    assert carol.post("/api/url/add", link).get_json()["message"].startswith(said)
    assert carol.post("/api/urls/bulk", {"urls": [link]}).get_json()["results"][0]["message"].startswith(said)
    archive = zipped(manifest__json="{}", links__jsonl=json.dumps(link | {"id": 1, "alias": "chosen"}))
    for file in (shlink(sale("chosen")), archive):
        for rule in ("skip", "rename", "update"):
            found = run_import(carol, file, f"?on_conflict={rule}")
            assert counts(found) == ("done", 1, 0, 0, 0, 1)
            assert said in carol.get(f"/api/imports/{found['id']}/errors").text
    assert aliases(sql, carol) == []


@pytest.mark.parametrize("title", ["=1", "'=1", "''@x", "'-", "'plain", "-"])
def test_a_text_that_a_spreadsheet_would_read_as_a_formula_survives_export_and_import(
    alice: Client, bob: Client, run_import: Import, title: str
) -> None:
    alice.add("/api/url/add", {"url": PAGE, "custom": "formula", "metatitle": title})
    exported = alice.get("/api/urls/export", headers={"Accept": "text/csv"}).get_data()
    assert counts(run_import(bob, exported, "?on_conflict=rename"))[2] == 1
    assert details(bob, "formula-2")["metatitle"] == title


def test_a_user_who_is_deleted_during_an_import_causes_no_error(
    *,
    alice: Client,
    admin: Client,
    run_jobs: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    sql: Sql,
) -> None:
    prepare = storing.prepare

    def deleting(*arguments: Any) -> Any:
        prepared = prepare(*arguments)
        assert admin.delete(f"/api/user/{alice.id}/delete").status_code == 200
        return prepared

    monkeypatch.setattr(storing, "prepare", deleting)
    assert send(alice, shlink(sale("summer"))).status_code == 200
    run_jobs()
    assert (sql("SELECT FROM links"), sql("SELECT FROM import_rows"), sql("SELECT FROM jobs")) == ([], [], [])
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]


def test_links_that_a_page_of_the_service_hides_are_reported(
    app: Flask, alice: Client, run_import: Import, sql: Sql
) -> None:
    line = {"id": 1, "url": PAGE, "custom": "", "alias": "console"}  # which another installation generated
    for file in (shlink(sale("console")), zipped(manifest__json="{}", links__jsonl=json.dumps(line))):
        found = run_import(alice, file)
        assert counts(found) == ("done", 1, 0, 0, 0, 1)
        assert "'console' is reserved" in alice.get(f"/api/imports/{found['id']}/errors").text
    sql("INSERT INTO links (user_id, alias, url) VALUES (%(id)s, 'console', '') RETURNING 1", id=alice.id)  # older
    result = app.test_cli_runner().invoke(args=["database", "check"])
    assert result.exit_code == 0
    assert "The link /console of alice leads to a page of the service." in result.output
