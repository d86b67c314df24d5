"""QR codes of our own short links. Links never redirect to this service, so such codes cannot cause a loop."""

from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from linkmgr.visits import scans
from tests.conftest import BASE_URL, Client
from tests.support.codes import decoded, pixels
from tests.support.factories import Sql
from tests.support.shortlinks import PAGE, add
from tests.support.targets import FIREFOX, statistics

BRANDED = "go.example.net"


@pytest.fixture
def short_urls(alice: Client, bob: Client) -> dict[str, str]:
    alice.add("/api/domain/add", {"domain": f"https://{BRANDED}"})
    alice.add("/api/bio/add", {"name": "Alice", "alias": "alice"})
    return {
        "own": add(alice, custom="sale")["shorturl"],
        "branded": add(alice, custom="shop", domain=BRANDED)["shorturl"],
        "bio": f"{BASE_URL}/alice",
        "other user": add(bob, custom="theirs")["shorturl"],
    }


def scan(app: Flask, sql: Sql, qr_id: int) -> TestResponse:
    [code] = sql("SELECT code FROM qrs WHERE id = %(id)s", id=qr_id)
    return app.test_client().get(f"/q/{code['code']}", headers={"User-Agent": FIREFOX})


def stored(sql: Sql, qr_id: int) -> Any:
    return sql("SELECT data FROM qrs WHERE id = %(id)s", id=qr_id)[0]["data"]


@pytest.mark.parametrize("type_", ["own", "branded", "bio", "other user"])
def test_a_code_of_a_short_url_redirects_to_it(
    app: Flask, alice: Client, sql: Sql, short_urls: dict[str, str], type_: str
) -> None:
    qr_id = alice.add("/api/qr/add", {"type": "link", "data": short_urls[type_]})
    answer = scan(app, sql, qr_id)
    location, _, mark = answer.headers["Location"].partition("?")
    assert (answer.status_code, location, bool(mark)) == (302, short_urls[type_], type_ in ("own", "branded"))
    assert statistics(sql, qr_id)["clicks"] == 1
    other = alice.add("/api/qr/add", {"type": "link", "data": "https://example.org/"})
    assert alice.put(f"/api/qr/{other}/update", {"data": short_urls[type_]}).status_code == 200
    assert stored(sql, other) == short_urls[type_]


def visit(app: Flask, location: str) -> TestResponse:
    return app.test_client().get(location.removeprefix(BASE_URL), headers={"User-Agent": FIREFOX})


def clicks(sql: Sql, *targets: int) -> list[int]:
    return [statistics(sql, target)["clicks"] for target in targets]


@pytest.mark.parametrize("members", [{}, {"type": "splash"}, {"parameters": [{"name": "a", "value": "b"}]}], ids=str)
def test_a_scan_is_one_visit_and_the_redirect_behind_it_none(
    app: Flask, alice: Client, sql: Sql, members: dict[str, Any]
) -> None:
    link = add(alice, custom="sale", **members)
    qr_id = alice.add("/api/qr/add", {"type": "link", "data": link["shorturl"]})
    answer = visit(app, scan(app, sql, qr_id).headers["Location"])
    assert PAGE in (answer.headers.get("Location", "") + answer.text)
    assert clicks(sql, qr_id, link["id"]) == [1, 0]
    assert sql("SELECT total FROM visit_months WHERE NOT bot") == [{"total": 1}]


def test_the_mark_of_a_scan_hides_no_other_click(
    app: Flask, alice: Client, sql: Sql, short_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = add(alice, custom="own"), add(alice, custom="other")
    qr_id = alice.add("/api/qr/add", {"type": "link", "data": own["shorturl"]})
    mark = scan(app, sql, qr_id).headers["Location"].partition("?")[2]
    for url in (f"{other['shorturl']}?{mark}", f"{own['shorturl']}?{mark}x", f"{own['shorturl']}?scanned="):
        assert visit(app, url).status_code == 302
    assert clicks(sql, own["id"], other["id"]) == [2, 1]
    monkeypatch.setattr(scans, "MAX_AGE", -1)
    visit(app, f"{own['shorturl']}?{mark}")
    assert clicks(sql, own["id"]) == [3], "the mark is too old"
    theirs = alice.add("/api/qr/add", {"type": "link", "data": short_urls["other user"]})
    assert scan(app, sql, theirs).headers["Location"] == short_urls["other user"]


def test_the_code_of_a_link_tells_its_scans_from_clicks(app: Flask, alice: Client, sql: Sql) -> None:
    link = add(alice, custom="sale")
    assert decoded(pixels(visit(app, f"{link['shorturl']}/qr").data, "png")).text == f"{link['shorturl']}?qr"
    for query in ("?qr", "?qr&a=b", ""):
        assert visit(app, link["shorturl"] + query).headers["Location"] == PAGE
    assert clicks(sql, link["id"]) == [3]
    rows = alice.get(f"/api/stats?by=kind&ids={link['id']}").get_json()["data"]["rows"]
    assert [(row["kind"], row["clicks"]) for row in rows] == [("scan", 2), ("click", 1)]


@pytest.mark.parametrize("custom", ["sale", "other"])
def test_a_code_of_a_deleted_link_shows_the_page_of_the_link(app: Flask, alice: Client, sql: Sql, custom: str) -> None:
    link = add(alice, custom="sale")
    qr_id = alice.add("/api/qr/add", {"type": "link", "data": link["shorturl"]})
    if custom == "sale":
        alice.delete(f"/api/url/{link['id']}/delete")
    else:
        alice.put(f"/api/url/{link['id']}/update", {"custom": custom})
    location = scan(app, sql, qr_id).headers["Location"]
    assert location == link["shorturl"]
    assert app.test_client().get(location.removeprefix(BASE_URL)).status_code == 404


@pytest.mark.parametrize("domain", ["", BRANDED])
def test_a_code_of_a_deleted_link_can_be_changed_and_keeps_its_data(alice: Client, sql: Sql, domain: str) -> None:
    alice.add("/api/domain/add", {"domain": f"https://{BRANDED}"})
    link = add(alice, custom="sale", domain=domain)
    qr_id = alice.add("/api/qr/add", {"type": "link", "data": link["shorturl"]})
    alice.delete(f"/api/url/{link['id']}/delete")
    assert alice.put(f"/api/qr/{qr_id}/update", {"data": link["shorturl"], "name": "New"}).status_code == 200
    assert sql("SELECT data, name FROM qrs") == [{"data": link["shorturl"], "name": "New"}]
    assert alice.put(f"/api/qr/{qr_id}/update", {"data": f"{link['shorturl']}x"}).status_code == 400


@pytest.mark.parametrize("sent", ["HTTP://127.0.0.1:5000/sale", f"{BASE_URL}/sale/"])
def test_another_spelling_of_a_short_url_is_stored_as_the_short_url(alice: Client, sql: Sql, sent: str) -> None:
    add(alice, custom="sale")
    assert stored(sql, alice.add("/api/qr/add", {"type": "link", "data": sent})) == f"{BASE_URL}/sale"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (f"{BASE_URL}/nothing", "short_link_unknown"),
        (f"{BASE_URL}/shop", "short_link_unknown"),
        (f"{BASE_URL}/login", "short_link_unknown"),
        (f"{BASE_URL}/sale?x=1", "invalid"),
        (f"{BASE_URL}/sale/qr", "invalid"),
        (f"{BASE_URL}/r/sale", "invalid"),
        (f"{BASE_URL}/", "invalid"),
        ("http://127.0.0.1/sale", "invalid"),
        ("http://localhost:5000/q/x", "invalid"),
        (f"https://{BRANDED}/sale", "link_branded"),
        (f"https://{BRANDED}/Shop", "link_branded"),
        (f"https://{BRANDED}/shop?x=1", "link_branded"),
        (f"https://{BRANDED}/shop/qr", "link_branded"),
        (f"http://{BRANDED}/shop", "link_branded"),
        (f"https://{BRANDED}/", "link_branded"),
    ],
)
def test_all_other_urls_of_this_service_stay_refused(
    alice: Client, sql: Sql, short_urls: dict[str, str], data: str, code: str
) -> None:
    answer = alice.post("/api/qr/add", {"type": "link", "data": data})
    assert (answer.status_code, answer.get_json()["code"]) == (400, code)
    qr_id = alice.add("/api/qr/add", {"type": "link", "data": short_urls["own"]})
    answer = alice.put(f"/api/qr/{qr_id}/update", {"data": data, "name": "New"})
    assert (answer.status_code, answer.get_json()["code"]) == (400, code)
    assert sql("SELECT data, name FROM qrs") == [{"data": short_urls["own"], "name": short_urls["own"]}]


def test_an_update_of_a_missing_code_to_an_unknown_short_url_is_a_404(alice: Client, bob: Client) -> None:
    qr_id = bob.add("/api/qr/add", {"type": "link", "data": "https://example.org/"})
    assert alice.put(f"/api/qr/{qr_id}/update", {"data": f"{BASE_URL}/nothing"}).status_code == 404
