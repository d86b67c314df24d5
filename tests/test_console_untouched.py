"""Saving a form of the console stores only what was typed in it."""

import re
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.console.stored_forms import StoredForm
from linkmgr.features.webhooks.schema import WEBHOOKS
from linkmgr.schemas.qr import QR_CODES
from tests.conftest import Client
from tests.support import qr_editor
from tests.support.bodies import LEAST
from tests.support.factories import Sql
from tests.support.pages import PASSWORD, as_form, fields, forms, get, message, signed_in

URL = "https://example.com/page"
TEXT = "\n  first\r\nsecond\rthird\n\n"  # no browser returns it like this
LINK: dict[str, Any] = {
    "url": URL,
    "metatitle": " Sale ",
    "metadescription": TEXT,
    "description": TEXT,
    "expiry": "2027-10-31 01:30:00",  # in Berlin, 02:30 for the second time
    "geotarget": [{"location": "germany", "link": URL}],
    "rules": [
        {
            "when": {
                "city": ['Washington, "D.C."', '"', "a  b", "to"],
                "query": ["a, b=to"],
                "hours": {"until": "09:00"},
            },
            "url": f"{URL}?1",
        },
        {
            "when": {
                "dates": {"from": "2026-12-01 00:00:00", "until": "2026-12-24 23:59:59"},
                "clicks": {"from": 0},
                "timezone": "Asia/Tokyo",
                "ip": ["::/0"],
                "weekdays": ["friday"],
            },
            "url": URL,
        },
    ],
    "parameters": [{"name": "a", "value": " x "}, {"name": "b", "value": ""}, {"name": "c", "value": "y\nz"}],
}
ROWS: dict[str, tuple[str, str, dict[str, Any], dict[str, str]]] = {
    # By path below /console: the path of a new row, that of its record, its body, and what is typed.
    "links": ("/api/url/add", "/api/url/{}", LINK, {"metatitle": "Other"}),
    "qrs": ("/api/qr/add", "/api/qr/{}", {"type": "text", "data": TEXT, "name": "A"}, {"name": "Other"}),
    "channels": ("/api/channel/add", "/api/channel/{}", {"name": "A", "description": TEXT, "color": "#AAbbCC"},
                 {"name": "Other"}),
    "overlays": ("/api/overlay/add", "/api/overlay/{}",
                 {"type": "message", "name": "A", "message": TEXT, "color": "#FFF", "background": "#00000A"},
                 {"name": "Other"}),
    "splash": ("/api/splash/add", "/api/splash/{}", {"name": "A", "title": "B", "message": TEXT}, {"name": "Other"}),
    "bios": ("/api/bio/add", "/api/bio/{}",
             {"name": "A", "alias": "anna", "bio": TEXT, "links": [{"title": " B ", "url": URL}]}, {"name": "Other"}),
    "campaigns": ("/api/campaign/add", "/api/campaign/{}", {"name": "A", "slug": "a"}, {"name": "Other"}),
    "pixels": ("/api/pixel/add", "/api/pixel/{}", {"type": "bing", "name": "A", "tag": "1"}, {"name": "Other"}),
    "domains": ("/api/domain/add", "/api/domain/{}", {"domain": "https://go.example.net", "brandname": "A"},
                {"brandname": "Other"}),
    "keys": ("/api/key/add", "/api/key/{}", {"name": "A", "scopes": ["links:read"], "expires": "2027-10-31 01:30:00"},
             {"name": "Other", "current_password": PASSWORD}),
}  # fmt: skip


# Columns that differ in each row
OWN = [
    "id",
    "alias",
    "code",
    "created",
    "updated",
    "version",
    "prefix",
    "digest",
    "secret_ciphertext",
    "secret_version",
]


@pytest.fixture
def browser(app: Flask, alice: Client) -> FlaskClient:
    """A browser of alice in Berlin, signed in by password."""
    browser = signed_in(app)
    browser.post("/account/timezone", data={"timezone": "Europe/Berlin"})
    return browser


def sent(page: str) -> dict[str, list[str]]:
    """Return what a browser sends with the untouched form of the page."""
    texts = set(re.findall(r'<textarea\b[^>]*\bname="([^"]+)"', page))
    times = set(re.findall(r'<input type="datetime-local"[^>]*\bname="([^"]+)"', page))
    colors = set(re.findall(r'<input type="color"[^>]*\bname="([^"]+)"', page))

    def normal(name: str, value: str) -> str:
        value = re.sub("\r\n?", "\n", value)  # as the parser of HTML does
        value = value.replace("\n", "\r\n" if name in texts else "")
        return re.sub(":00$", "", value) if name in times else value.lower() if name in colors else value

    return {name: [normal(name, value) for value in values] for name, values in fields(page).items()}


def record(alice: Client, path: str) -> dict[str, Any]:
    answer = alice.get(path).get_json()
    found: dict[str, Any] = answer.get("details") or answer["data"]
    return found


@pytest.mark.parametrize("path", ROWS)
def test_a_form_writes_nothing_untouched_and_a_change_of_one_field_leaves_the_others(
    browser: FlaskClient, alice: Client, sql: Sql, path: str
) -> None:
    add, read, body, typed = ROWS[path]
    row_id = alice.add(add, body)
    form = f"/console/{path}/{row_id}/edit"
    table = {"keys": "api_keys", "qrs": "kept_qrs", "splash": "splash_pages"}.get(path, path)
    stored, before = sql(f"SELECT xmin::text, * FROM {table}"), record(alice, read.format(row_id))
    untouched = sent(get(browser, form)) | {"current_password": PASSWORD}
    assert browser.post(form, data=untouched).status_code == 303
    assert sql(f"SELECT xmin::text, * FROM {table}") == stored
    answer = browser.post(form, data=sent(get(browser, form)) | typed)
    assert answer.status_code == 303, answer.text
    after = record(alice, read.format(row_id))
    changed = {name for name in before if before[name] != after[name]}
    changed -= {"title", "updated"} - typed.keys()  # the title follows metatitle
    assert changed == typed.keys() & before.keys()


@pytest.mark.parametrize("form", forms(), ids=lambda form: form.path[1:])
def test_an_untouched_form_stores_what_the_api_stores_for_the_same_body(
    browser: FlaskClient, alice: Client, sql: Sql, form: StoredForm
) -> None:
    words, path, body = form.stored.words, f"/console{form.path}/new", LEAST[form.stored.words.path]
    newest = f"id = (SELECT max(id) FROM {words.table} WHERE user_id = {alice.id})"
    stored = f"SELECT to_jsonb(t) - %(own)s::text[] AS columns FROM {words.table} t WHERE {newest}"
    typed = qr_editor.as_form(body["type"], body["data"]) if form.stored is QR_CODES else as_form(body)
    answer = browser.post(path, data=sent(get(browser, path)) | typed | {"current_password": PASSWORD})
    assert answer.status_code in (200, 303), answer.text
    of_form = sql(stored, own=OWN)
    sql(f"DELETE FROM {words.table} WHERE {newest} RETURNING 1")
    alice.add("/api/webhooks" if form.stored is WEBHOOKS else f"/api/{words.path}/add", body)
    assert of_form == sql(stored, own=OWN)


@pytest.mark.parametrize("time", ["9999-12-31 23:59:59", "9999-12-31 22:59:59", "2027-10-31 00:30:00"])
def test_the_time_of_a_control_is_stored_only_if_it_was_typed(browser: FlaskClient, alice: Client, time: str) -> None:
    row_id = alice.add("/api/url/add", {"url": URL, "expiry": time})
    form = f"/console/links/{row_id}/edit"
    browser.post(form, data=sent(get(browser, form)) | {"metatitle": "Other"})
    assert record(alice, f"/api/url/{row_id}")["expiry"] == time
    browser.post(form, data=sent(get(browser, form)) | {"expiry": "2028-07-01T12:00"})
    assert record(alice, f"/api/url/{row_id}")["expiry"] == "2028-07-01 10:00:00"


def test_the_value_of_a_parameter_can_be_empty_or_blank(browser: FlaskClient, alice: Client) -> None:
    row_id = alice.add("/api/url/add", LINK)
    form = f"/console/links/{row_id}/edit"
    typed = sent(get(browser, form))
    typed["parameters.value"][0] = "changed "
    answer = browser.post(form, data=typed)
    assert answer.status_code == 303, message(answer.text, "parameters")
    changed = [LINK["parameters"][0] | {"value": "changed "}, *LINK["parameters"][1:]]
    assert record(alice, f"/api/url/{row_id}")["parameters"] == changed
    typed = sent(get(browser, form))
    typed["parameters.name"][0] = ""
    answer = browser.post(form, data=typed)
    assert message(answer.text, "parameters") == "Fill in the name of each parameter, or clear its value."
