"""Imports from services, which are real servers on loopback: also from some that do not answer or lose links."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from flask import Flask

from linkmgr.core.errors import AppError
from linkmgr.core.outbound import fetch
from linkmgr.features.imports import bodies, job, service_api
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.foreign import server
from tests.support.foreign_services import (
    HOST,
    KEY,
    LINKS,
    VISITS,
    Start,
    page_of,
    parameters,
    service,
    shlink,
    shlink_link,
)
from tests.support.imported import import_of
from tests.support.pages import signed_in

BASE = "https://go.example.org"
SHLINK = {"source": "shlink", "address": f"http://{HOST}", "token": KEY}


def test_links_and_visits_of_a_service_are_imported_once(
    start_service: Start, alice: Client, run_jobs: Callable[[], None], sql: Sql
) -> None:
    start_service(shlink)
    shown = alice.post("/api/imports/service?dry_run=1", SHLINK).get_json()["data"]
    assert (shown["source"], shown["format"], shown["columns"]) == ("shlink", "service", [])
    assert [row["link"]["custom"] for row in shown["rows"][:3]] == ["code1", "code2", "code3"]
    assert sql("SELECT FROM imports") == []
    for made, skipped, visits in ((LINKS, 0, VISITS), (0, LINKS, 0)):
        import_id = alice.post("/api/imports/service", SHLINK).get_json()["id"]
        run_jobs()
        found = import_of(alice, import_id)
        assert (found["state"], found["message"]) == ("done", "")
        assert (found["made"], found["skipped"], found["visits"]) == (made, skipped, visits)
        assert (found["size"], found["percent"], found["seconds_left"]) == (None, None, None)
    assert sql("SELECT count(*) AS number FROM visits") == [{"number": VISITS}]


def test_a_service_that_times_out_once_is_asked_again(
    *, start_service: Start, alice: Client, run_jobs: Callable[[], None], sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_api, "DEADLINE", 0.2)
    answers = threading.Event()
    with ExitStack() as stack:
        stack.callback(answers.set)
        start_service(lambda *request: answers.wait(30) and shlink(*request))
        import_id = alice.post("/api/imports/service", SHLINK).get_json()["id"]
        run_jobs()
    assert (import_of(alice, import_id)["state"], import_of(alice, import_id)["message"]) == ("queued", "")
    [waits] = sql("SELECT extract(epoch FROM due - now()) AS seconds FROM jobs")
    assert 0 < waits["seconds"] <= 5
    monkeypatch.undo()
    start_service(shlink)
    sql("UPDATE jobs SET due = now() RETURNING 1")
    run_jobs()
    assert (import_of(alice, import_id)["state"], import_of(alice, import_id)["made"]) == ("done", LINKS)


@pytest.mark.parametrize(
    ("status", "age", "message"),
    [
        (500, "301 seconds", "The service responded with status 500 instead of 200. Try again later."),
        (503, "25 hours", "The service asks to wait (status 503). Try again in 30 seconds."),
    ],
)
def test_an_import_whose_service_does_not_answer_waits_until_its_user_continues_it(
    *,
    start_service: Start,
    app: Flask,
    alice: Client,
    run_jobs: Callable[[], None],
    sql: Sql,
    status: int,
    age: str,
    message: str,
) -> None:
    broken = [True]

    def respond(path: str, query: dict[str, str], request: Any) -> Any:
        return status if broken[0] and query.get("page") == "2" else shlink(path, query, request)

    start_service(respond)
    import_id = alice.post("/api/imports/service", SHLINK).get_json()["id"]
    browser, page = signed_in(app), f"/console/imports/{import_id}"
    continued = f"/api/imports/{import_id}/continue"
    ways: list[tuple[Any, str]] = [(browser, f"{page}/continue"), (alice, continued)]
    for client, path in ways:
        for _ in range(2):
            assert import_of(alice, import_id)["state"] in ("queued", "running")
            run_jobs()
            sql("UPDATE jobs SET due = now()")
            sql("UPDATE imports SET failing_since = failing_since - %(age)s::interval", age=age)
        found = import_of(alice, import_id)
        assert (found["state"], found["message"]) == ("paused", message)
        assert ">Continue<" in browser.get(page).text
        assert client.post(path).status_code in (200, 303)
        assert ">Continue<" not in browser.get(page).text
    broken[0] = False
    run_jobs()
    found = import_of(alice, import_id)
    assert (found["state"], found["message"], found["made"]) == ("done", "", LINKS)
    assert alice.post(continued).get_json()["code"] == "import_not_paused"


def test_a_service_whose_pages_never_end_ends_the_import(
    start_service: Start, alice: Client, run_jobs: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def respond(path: str, query: dict[str, str], request: Any) -> Any:
        answer = shlink(path, query | {"page": "1"}, request)
        if "shortUrls" in answer:
            answer["shortUrls"]["pagination"] |= {"currentPage": int(query["page"]), "pagesCount": 1_000_000}
        return answer

    monkeypatch.setattr(job, "MAX_PAGES", 5)
    start_service(respond)
    import_id = alice.post("/api/imports/service", SHLINK).get_json()["id"]
    run_jobs()
    found = import_of(alice, import_id)
    assert (found["state"], found["message"]) == ("failed", "The service has more than 5 pages. Import a file of it.")
    assert found["made"] > 0


@pytest.mark.parametrize("unsent", [0, 2])
def test_links_that_yourls_drops_at_the_borders_of_its_pages_are_found_or_reported(
    start_service: Start, alice: Client, run_jobs: Callable[[], None], *, unsent: int
) -> None:
    """Links of the same second have another order in each response."""
    total = 2500
    order = list(range(total))
    swapped = order.copy()
    for border in range(1000, total, 1000):
        swapped[border - 5 : border + 5] = reversed(order[border - 5 : border + 5])

    def respond(_path: str, _query: dict[str, str], request: Any) -> Any:
        form = parameters(request.rfile.read(int(request.headers["Content-Length"])).decode())
        start, limit = int(form["start"]), int(form["limit"])
        page = (swapped if start // 1000 % 2 else order)[start : start + limit]
        links = [{"shorturl": f"http://{HOST}/c{n}", "url": f"https://example.com/{n}", "title": "", "clicks": "0",
                  "timestamp": "2026-02-04 12:04:57"} for n in page]  # fmt: skip
        numbered = {f"link_{index}": link for index, link in enumerate(links, start=1)}
        return {"links": numbered, "stats": {"total_links": str(total + unsent)}, "statusCode": 200}

    start_service(respond)
    members = {"source": "yourls", "address": f"http://{HOST}", "token": KEY}
    import_id = alice.post("/api/imports/service", members).get_json()["id"]
    run_jobs()
    found = import_of(alice, import_id)
    assert (found["state"], found["made"], found["skipped"], found["failed"]) == ("done", total, 0, 0)
    said = "Links that the service counts and did not send: 2. Import them again, or from a file."
    assert found["message"] == (said if unsent else "")


@pytest.mark.parametrize("source", ["kutt", "shlink"])
@pytest.mark.parametrize("unsent", [0, 2])
def test_no_link_is_missing_if_others_are_deleted_and_added_while_pages_are_read(
    *, start_service: Start, alice: Client, run_jobs: Callable[[], None], source: str, unsent: int
) -> None:
    """Two links of the first page are deleted after it was read, and two are added after the next one."""
    numbers, changes = [*range(LINKS, 0, -1)], [lambda: numbers.__delitem__(slice(2)), lambda: numbers.insert(0, 102)]

    def kutt_page(query: dict[str, str]) -> Any:
        sent = numbers[int(query["skip"]) :][:50]
        links = [{"address": f"code{number}", "target": f"https://example.com/{number}"} for number in sent]
        return {"total": len(numbers) + unsent, "data": links}

    def shlink_page(query: dict[str, str]) -> Any:
        page = page_of([shlink_link(number) for number in numbers], query)
        page["pagination"]["totalItems"] += unsent
        return {"shortUrls": page}

    def respond(path: str, query: dict[str, str], request: Any) -> Any:
        if path.endswith("/visits"):
            return shlink(path, query, request)
        answer = kutt_page(query) if source == "kutt" else shlink_page(query)
        if changes:
            changes.pop(0)()
        return answer

    start_service(respond)
    import_id = alice.post("/api/imports/service", SHLINK | {"source": source}).get_json()["id"]
    run_jobs()
    found = import_of(alice, import_id)
    assert (found["state"], found["made"], found["skipped"]) == ("done", LINKS + 1, 0)
    assert found["visits"] == (VISITS if source == "shlink" else 0)
    said = "Links that the service counts and did not send: 2. Import them again, or from a file."
    assert found["message"] == (said if unsent else "")


def test_a_link_that_is_clicked_while_pages_are_read_again_fails_once(
    start_service: Start, alice: Client, run_jobs: Callable[[], None]
) -> None:
    requests: list[str] = []

    def respond(path: str, query: dict[str, str], request: Any) -> Any:
        link = shlink_link(1) | {"visitsSummary": {"total": len(requests), "nonBots": len(requests), "bots": 0}}
        page = page_of([link | {"longUrl": ""}], query)
        page["pagination"]["totalItems"] += 1  # another one, which is not sent
        return {"shortUrls": page}

    requests = start_service(respond)
    import_id = alice.post("/api/imports/service", SHLINK).get_json()["id"]
    run_jobs()
    assert len(requests) == 2
    assert import_of(alice, import_id)["failed"] == 1


def test_links_that_yourls_sends_twice_and_that_cannot_be_read_fail_once(
    start_service: Start, alice: Client, run_jobs: Callable[[], None]
) -> None:
    def respond(_path: str, _query: dict[str, str], request: Any) -> Any:
        form = parameters(request.rfile.read(int(request.headers["Content-Length"])).decode())
        start, limit = int(form["start"]), int(form["limit"])
        links = {n: {"shorturl": f"http://{HOST}/c{n}", "url": "", "timestamp": "2026-02-04 12:04:57"}
                 for n in range(start, min(start + limit, 1600))}  # fmt: skip
        return {"links": links, "stats": {"total_links": "1600"}, "statusCode": 200}

    start_service(respond)
    members = {"source": "yourls", "address": f"http://{HOST}", "token": KEY}
    import_id = alice.post("/api/imports/service", members).get_json()["id"]
    run_jobs()
    found = import_of(alice, import_id)
    assert (found["state"], found["made"], found["failed"]) == ("done", 0, 1600)


def test_services_of_private_networks_are_read_if_a_setting_allows_it(
    *, make_app: Callable[..., Flask], alice: Client, sql: Sql
) -> None:
    with server(service(shlink, [])) as port:
        address = f"http://127.0.0.1:{port}"
        for networks, code in (("", "import_unreadable"), ("127.0.0.0/8", None)):
            app = make_app(private_networks=networks, base_url=BASE)
            shown = Client(app.test_client(), alice.key).post(
                "/api/imports/service?dry_run=1", SHLINK | {"address": address}, base_url=BASE
            )
            assert shown.get_json().get("code") == code
            assert ("LINKMGR_PRIVATE_NETWORKS" in shown.get_json().get("message", "")) == bool(code)
        with app.app_context(), pytest.raises(AppError, match="is not allowed"):
            fetch.fetch(address)  # other requests go to public addresses only
        command = ["links", "import", "--user", "alice", "--source", "shlink", "--address", address]
        result = app.test_cli_runner().invoke(args=command, input=f"{KEY}\n")
    assert result.exit_code == 0, result.output
    assert f"{LINKS:,} made" in result.output
    assert sql("SELECT count(*) AS number FROM links") == [{"number": LINKS}]


@pytest.mark.parametrize(
    ("base", "address", "is_own"),
    [
        ("http://127.0.0.1:5000", "http://127.0.0.1:5000", True),
        ("http://127.0.0.1:5000", "http://localhost:5000/", True),
        ("http://127.0.0.1:5000", "http://127.0.0.1:3000", False),
        ("http://127.0.0.1", "http://localhost:80", True),
        ("https://s.example.org", "https://s.example.org/api", True),
        ("https://s.example.org", "http://s.example.org:8080", False),
    ],
)
def test_another_program_of_this_machine_is_another_service(
    make_app: Callable[..., Flask], base: str, address: str, *, is_own: bool
) -> None:
    with make_app(base_url=base).app_context():
        members = {"source": "kutt", "address": address, "token": KEY}
        if is_own:
            with pytest.raises(AppError, match="address must not point to this service"):
                bodies.service(members)
        else:
            assert bodies.service(members).address == address
