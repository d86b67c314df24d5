"""Imports from the API of another service, which is a real server on loopback."""

from collections.abc import Callable
from typing import Any

from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.foreign_services import HOST, KEY, LINKS, VISITS, Serve, serving, shlink  # noqa: F401 - a fixture
from tests.support.imported import import_of

SERVICE = {"source": "shlink", "address": f"http://{HOST}", "token": KEY}


def test_links_and_visits_of_a_service_are_imported_once(
    serve: Serve,
    alice: Client,
    run_jobs: Callable[[], None],
    sql: Sql,
) -> None:
    serve(shlink)
    shown = alice.post("/api/imports?dry_run=1", SERVICE).get_json()["data"]
    assert (shown["source"], shown["format"], shown["columns"]) == ("shlink", "service", [])
    assert [row["link"]["custom"] for row in shown["rows"][:3]] == ["code1", "code2", "code3"]
    assert sql("SELECT FROM imports") == []
    for made, skipped, visits in ((LINKS, 0, VISITS), (0, LINKS, 0)):
        import_id = alice.post("/api/imports", SERVICE).get_json()["id"]
        run_jobs()
        found = import_of(alice, import_id)
        assert (found["state"], found["message"]) == ("done", "")
        assert (found["made"], found["skipped"], found["visits"]) == (made, skipped, visits)
        assert (found["size"], found["percent"], found["seconds_left"]) == (None, None, None)
    assert sql("SELECT count(*) AS number FROM visits") == [{"number": VISITS}]


def test_a_wrong_token_ends_the_import_with_a_sentence(
    serve: Serve,
    alice: Client,
    run_jobs: Callable[[], None],
) -> None:
    serve(shlink)
    wrong = SERVICE | {"token": "wrong"}
    assert alice.post("/api/imports?dry_run=1", wrong).get_json()["code"] == "import_unreadable"
    import_id = alice.post("/api/imports", wrong).get_json()["id"]
    run_jobs()
    found = import_of(alice, import_id)
    assert found["state"] == "failed"
    assert "401" in found["message"] or "key" in found["message"] or "token" in found["message"]


def test_an_import_waits_when_the_service_asks_for_it(
    serve: Serve,
    alice: Client,
    run_jobs: Callable[[], None],
    sql: Sql,
) -> None:
    busy = [True]

    def respond(path: str, query: dict[str, str], request: Any) -> Any:
        return 429 if busy[0] else shlink(path, query, request)

    serve(respond)
    import_id = alice.post("/api/imports", SERVICE).get_json()["id"]
    run_jobs()
    assert import_of(alice, import_id)["state"] == "queued"
    assert sql("SELECT due > now() AS waits, attempts FROM jobs") == [{"waits": True, "attempts": 0}]
    busy[0] = False
    sql("UPDATE jobs SET due = now() RETURNING 1")
    run_jobs()
    assert (import_of(alice, import_id)["state"], import_of(alice, import_id)["made"]) == ("done", LINKS)
