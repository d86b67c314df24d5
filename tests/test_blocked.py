"""Blocked links and hosts: their page, and targets that are refused in every way in."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from linkmgr.core.database.lookups import Lookups
from linkmgr.features.imports import links
from linkmgr.features.reports import repository as reports
from linkmgr.features.reports.schema import decide_reports
from linkmgr.repository import public
from linkmgr.visits.blocked import blocked
from tests.conftest import Client
from tests.support.archives import export
from tests.support.bodies import LEAST
from tests.support.factories import RESOURCES, Sql
from tests.support.foreign_services import Start
from tests.support.foreign_services import read as read_service
from tests.support.foreign_services import shlink as service
from tests.support.imported import Import, sale, shlink
from tests.support.races import during
from tests.support.reading import read
from tests.support.shortlinks import BRANDED, FACEBOOK, TARGET, Make

FILES = Path(__file__).parent / "import_files"
EVIL, BELOW = "https://evil.example/x", "https://www.evil.example/x"
Block = Callable[[str], int]
# Columns of links that lead this visitor to a host below a blocked one
LED: list[dict[str, Any]] = [
    {"url": BELOW},
    {"variants": [{"name": name, "url": BELOW, "weight": 1} for name in "ab"]},
    {"devicetarget": {"windows": BELOW, "linux": BELOW}},
    {"starts": "2999-01-01 00:00:00+00", "expiredurl": BELOW},
]
# No visitor sees them: a domain of the user, images that the service fetches, the receiver of events
_NO_VISITOR = {("url", "domain"), ("domain", "domain"), ("domain", "brandlogo"), ("qr", "logo"), ("webhook", "url")}


def on_evil_host(value: Any, host: str = "www.evil.example") -> Any:
    return json.loads(re.sub(r'(?<=https://)[^/"\\]+', host, json.dumps(value), flags=re.IGNORECASE))


def _bodies() -> Iterator[tuple[str, dict[str, Any]]]:
    """The least body with each member that has a URL, of all resources."""
    for stored in RESOURCES:
        path = stored.words.path
        for name, field in stored.resource.creates()().fields.items():
            [example] = field.metadata["examples"]
            if on_evil_host(example) != example and (path, name) not in _NO_VISITOR:
                yield path, LEAST[path] | {name: on_evil_host(example)}
    yield "overlay", LEAST["overlay"] | {"type": "image", "message": " HTTPS://www.Evil.example\nAn image"}
    yield "qr", {"type": "link", "data": BELOW}
    yield "qr", {"type": "text", "data": BELOW}
    yield "qr", {"type": "vcard", "data": {"fname": "Ada", "site": "https://www.evil.example"}}


BODIES = [*_bodies()]


@pytest.fixture(autouse=True)
def _forgotten(app: Flask, located: Flask, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Notice each change at once, and forget afterwards what was blocked, also in other files."""
    monkeypatch.setattr("linkmgr.visits.blocked.REFRESH_SECONDS", 0)
    yield
    sql("WITH gone AS (DELETE FROM reports) UPDATE service SET blocks = blocks + 1 RETURNING 1")
    for started in (app, located):
        with started.app_context():
            blocked().refresh(now=True)


@pytest.fixture
def block(located: Flask, admin: Client) -> Block:
    def add(host: str) -> int:
        with located.app_context():
            return reports.block_host(host, by=admin.id)

    return add


@pytest.mark.parametrize("columns", LED, ids=str)
def test_a_link_that_leads_to_a_blocked_host_is_a_page_until_it_is_unblocked(
    short: Make, block: Block, located: Flask, admin: Client, columns: dict[str, Any]
) -> None:
    link, other = short(**columns), short(url="https://notevil.example/")
    assert link.redirect_target() == BELOW
    before, number = link.clicks, block("evil.example")
    answer = link.ask()
    assert (answer.status_code, "Location" in answer.headers) == (410, False)
    assert "This link is blocked" in answer.text
    assert link.clicks == before
    assert other.redirect_target() == "https://notevil.example/"
    with located.app_context():
        reports.unblock(number, by=admin.id)
    assert link.redirect_target() == BELOW


@pytest.mark.parametrize("columns", LED, ids=str)
def test_the_console_marks_a_link_with_a_target_on_a_blocked_host(
    short: Make, block: Block, console: FlaskClient, columns: dict[str, Any]
) -> None:
    link, other = short(**columns), short()
    block("evil.example")
    listed = console.get("/console/links").text
    assert listed.count('<span class="badge warn">blocked</span>') == 1
    page, other_page = (console.get(f"/console/links/{row.id}").text for row in (link, other))
    assert 'blocked <bdi dir="ltr">evil.example</bdi>, the host of a target' in page
    assert "blocked" not in other_page


def test_a_try_says_that_the_link_is_blocked(short: Make, block: Block, alice: Client) -> None:
    link, other = short(url=BELOW), short()
    block("evil.example")
    answers = [alice.post(f"/api/url/{row.id}/try", {}).get_json()["data"] for row in (link, other)]
    assert [(answer["state"], answer["url"]) for answer in answers] == [("blocked", None), ("active", TARGET)]


def test_a_blocked_link_stays_so_in_the_bin_and_without_the_database(
    short: Make, located: Flask, alice: Client, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = short(expiredurl=TARGET)
    assert link.redirect_target() == TARGET
    assert alice.get(f"/api/url/{link.id}").get_json()["details"]["blocked"] is None
    with located.app_context():
        decide_reports(link.id, "link", by=admin.id)
    with monkeypatch.context() as patched:
        patched.setattr(public, "short_link", lambda *_, **__: (_ for _ in ()).throw(psycopg2.OperationalError))
        assert link.ask().status_code == 503
    assert link.ask().status_code == 410
    assert alice.get(f"/api/url/{link.id}").get_json()["details"]["blocked"]
    alice.delete(f"/api/url/{link.id}/delete?bin=1")
    assert link.ask().status_code == 404
    assert alice.post(f"/api/url/{link.id}/restore", {}).status_code == 200
    assert link.ask().status_code == 410


def test_statistics_of_a_link_to_a_blocked_host_are_not_public(
    alice: Client, located: Flask, short: Make, block: Block
) -> None:
    link = short(url="https://evil.example/")
    page = alice.put(f"/api/url/{link.id}/public", {"public": True}).get_json()["data"]["url"]
    statuses = [located.test_client().get(page).status_code]
    block("evil.example")
    statuses.append(located.test_client().get(page).status_code)
    assert statuses == [200, 404]


def test_pages_show_no_urls_on_blocked_hosts(alice: Client, located: Flask, block: Block) -> None:
    splash = alice.add("/api/splash/add", {"name": "Soon", "link": BELOW, "banner": BELOW})
    overlay = alice.add("/api/overlay/add", {"name": "Sale", "type": "image", "message": BELOW, "link": BELOW})
    campaign = alice.add("/api/campaign/add", {"name": "Spring", "public": True})
    alice.add("/api/url/add", {"url": BELOW, "campaign": campaign})
    alice.add("/api/domain/add", {"domain": f"https://{BRANDED}", "redirectroot": BELOW, "redirect404": BELOW})
    code = alice.add("/api/qr/add", {"type": "vcard", "data": {"fname": "Ada", "site": BELOW}})
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("url", {"url": TARGET, "type": splash}),
        ("url", {"url": TARGET, "type": f"overlay-{overlay}"}),
        ("url", {"url": TARGET, "metatitle": "Sale", "metaimage": BELOW}),
        ("bio", {"name": "Ada", "links": [{"title": "x", "url": BELOW}]}),
    ]
    paths = [alice.post(f"/api/{path}/add", body).get_json()["shorturl"] for path, body in bodies]
    paths.append(alice.get(f"/api/qr/{code}").get_json()["details"]["link"].replace("/qr/", "/q/"))
    paths += [f"/u/alice/list-{campaign}", f"https://{BRANDED}/", f"https://{BRANDED}/missing"]

    def shown() -> list[bool]:
        answers = [located.test_client().get(path, headers={"User-Agent": FACEBOOK}) for path in paths]
        return ["evil.example" in answer.headers.get("Location", answer.text) for answer in answers]

    assert shown() == [True] * len(paths)
    block("evil.example")
    assert shown() == [False] * len(paths)


def codes(answer: TestResponse) -> set[str]:
    body = answer.get_json()
    return {body.get("code"), *(row.get("code") for row in body.get("results", ()))}


@pytest.mark.parametrize(("path", "body"), BODIES, ids=str)
def test_a_url_on_a_blocked_host_is_refused_unless_it_was_stored_before(
    alice: Client, block: Block, sql: Sql, path: str, body: dict[str, Any]
) -> None:
    block("evil.example")
    assert codes(alice.post(f"/api/{path}/add", body)) == {"target_blocked"}
    many = {"url": ("urls", "urls"), "qr": ("qr", "qrs")}.get(path)
    if many:
        members = {many[1]: [body, LEAST[path]], "atomic": True}
        assert "target_blocked" in codes(alice.post(f"/api/{many[0]}/bulk", members))
    sql("DELETE FROM reports RETURNING 1")
    kept = alice.add(f"/api/{path}/add", body)
    block("evil.example")
    assert codes(alice.put(f"/api/{path}/{kept}/update", body)) == {None}
    other = on_evil_host(body, "evil.example")
    assert codes(alice.put(f"/api/{path}/{kept}/update", other)) == {"target_blocked"}
    if path == "url":
        assert "target_blocked" in codes(alice.put("/api/urls/bulk", {"ids": [kept], "data": other}))


def test_a_change_that_waits_while_a_host_is_blocked_is_refused(
    app: Flask, alice: Client, raw: psycopg2.extensions.connection
) -> None:
    splash = alice.add("/api/splash/add", LEAST["splash"])
    meanwhile = f"""
        UPDATE splash_pages SET name = 'Other' WHERE id = {splash};
        INSERT INTO reports (kind, host) VALUES ('host', 'evil.example')
    """
    client = Client(app.test_client(), alice.key)
    answer = during(raw, meanwhile, lambda: client.put(f"/api/splash/{splash}/update", {"link": BELOW}))
    assert codes(answer) == {"target_blocked"}


def test_rows_of_an_exported_account_with_blocked_urls_are_not_imported(
    alice: Client, bob: Client, block: Block, run_import: Import
) -> None:
    for path, body in BODIES:
        alice.post(f"/api/{path}/add", body)
    content = export(alice)
    block("evil.example")
    found = run_import(bob, content)
    assert found["made"] == 0, bob.get(f"/api/imports/{found['id']}/errors.csv").text


def test_rows_of_no_format_or_service_are_stored_with_blocked_targets(
    located: Flask, alice: Client, block: Block, start_service: Start
) -> None:
    """The rows of all of them are checked and stored by the same two functions."""
    for host in ("example.com", "youtube.com"):
        block(host)
    start_service(service)
    without_rules = "shlink_rules.json"  # whose only row is refused
    formats = {path.name: read(path.read_bytes()) for path in FILES.glob("[!o]*") if path.name != without_rules}
    for name, rows in (formats | {"service": read_service("shlink")}).items():
        sent = [links.check(row, ()) for row in rows if not (row.problem or row.is_visits)]
        with located.app_context():
            links.store(alice.id, sent, {"id": 1, "source": "", "on_conflict": "rename", "first_id": 0})
        assert {row.outcome and row.outcome.code for row in sent} == {"target_blocked"}, name


def test_no_import_gives_a_link_a_blocked_target(alice: Client, block: Block, run_import: Import) -> None:
    run_import(alice, shlink(sale("old")))
    block("evil.example")
    file = shlink(sale("old", BELOW), sale("new", BELOW), sale("fine"))
    found = run_import(alice, file, "?on_conflict=update")
    assert (found["made"], found["updated"], found["failed"]) == (1, 0, 2)
    errors = alice.get(f"/api/imports/{found['id']}/errors.csv").text
    assert errors.count("have blocked the host of a URL") == 2


def test_the_owner_of_a_blocked_link_cannot_use_its_targets_again(
    *, located: Flask, alice: Client, bob: Client, admin: Client, run_import: Import, console: FlaskClient
) -> None:
    link, other, binned = (
        alice.add("/api/url/add", {"url": url, "custom": alias})
        for url, alias in ((TARGET, "first"), ("https://example.org/", "second"), (TARGET, "third"))
    )
    alice.put(f"/api/url/{link}/update", {"devicetarget": [{"device": "iPhone", "link": EVIL}]})
    alice.delete(f"/api/url/{binned}/delete?bin=1")
    with located.app_context():
        decide_reports(link, "link", by=admin.id)
    alice.put(f"/api/url/{link}/update", {"url": "https://example.org/changed"})
    alice.delete(f"/api/url/{link}/delete")

    refused = {"target_blocked"}
    for url in (TARGET, EVIL):
        assert codes(alice.post("/api/url/add", {"url": url})) == refused
        assert codes(alice.post("/api/url/add", {"url": "https://example.org/x", "expiredurl": url})) == refused
        assert codes(alice.put(f"/api/url/{other}/update", {"url": url})) == refused
        assert refused < codes(alice.post("/api/urls/bulk", {"urls": [{"url": url}]}))
        assert refused < codes(alice.put("/api/urls/bulk", {"ids": [other], "data": {"url": url}}))
        assert codes(alice.post("/api/qr/add", {"type": "link", "data": url})) == refused
        assert run_import(alice, shlink(sale("fourth", url)))["failed"] == 1
        assert "your link to it" in console.post("/console/links/new", data={"url": url}).text
    assert codes(alice.post(f"/api/url/{binned}/restore", {})) == refused
    console.post("/console/links/bin", data={"action": "restore", "id": binned})
    assert "your link to it" in console.get("/console/links/bin").text
    bob.add("/api/url/add", {"url": TARGET})

    [blocked_link] = admin.get("/api/blocks").get_json()["data"]
    assert admin.post(f"/api/block/{blocked_link['id']}/end").status_code == 200
    alice.add("/api/url/add", {"url": TARGET})
    assert alice.post(f"/api/url/{binned}/restore", {}).status_code == 200


SPELLINGS = (
    "https://evil.example/a/x?q=1%2F",
    "https://evil.example/a/x?q=1/#a",
    "http://evil.example/a/x?q=1%2f",
    "https://evil.example:443/%61/%78?q=%31%2f",
    "https://EVIL.example.//a//x/?q=1%2f",
    "https://evil.example/b/../a/./%2e/x?q=1%2f",
    "https://evil.example/../a%2Fx?q=1%2f",
)
OTHERS = (
    "https://evil.example/a/x?q=1",
    "https://evil.example/a/%2578?q=1%2F",
    "https://evil.example/a/x",
    "https://evil.example/a/../x?q=1/",
    "https://evil.example:8443/a/x?q=1/",
    "https://www.evil.example/a/x?q=1/",
    "https://evil.example/A/x?q=1/",
    "https://evil.example/a/x%3Fq=1/",
)


@pytest.mark.parametrize("url", [SPELLINGS[0], SPELLINGS[4]])
def test_a_target_of_a_blocked_link_is_refused_in_every_spelling(
    *, located: Flask, alice: Client, admin: Client, url: str
) -> None:
    link = alice.add("/api/url/add", {"url": url})
    with located.app_context():
        decide_reports(link, "link", by=admin.id)
    answers = [alice.post("/api/url/add", {"url": text}) for text in SPELLINGS + OTHERS]
    refused = [answer.get_json().get("code") == "target_blocked" for answer in answers]
    assert refused == [True] * len(SPELLINGS) + [False] * len(OTHERS)


def test_any_text_has_a_normal_form_or_none(sql: Sql) -> None:
    forms = {
        "": None,
        "ftp://a.example/": None,
        "https://a.example/%ff%00\u00fc\\%2": r"a.example/\377\000\303\274\\%2",
        "https://a.example" + "/a" * 300 + "/.." * 300: "a.example/",
        "https://a.example/" + "%2e%2e/" * 290: "a.example/",
        "http://[2001:db8::1]:8080?\nAn image": "[2001:db8::1]/:8080",
    }
    found = sql("SELECT normal_form(text) FROM unnest(%(texts)s::text[]) AS text", texts=[*forms])
    assert [row["normal_form"] for row in found] == [*forms.values()]


def test_a_redirect_that_waited_for_the_database_does_not_wait_to_compare(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    with app.app_context():
        blocked().refresh(now=True)
        waits: list[bool] = []

        def read(*_: Any, can_wait: bool) -> list[Any]:
            waits.append(can_wait)
            return []

        monkeypatch.setattr(Lookups, "read", read)
        blocked().refresh(now=True)
    assert waits == [False]
