"""The lists and forms of the console, the same for all resources."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.console.navigation import NAVIGATION
from tests.conftest import Client
from tests.support import qr_editor
from tests.support.factories import Sql
from tests.support.logos import image, put
from tests.support.pages import as_form, fields, forms, get, message, seen, signed_in
from tests.support.resources import STORED


class Case(NamedTuple):
    """A resource: its path below /console, its word in the API, a body, what is typed into its form, what another
    client changes meanwhile, and its noun."""

    path: str
    word: str
    body: dict[str, Any]
    mine: dict[str, Any]
    theirs: dict[str, Any]
    noun: str
    form: Callable[[dict[str, Any]], dict[str, Any]] = as_form


URL = "https://example.com/page"
THEIRS = {"name": "Theirs"}
CASES = (
    Case(
        "links", "url", {"url": URL, "custom": "sale", "metatitle": "Sale <b>", "description": "One\nTwo",
         "geotarget": [{"location": "germany", "link": URL}], "deeplink": {"auto": True, "apple": URL}},
        {"description": "Mine"}, {"metatitle": "Theirs"}, "Link",
    ),
    Case(
        "qrs", "qr", {"type": "text", "data": "One\nTwo", "name": "Poster <b>"}, {"name": "Mine"}, {"data": "Theirs"},
        "QR code", lambda body: qr_editor.as_form(body["type"], body["data"], name=body["name"]),
    ),
    Case(
        "bios", "bio", {"name": "Dana <b>", "alias": "dana", "bio": "Two\nlines", "theme": "ocean",
                        "links": [{"title": "A", "url": URL}, {"title": "B", "url": URL}]},
        {"theme": "candy"}, THEIRS, "Bio page",
    ),
    Case(
        "campaigns", "campaign", {"name": "Summer <b>", "slug": "summer", "public": True}, {"slug": "mine"}, THEIRS,
        "Campaign",
    ),
    Case(
        "channels", "channel", {"name": "News <b>", "description": "One\nTwo", "color": "#14532d", "starred": True},
        {"color": "#7c2d12"}, THEIRS, "Channel",
    ),
    Case(
        "splash", "splash",
        {"name": "Sale <b>", "title": "Sale", "message": "One\nTwo", "link": URL, "counter": 12, "banner": URL},
        {"counter": 30}, THEIRS, "Splash page",
    ),
    Case(
        "overlays", "overlay",
        {"type": "poll", "name": "Poll <b>", "message": "Tea?\nYes\nNo", "link": URL, "label": "Vote",
         "position": "left", "color": "#ffffff", "background": "#14532d"},
        {"position": "top"}, THEIRS, "Overlay",
    ),
    Case(
        "utm", "utm",
        {"name": "Letter <b>", "utm_source": "letter", "utm_medium": "email", "utm_campaign": "summer",
         "utm_term": "rye", "utm_content": "button"},
        {"utm_term": "spelt"}, THEIRS, "UTM template",
    ),
    Case(
        "pixels", "pixel", {"type": "gapixel", "name": "Shop <b>", "tag": "G-123"}, {"tag": "G-4"},
        THEIRS | {"tag": "G-123"}, "Pixel",
    ),
    Case(
        "domains", "domain",
        {"domain": "https://go.example.net", "redirectroot": URL, "redirect404": URL, "brandname": "Shop <b>",
         "brandlogo": "bakery.png", "brandcolor": "#14532d"},
        {"redirect404": f"{URL}/other"}, {"brandname": "Theirs"}, "Domain",
    ),
)  # fmt: skip
USED = {form.path[1:]: form.used for form in forms()}
EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)


@pytest.fixture
def browser(app: Flask, alice: Client) -> FlaskClient:
    """A browser of alice, signed in by password."""
    put(alice, "bakery.png", image())
    return signed_in(app)


def record(client: Client, case: Case, row_id: int) -> dict[str, Any]:
    answer: dict[str, Any] = client.get(f"/api/{case.word}/{row_id}").get_json()
    found: dict[str, Any] = answer["details"] if "details" in answer else answer["data"]
    return found


def add(client: Client, case: Case) -> int:
    return client.add(f"/api/{case.word}/add", case.body)


def test_every_resource_is_tested() -> None:
    assert {case.word for case in CASES} == {"url", "qr", *(stored.words.path for stored in STORED)}


@EACH
def test_the_form_creates_what_the_api_creates(browser: FlaskClient, alice: Client, case: Case) -> None:
    answer = browser.post(f"/console/{case.path}/new", data=case.form(case.body))
    assert answer.status_code == 303, answer.text
    page = get(browser, answer.headers["Location"])
    assert f"{case.noun} created." in page
    assert "<b>" not in page
    stored = record(alice, case, int(re.findall(r"\d+", answer.headers["Location"])[0]))
    assert {name: stored[name] for name in case.body} == case.body


@EACH
def test_a_change_by_others_in_the_meantime_shows_both_and_a_second_save_stores_it(
    browser: FlaskClient, alice: Client, case: Case
) -> None:
    row_id = add(alice, case)
    path = f"/console/{case.path}/{row_id}/edit"
    form = fields(get(browser, path)) | case.mine
    assert alice.put(f"/api/{case.word}/{row_id}/update", case.theirs).status_code == 200
    answer = browser.post(path, data=form)
    assert answer.status_code == 412
    assert "has changed since you opened this form." in answer.text
    assert "Stored now: <bdi>Theirs</bdi>" in answer.text
    assert record(alice, case, row_id).items() >= case.theirs.items()
    answer = browser.post(path, data=fields(answer.text))
    assert answer.status_code == 303
    assert "Changes saved." in get(browser, answer.headers["Location"])
    assert record(alice, case, row_id).items() >= case.mine.items()


@EACH
def test_a_list_says_what_rows_are_for_and_shows_them(browser: FlaskClient, alice: Client, case: Case) -> None:
    path = f"/console/{case.path}"
    assert f"create your first {case.noun}".lower() in get(browser, path).lower()
    assert browser.get(f"{path}?page=x").status_code == 400
    row_id = add(alice, case)
    page = get(browser, path)
    assert f"/console/{case.path}/{row_id}" in page
    assert "&lt;b&gt;" in page
    assert "has fewer pages" in get(browser, f"{path}?page=2")


def test_each_list_with_a_form_for_a_new_row_is_in_the_menu(app: Flask) -> None:
    listed = {rule.rule.removesuffix("/new") for rule in app.url_map.iter_rules() if rule.rule.endswith("/new")}
    assert len(listed) > 10
    assert listed <= {entry.path for entries in NAVIGATION.values() for entry in entries}


@pytest.mark.parametrize("case", [case for case in CASES if USED[case.path]], ids=lambda case: case.path)
def test_the_number_of_uses_is_shown(browser: FlaskClient, alice: Client, case: Case) -> None:
    row_id = add(alice, case)
    uses: dict[str, dict[str, Any]] = {
        "bios": {},  # the body has two links
        "campaigns": {"campaign": row_id},
        "channels": {"channel": [row_id]}, "splash": {"type": row_id}, "overlays": {"type": f"overlay-{row_id}"},
        "pixels": {"pixels": [row_id]}, "domains": {"domain": "go.example.net"},
    }  # fmt: skip
    for number in range(2):
        alice.add("/api/url/add", {"url": f"{URL}/{number}", "custom": f"used-{number}"} | uses[case.path])
    page = seen(get(browser, f"/console/{case.path}").split('class="rows')[1].split("<dialog")[0])
    assert re.search(" 2 (item|link)s$", page)


@EACH
def test_a_row_is_deleted_after_a_question(browser: FlaskClient, alice: Client, case: Case) -> None:
    row_id = add(alice, case)
    path = f"/console/{case.path}/{row_id}/delete"
    assert f"delete this {case.noun}?".lower() in get(browser, path).lower()
    answer = browser.post(path, data={"typed": "go.example.net"})
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/console/{case.path}")
    assert f"{case.noun} deleted." in get(browser, f"/console/{case.path}")
    assert alice.get(f"/api/{case.word}/{row_id}").status_code == 404


@pytest.mark.parametrize(
    ("path", "typed", "field", "text"),
    [
        ("bios", {"alias": "taken"}, "alias", "This alias is already in use."),
        ("bios", {"links.title": ["A", "B"], "links.url": [URL, "x"]}, "links", "Correct the marked links"),
        ("campaigns", {"name": "taken"}, "name", "You already have a campaign with that name."),
        ("campaigns", {"slug": "taken"}, "slug", "This slug is already in use."),
        ("channels", {"name": "Taken"}, "name", "You already have a channel with this name."),
        ("splash", {"counter": "soon"}, "counter", "Seconds must be an integer from 1 to 60."),
        ("overlays", {"type": "image", "message": "x"}, "message", "Text must begin with the URL of an image"),
        ("overlays", {"color": "#14532e"}, "color", "The text and background colors are too similar."),
        ("domains", {"domain": "https://taken.example.net"}, "domain", "This domain is already in use."),
        ("domains", {"brandcolor": "#ffee00"}, "brandcolor", "Color must be darker: on light pages, #ffee00"),
        ("domains", {"brandlogo": "missing.png"}, "brandlogo", "Logo not found."),
    ],
)
def test_a_message_is_beside_its_field_and_what_was_typed_is_kept(
    *, browser: FlaskClient, alice: Client, path: str, typed: dict[str, str], field: str, text: str
) -> None:
    case = next(case for case in CASES if case.path == path)
    alice.add("/api/url/add", {"url": URL, "custom": "taken"})
    alice.add("/api/campaign/add", {"name": "taken", "slug": "taken"})
    alice.add("/api/channel/add", {"name": "Taken"})
    alice.add("/api/domain/add", {"domain": "https://taken.example.net"})
    answer = browser.post(f"/console/{path}/new", data=case.form(case.body) | typed)
    assert answer.status_code == 400
    assert text in message(answer.text, field).replace("&#39;", "'")
    sent = fields(answer.text)
    for name, value in (case.form(case.body) | typed).items():
        if name not in ("type", "position"):
            expected = [str(value) for value in (value if isinstance(value, list) else [value])]
            assert sent[name][: len(expected)] == expected


@EACH
def test_no_form_causes_a_server_error(browser: FlaskClient, alice: Client, case: Case) -> None:
    path = f"/console/{case.path}/{add(alice, case)}"
    version = fields(get(browser, f"{path}/edit"))["version"]
    for junk in ("\0", "x" * 5000, "é\x01", "-1", "\u0661", "9" * 40):
        body = dict.fromkeys(case.form(case.body), junk) | {"version": version}
        for target in (f"/console/{case.path}/new", f"{path}/edit", f"{path}/delete", f"/console/{case.path}/preview"):
            assert browser.post(target, data=body).status_code < 500, (junk, target)


def test_the_text_of_an_overlay_must_suit_its_new_type(browser: FlaskClient, alice: Client, sql: Sql) -> None:
    text = "Q?\n" + "\n".join("abcdefghijk")
    row_id = alice.add("/api/overlay/add", {"type": "message", "name": "Poll", "message": text})
    path = f"/console/overlays/{row_id}/edit"
    answer = browser.post(path, data=fields(get(browser, path)) | {"type": "poll"})
    assert answer.status_code == 400
    assert message(answer.text, "message").startswith("Text must have a question and at most 10 choices")
    sql("UPDATE overlays SET type = 'poll' RETURNING 1")
    typed = fields(get(browser, path)) | {"message": text + "\nl"}
    assert "at most 10 choices" in message(browser.post(path, data=typed).text, "message")
    assert browser.post(path, data=fields(get(browser, path)) | {"name": "Other"}).status_code == 303
