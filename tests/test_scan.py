"""/q/<code>: the response to a scan for each type of code."""

import html
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import vobject  # type: ignore[import-untyped]
from flask import Flask
from werkzeug.test import TestResponse

from linkmgr.qr.vcard import vcard
from tests.conftest import Client
from tests.support.browser import PHONE, Browser
from tests.support.codes import encoded_path

VCARD = {
    "fname": "Zoë",
    "lname": "Müller; Smith, Jr.",
    "org": "Acme, Inc.",
    "phone": "+1 555 0100",
    "cell": "+1 555 0101",
    "fax": "+1 555 0102",
    "email": "zoe@example.com",
    "site": "https://example.com/zoe",
    "street": "1 Main St; \\ Suite 5",
    "city": "São Paulo",
    "state": "SP",
    "zip": "01000-000",
    "country": "Brasil",
}


@pytest.fixture
def scan(app: Flask, alice: Client) -> Callable[[str, Any], TestResponse]:
    return lambda type_, data: app.test_client().get(encoded_path(alice, type_, data))


Scan = Callable[[str, Any], TestResponse]


def address_in(page: TestResponse, scheme: str) -> str:
    """Return the link that opens the application."""
    assert page.status_code == 200
    found = page.text.split(f'href="{scheme}:')[1].split('"')[0].replace("&amp;", "&")
    assert "<script" not in page.text
    return f"{scheme}:{found}"


def test_a_link_redirects(scan: Scan) -> None:
    answer = scan("link", "https://example.com/päth?q=a b".replace(" ", "%20"))
    assert (answer.status_code, answer.headers["Location"]) == (302, "https://example.com/p%C3%A4th?q=a%20b")
    assert answer.headers["Cache-Control"] == "no-store"


def test_an_update_changes_the_target_of_printed_codes(app: Flask, alice: Client) -> None:
    path = encoded_path(alice, "link", "https://example.com/old")
    qr_id = alice.get("/api/qr").get_json()["data"]["qrs"][0]["id"]
    alice.put(f"/api/qr/{qr_id}/update", {"data": "https://example.com/new"})
    assert app.test_client().get(path).headers["Location"] == "https://example.com/new"


def test_a_text_is_shown_unchanged(scan: Scan) -> None:
    page = scan("text", "<script>alert(1)</script>\nsecond line & 'more'")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\nsecond line &amp; &#39;more&#39;</p>" in page.text
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "unsafe" not in page.headers["Content-Security-Policy"]
    assert page.headers["Cache-Control"] == "no-store"


def test_an_email_has_its_subject_and_body(scan: Scan) -> None:
    data = {"email": "a+b@example.com", "subject": 'Café? 100% "yes" & more', "body": "first line\nsecond & last"}
    page = scan("email", data)
    parts = urlsplit(address_in(page, "mailto"))
    assert unquote(parts.path) == data["email"]
    assert parse_qs(parts.query, strict_parsing=True) == {
        "subject": [data["subject"]],
        "body": ["first line\r\nsecond & last"],
    }
    assert "+" not in parts.query, "mail programs do not decode a plus"
    assert "Caf\xe9? 100% &#34;yes&#34; &amp; more" in page.text


def test_an_email_address_cannot_add_another_header(scan: Scan) -> None:
    page = scan("email", {"email": '"a?bcc=evil@x.org,b&cc=c"@example.com', "subject": "Hi"})
    parts = urlsplit(address_in(page, "mailto"))
    assert parse_qs(parts.query, strict_parsing=True) == {"subject": ["Hi"]}
    assert "," not in parts.path


def test_an_email_without_a_subject_is_only_an_address(scan: Scan) -> None:
    assert address_in(scan("email", "zoe@example.com"), "mailto") == "mailto:zoe@example.com"


@pytest.mark.parametrize(
    ("phone", "address"),
    [
        ("+1 (555) 010-0", "tel:+15550100"),
        ("*100#", "tel:*100%23"),
        ("0800 / 11.22", "tel:08001122"),
        ("+44 (0)20 7946 0958", "tel:+442079460958"),
        (" +49(0)30/1234", "tel:+49301234"),
        ("(0)30 1234", "tel:0301234"),
    ],
)
def test_a_phone_number_opens_the_phone(scan: Scan, phone: str, address: str) -> None:
    assert address_in(scan("phone", phone), "tel") == address


def test_an_sms_has_its_text(scan: Scan) -> None:
    page = scan("sms", {"phone": "+1 555 0100", "message": "50% off & más\nnow"})
    assert address_in(page, "sms") == "sms:+15550100?&body=50%25%20off%20%26%20m%C3%A1s%0D%0Anow"
    assert address_in(scan("sms", "+1 555 0100"), "sms") == "sms:+15550100"


def test_the_wifi_page_shows_name_and_password(scan: Scan) -> None:
    page = scan("wifi", {"ssid": "<Guests>", "password": "a&b-12345"})
    assert 'id="network" aria-labelledby="network-label" dir="auto">&lt;Guests&gt;</p>' in page.text
    assert 'id="password" aria-labelledby="password-label" dir="auto">a&amp;b-12345</p>' in page.text
    assert "This network has no password." in scan("wifi", {"ssid": "Open"}).text


# --- vCards, read by an independent library


@pytest.fixture
def save(app: Flask, alice: Client) -> Callable[[Any], TestResponse]:
    """Return the file that the page of a contact links to."""
    return lambda data: app.test_client().get(f"{encoded_path(alice, 'vcard', data)}/vcard")


def test_a_vcard_is_shown_before_it_is_saved(app: Flask, alice: Client) -> None:
    path = encoded_path(alice, "vcard", VCARD | {"site": "https://example.com/?a=1&b=<2>"})
    page = app.test_client().get(path)
    assert (page.status_code, page.mimetype, page.headers["Cache-Control"]) == (200, "text/html", "no-store")
    assert "Zoë Müller; Smith, Jr.</h1>" in page.text
    shown = [html.unescape(text) for text in re.findall(r"<dd[^>]*>(?:<a [^>]*>)?(.*?)</", page.text, re.DOTALL)]
    assert shown == [
        VCARD["cell"],
        VCARD["phone"],
        VCARD["fax"],
        VCARD["email"],
        "https://example.com/?a=1&b=%3C2%3E",
        "1 Main St; \\ Suite 5\n01000-000 São Paulo\nSP\nBrasil",
    ]
    links = re.findall(r'<a class="button[^>]* href="(.*?)"', page.text)
    assert links == [f"{path}/vcard", "tel:+15550101", "mailto:zoe@example.com"]
    assert app.test_client().get(links[0]).mimetype == "text/vcard"
    [code] = alice.get("/api/qr").get_json()["data"]["qrs"]
    assert code["scans"] == 1, "the file is no second scan"


def test_the_file_of_a_contact_is_found_from_an_address_with_a_slash(app: Flask, alice: Client) -> None:
    path = encoded_path(alice, "vcard", VCARD)
    page = app.test_client().get(f"{path}/")
    assert page.status_code == 200
    assert f'href="{path}/vcard"' in page.text


def test_a_contact_without_details_shows_its_name_only(scan: Scan) -> None:
    page = scan("vcard", {"org": "Acme"})
    assert "Acme</h1>" in page.text
    assert re.findall(r'<a class="button[^>]*>(.*?)</a>', page.text) == ["Save contact"]
    assert "<dt>" not in page.text


def test_other_codes_have_no_contact(app: Flask, alice: Client) -> None:
    assert app.test_client().get(f"{encoded_path(alice, 'text', 'Hello')}/vcard").status_code == 404
    assert app.test_client().get("/q/unknown/vcard").status_code == 404


def test_a_vcard_is_read_by_an_address_book(save: Callable[[Any], TestResponse]) -> None:
    answer = save(VCARD)
    assert answer.headers["Content-Type"] == "text/vcard; charset=utf-8"
    assert answer.headers["Content-Disposition"] == (
        'attachment; filename="Zo-M-ller-Smith-Jr.vcf"; '
        "filename*=UTF-8''Zo%C3%AB%20M%C3%BCller%3B%20Smith%2C%20Jr..vcf"
    )
    card = vobject.readOne(answer.text)
    assert card.version.value == "3.0"
    assert (card.n.value.given, card.n.value.family) == (VCARD["fname"], VCARD["lname"])
    assert card.fn.value == f"{VCARD['fname']} {VCARD['lname']}"
    assert card.org.value == [VCARD["org"]]
    assert {tel.type_param: tel.value for tel in card.tel_list} == {
        "VOICE": VCARD["phone"],
        "CELL": VCARD["cell"],
        "FAX": VCARD["fax"],
    }
    assert (card.email.value, card.url.value) == (VCARD["email"], VCARD["site"])
    address = card.adr.value
    assert (address.street, address.city, address.region) == (VCARD["street"], VCARD["city"], VCARD["state"])
    assert (address.code, address.country) == (VCARD["zip"], VCARD["country"])


def test_a_vcard_contains_only_the_members_that_are_set(save: Callable[[Any], TestResponse]) -> None:
    card = vobject.readOne(save({"org": "Acme"}).text)
    assert set(card.contents) == {"version", "n", "fn", "org"}
    assert card.fn.value == "Acme"


def test_a_vcard_folds_lines_between_characters() -> None:
    data = VCARD | {"org": "äöü€😀" * 40}
    lines = vcard(data).encode().split(b"\r\n")
    assert max(len(line) for line in lines) <= 75
    for line in lines:
        line.decode()
    assert vobject.readOne(vcard(data)).org.value == [data["org"]]


@pytest.mark.parametrize("separator", ["\x85", "\u2028", "\u2029"])
def test_other_line_breaks_do_not_end_a_line_of_a_vcard(separator: str) -> None:
    lines = vcard(VCARD | {"org": f"Acme{separator}TEL:666"}).splitlines()
    assert "ORG:AcmeTEL:666" in lines


# --- all types


@pytest.mark.parametrize("path", ["/q/unknown", "/q/", "/q/a%00b", "/q/%F0%9F%98%80", "/q/a/b", f"/q/{'x' * 200}"])
def test_an_unknown_code_is_a_404(app: Flask, path: str) -> None:
    answer = app.test_client().get(path)
    assert (answer.status_code, answer.mimetype) == (404, "text/html")


SHOWN = {
    "text": ("Bring your own cup", "Bring your own cup"),
    "email": ({"email": "zoe@example.com", "subject": "Hi"}, "Write e-mail"),
    "phone": ("+1 555 0100", "Call"),
    "sms": ({"phone": "+1 555 0100", "message": "On my way"}, "Write message"),
    "vcard": (VCARD, "Save contact"),
    "wifi": ({"ssid": "Guests", "password": "a long password"}, "a long password"),
}


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_scan_pages_work_on_a_phone(browser: Browser, base: str, alice: Client, scripts: bool) -> None:
    browser.size(*PHONE)
    for type_, (data, shown) in SHOWN.items():
        browser.scripts(run=scripts)
        browser.open(base + encoded_path(alice, type_, data))
        assert shown in browser.text
        assert browser.find("meta[name=robots]").get_attribute("content") == "noindex"
        assert ("Copy " in browser.text) == (scripts and type_ in ("text", "wifi"))
        browser.scripts(run=True)
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
