"""QR codes in the console: the list, the page of one, and the designer with its preview."""

import re
from html import unescape
from typing import Any

import pytest
from flask.testing import FlaskClient

from linkmgr.core.fields import qr as qr_data
from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import fields, get, message, visit, words
from tests.support.qr_editor import NEW, as_form, details, preview
from tests.support.visited import Store

DATA: dict[str, Any] = {
    "link": "https://example.com/page",
    "text": "Two\nlines",
    "phone": "+49 30 123456",
    "vcard": dict.fromkeys(qr_data.VcardData().fields, "") | {"fname": "Dana", "site": "https://example.com"},
    "email": {"email": "dana@example.com", "subject": "Hello", "body": "Two\nlines"},
    "sms": {"phone": "+49 30 123456", "message": "Hello"},
    "wifi": {"ssid": "Home", "encryption": "WPA", "password": "correct horse"},
}


def contrast(page: str) -> str:
    found = re.search('id="preview-contrast"[^>]*>(.*?)</p>', page, re.DOTALL)
    assert found
    return words(re.sub("<[^>]+>", "", found[1]))


# --- the list and the page


def test_the_list_shows_names_contents_and_scans(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql, store: Store
) -> None:
    assert "Create your first QR code" in get(console, "/console/qrs")
    ids = [alice.add("/api/qr/add", {"type": type_, "data": data}) for type_, data in DATA.items()]
    factories.qr(sql, bob.id, name="Other")
    store([visit(ids[0]), visit(ids[0], 3), visit(ids[0], 40)])
    page = get(console, "/console/qrs")
    assert page.count('<img class="code" src="data:image/png;base64,') == len(DATA)
    assert "2 scans in the last 28 days" in page
    assert [words(badge) for badge in re.findall('class="badge">([^<]+)<', page)] == [
        "Wi-Fi", "SMS", "E-mail", "Contact", "Phone", "Text", "Link",
    ]  # fmt: skip
    assert "Other" not in page
    assert "has fewer pages" in get(console, "/console/qrs?page=2")


def test_the_page_of_a_code_shows_its_address_and_its_scans(
    console: FlaskClient, alice: Client, sql: Sql, store: Store
) -> None:
    code = factories.qr(sql, alice.id, name="Poster <b>")
    page = get(console, f"/console/qrs/{code}")
    assert "No scans in the last 28 days." in page
    assert f"{BASE_URL}/qr/code" in page
    assert "Poster &lt;b&gt;" in page
    store([visit(code, days) for days in range(25)])
    page = get(console, f"/console/qrs/{code}?period=90d")
    assert "25 scans in the last 90 days" in page
    assert "Latest scans" in page
    assert "<dt>unique visitor" in page
    assert "Germany (DE)" in page


@pytest.mark.parametrize(("form", "start"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("pdf", b"%PDF")])
def test_the_image_is_saved_in_each_format_and_size(
    console: FlaskClient, alice: Client, sql: Sql, form: str, start: bytes
) -> None:
    code = factories.qr(sql, alice.id)
    saved = console.get(f"/console/qrs/{code}/image?format={form}&size=300")
    assert saved.data.startswith(start)
    assert re.fullmatch(rf'attachment; filename="code\d+\.{form}"', saved.headers["Content-Disposition"])
    assert console.get(f"/console/qrs/{code}/image?format={form}&size=2049").status_code == 400


# --- the designer


def test_the_form_has_the_members_of_each_type(console: FlaskClient, alice: Client) -> None:
    code = alice.add("/api/qr/add", {"type": "link", "data": DATA["link"]})
    assert set(qr_data.LABELS) == set(qr_data.TYPES)
    assert "Without a name, it is named after its content." in get(console, NEW)
    assert "named after its content" not in get(console, f"/console/qrs/{code}/edit"), "there it cannot be cleared"
    for type_, schema in qr_data.OBJECTS.items():
        assert list(qr_data.LABELS[type_]) == list(schema().fields)


@pytest.mark.parametrize("type_", DATA)
def test_the_form_creates_and_shows_each_type(console: FlaskClient, alice: Client, sql: Sql, type_: str) -> None:
    sent = as_form(type_, DATA[type_], name="Poster", foreground="#000080", background="#ffffee")
    answer = console.post(NEW, data=sent)
    assert answer.status_code == 303, answer.text
    code = details(alice, answer.headers["Location"])
    assert (code["type"], code["data"], code["name"]) == (type_, DATA[type_], "Poster")
    assert (code["foreground"], code["background"]) == ("rgb(0,0,128)", "rgb(255,255,238)")
    before = sql("SELECT xmin::text, * FROM kept_qrs")
    path = f"{answer.headers['Location']}/edit"
    assert console.post(path, data=fields(get(console, path))).status_code == 303
    assert sql("SELECT xmin::text, * FROM kept_qrs") == before


@pytest.mark.parametrize(
    ("typed", "field", "text"),
    [
        (as_form("link", f"{BASE_URL}/nothing"), "data.link.link", "short"),
        (as_form("email", {"email": "x"}), "data.email.email", "Recipient must be a valid e-mail address."),
        (as_form("vcard", {}), "data.vcard.fname", "First name is required unless last name or organization is set."),
        (as_form("wifi", {"ssid": "Home", "encryption": "WPA"}), "data.wifi.password",
         "Password is required unless security is None."),
        (as_form("text", "x", foreground="#eeeeee"), "foreground", "contrast"),
        (as_form("text", "x", foreground="red"), "foreground", "Code must be a color such as"),
        (as_form("text", "x", logo="nothing.png"), "logo", "Logo not found."),
        (as_form("text", "x", logo="http://127.0.0.1/x.png"), "logo", "Fetching from 127.0.0.1 is not allowed."),
        (as_form("text", "x", logo="upload:0"), "logo", "Logo not found."),
    ],
)  # fmt: skip
def test_a_message_is_beside_its_field_and_what_was_typed_is_kept(
    *, console: FlaskClient, sql: Sql, typed: dict[str, str], field: str, text: str
) -> None:
    answer = console.post(NEW, data={"name": "Kept <b>"} | typed)
    assert answer.status_code == 400
    assert text in unescape(message(answer.text, field))
    sent = fields(answer.text)
    for name, value in ({"name": "Kept <b>"} | typed).items():
        if name not in ("foreground", "background", "type", "data.nonsense.nonsense"):
            assert sent[name] == [value]
    assert sql("SELECT 1 FROM qrs") == []


def test_a_preview_shows_what_was_typed_and_stores_nothing(console: FlaskClient, sql: Sql) -> None:
    answer = console.post(NEW, data=as_form("wifi", DATA["wifi"], again="preview"))
    assert (answer.status_code, sql("SELECT 1 FROM qrs")) == (200, [])
    assert preview(answer.text).text == "WIFI:T:WPA;S:Home;P:correct horse;;"
    assert fields(answer.text)["data.wifi.ssid"] == ["Home"]
    assert preview(console.post(NEW, data={"again": "preview"}).text).text.startswith(f"{BASE_URL}/q/")


@pytest.mark.parametrize(
    ("colors", "sentence"),
    [
        (("#000000", "#ffffff"), "Contrast 21.0 : 1. Good to scan."),
        (
            ("#cccccc", "#ffffff"),
            "for some cameras: it must be at least 3 : 1. Try #939393 on #ffffff.",
        ),
        (
            ("#eeeeee", "#ffffff"),
            "Too low to scan: it must be at least 3 : 1. Try #949494 on #ffffff.",
        ),
        (("#ffffff", "#000080"), "cannot scan a light code on a dark background. Try #000080 on #ffffff."),
    ],
)
def test_the_contrast_is_beside_the_preview(console: FlaskClient, colors: tuple[str, str], sentence: str) -> None:
    foreground, background = colors
    page = console.post(NEW, data={"again": "1", "foreground": foreground, "background": background}).text
    assert sentence in contrast(page)


def test_colors_that_are_none_have_no_preview(console: FlaskClient) -> None:
    page = console.post(NEW, data={"again": "1", "foreground": "rgb(1,2)"}).text
    assert "There is no preview yet." in page
    assert contrast(page) == ""
