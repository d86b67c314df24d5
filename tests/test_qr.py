import re
from typing import Any

import psycopg2
import pytest

from linkmgr.core.fields.qr import CODE_LENGTH, TYPES
from tests.conftest import BASE_URL, Client
from tests.support.codes import DATA, TEXT
from tests.support.factories import Sql
from tests.support.races import during
from tests.support.reports import NOTHING

VCARD_MEMBERS = "fname, lname, org, phone, cell, fax, email, site, street, city, state, zip, country"
VCARD_IN_WORDS = VCARD_MEMBERS.replace(", country", " and country")
VCARD = dict.fromkeys(VCARD_MEMBERS.split(", "), "")
STORED: dict[str, Any] = DATA | {
    "vcard": VCARD | DATA["vcard"] | {"site": "https://example.com/ada"},
    "link": "https://example.com/caf%C3%A9?q=1",
    "wifi": DATA["wifi"] | {"encryption": "WPA"},
}
NAMES = {
    "text": "Hello world",
    "vcard": "Ada Lovelace",
    "link": "https://example.com/caf%C3%A9?q=1",
    "email": "ada@example.com",
    "phone": "+44 (20) 7946-0000",
    "sms": "112",
    "wifi": "Home; sweet",
}


def stored(sql: Sql, qr_id: int) -> Any:
    return sql("SELECT type, data, name, background, foreground FROM qrs WHERE id = %(id)s", id=qr_id)[0]


@pytest.mark.parametrize("type_", TYPES)
def test_a_code_of_each_type_is_listed_and_returned(alice: Client, sql: Sql, type_: str) -> None:
    answer = alice.post("/api/qr/add", {"type": type_, "data": DATA[type_]}).get_json()
    assert set(answer) == {"error", "id", "link", "data", "details", "record"}
    assert re.fullmatch(f"{BASE_URL}/qr/[0-9A-Za-z]{{{CODE_LENGTH}}}", answer["link"])
    [listed] = alice.get("/api/qr").get_json()["data"]["qrs"]
    date = listed["date"]
    assert listed == {"id": answer["id"], "link": answer["link"], "scans": 0, "name": NAMES[type_]} | dict.fromkeys(
        ("date", "updated"), date
    )
    assert len(date) == len("2026-11-20 12:00:00")
    read = alice.get(f"/api/qr/{answer['id']}").get_json()
    kept = stored(sql, answer["id"])
    record = listed | kept | {"logo": ""}
    assert read == {"error": 0, "details": record, "data": NOTHING, "record": record}
    assert list(read) == ["error", "details", "data", "record"]
    assert kept == {
        "type": type_,
        "data": STORED[type_],
        "name": NAMES[type_],
        "background": "rgb(255,255,255)",
        "foreground": "rgb(0,0,0)",
    }


@pytest.mark.parametrize(
    ("type_", "data", "becomes"),
    [
        ("email", "ada@example.com", {"email": "ada@example.com", "subject": "", "body": ""}),
        ("sms", "112", {"phone": "112", "message": ""}),
        ("phone", {"phone": "112"}, "112"),
        ("wifi", {"ssid": "Cafe", "password": None}, {"ssid": "Cafe", "encryption": "nopass", "password": ""}),
        ("wifi", {"ssid": "Cafe", "password": "x"}, {"ssid": "Cafe", "encryption": "WPA", "password": "x"}),
        (
            "wifi",
            {"ssid": "Cafe", "pass": "secret", "password": ""},
            {"ssid": "Cafe", "encryption": "WPA", "password": "secret"},
        ),
        (
            "wifi",
            {"ssid": "Cafe", "encryption": "none", "password": "x"},
            {"ssid": "Cafe", "encryption": "nopass", "password": ""},
        ),
        ("vcard", {"org": "Acme", "fname": "", "colour": 5}, VCARD | {"org": "Acme"}),
        ("wifi", ["Cafe", "WPA", "secret"], {"ssid": "Cafe", "encryption": "WPA", "password": "secret"}),
        ("wifi", ["Cafe", None, "secret"], {"ssid": "Cafe", "encryption": "WPA", "password": "secret"}),
        ("wifi", [{"ssid": "Cafe"}, {"pass": "x"}], {"ssid": "Cafe", "encryption": "WPA", "password": "x"}),
        ("email", ["ada@example.com"], {"email": "ada@example.com", "subject": "", "body": ""}),
    ],
)
def test_data_is_stored_in_canonical_form(alice: Client, sql: Sql, type_: str, data: Any, becomes: Any) -> None:
    assert stored(sql, alice.add("/api/qr/add", {"type": type_, "data": data}))["data"] == becomes


def test_scans_and_statistics_are_those_of_this_code(alice: Client, sql: Sql) -> None:
    qr_id, other = alice.add("/api/qr/add", TEXT), alice.add("/api/qr/add", TEXT)
    top = '{"country": {"France": 5}, "social": {"twitter": 2}}'
    sql("INSERT INTO totals VALUES (%(id)s, 7, 3, %(top)s) RETURNING 1", id=qr_id, top=top)
    sql("INSERT INTO totals VALUES (%(id)s, 1, 1) RETURNING 1", id=other)
    assert [code["scans"] for code in alice.get("/api/qr").get_json()["data"]["qrs"]] == [1, 7]
    read = alice.get(f"/api/qr/{qr_id}").get_json()
    assert read["details"]["scans"] == 7
    assert read["data"] == NOTHING | {
        "clicks": 7,
        "uniqueClicks": 3,
        "topCountries": {"France": "5"},
        "socialCount": {"facebook": 0, "twitter": 2, "instagram": 0},
    }


def test_the_image_of_a_deleted_code_is_deleted(alice: Client) -> None:
    made = alice.post("/api/qr/add", TEXT).get_json()
    image_path = made["link"].removeprefix(BASE_URL)
    assert alice.http.get(image_path).status_code == 200
    assert alice.delete(f"/api/qr/{made['id']}/delete").status_code == 200
    assert alice.http.get(image_path).status_code == 404


TOO_CLOSE = (
    "The foreground and background colors are too similar. Choose colors with a contrast of at least 3 to 1. For "
    "example, change {}."
).format
COLOUR = "must be a color such as rgb(255,128,0)."


@pytest.mark.parametrize(
    ("colors", "better"),
    [
        ({"background": "rgb(0,0,0)"}, "background to rgb(92,92,92)"),
        ({"foreground": "rgb(220,220,220)"}, "foreground to rgb(147,147,147)"),
    ],
)
def test_colors_that_cannot_be_scanned_are_rejected(alice: Client, colors: dict[str, str], better: str) -> None:
    answer = alice.post("/api/qr/add", TEXT | colors)
    assert (answer.status_code, answer.get_json()["message"]) == (400, TOO_CLOSE(better))


@pytest.mark.parametrize(
    ("colors", "better"),
    [
        ({"foreground": "rgb(200,200,200)"}, "foreground to rgb(148,148,148)"),
        (
            {"foreground": "rgb(0,0,255)", "background": "rgb(0,0,0)"},
            "foreground to rgb(0,0,0) and background to rgb(51,51,255)",
        ),
    ],
)
def test_similar_colors_are_stored_with_a_warning_that_names_better_ones(
    alice: Client, sql: Sql, colors: dict[str, str], better: str
) -> None:
    answer = alice.post("/api/qr/add", TEXT | colors).get_json()
    assert answer["warnings"] == [TOO_CLOSE(better)]
    assert stored(sql, answer["id"]).items() >= colors.items()
    [element] = alice.post("/api/qr/bulk", {"qrs": [TEXT | colors]}).get_json()["warnings"]
    assert element == f"qrs[0]: {TOO_CLOSE(better)}"
    path = f"/api/qr/{alice.add('/api/qr/add', TEXT)}/update"
    assert alice.put(path, {"data": "y"} | colors).get_json()["warnings"] == [TOO_CLOSE(better)]
    assert "warnings" not in alice.put(path, {"data": "z"}).get_json()


@pytest.mark.parametrize("type_", TYPES)
def test_a_name_that_was_derived_from_the_data_follows_it(alice: Client, type_: str) -> None:
    def name(qr_id: int) -> str:
        return str(alice.get(f"/api/qr/{qr_id}").get_json()["details"]["name"])

    changed: dict[str, Any] = {
        "text": "Bye", "link": "https://example.com/", "phone": "113", "email": "eve@example.com", "sms": "113",
        "vcard": {"fname": "Eve"}, "wifi": {"ssid": "Work"},
    }  # fmt: skip
    code = {"type": type_, "data": DATA[type_]}
    derived, named = alice.add("/api/qr/add", code), alice.add("/api/qr/add", code | {"name": "Poster"})
    for qr_id in (derived, named):
        assert alice.put(f"/api/qr/{qr_id}/update", {"data": changed[type_]}).status_code == 200
    expected = changed[type_] if isinstance(changed[type_], str) else next(iter(changed[type_].values()))
    assert (name(derived), name(named)) == (expected, "Poster")
    alice.put(f"/api/qr/{derived}/update", {"data": DATA[type_], "name": "Flyer"})
    assert name(derived) == "Flyer"


PHONE = "must be a phone number: 2 to 40 digits, spaces, and + * # ( ) . / -."


@pytest.mark.parametrize(
    ("type_", "data", "message"),
    [
        ("text", 5, "data must be a string for the type text."),
        ("text", ["x"], "data must be a string for the type text."),
        ("text", " ", "data must not be empty."),
        ("text", "a\x07", "data must not contain control characters."),
        ("text", "x" * 4097, "data must be at most 4096 characters."),
        ("link", {"url": "https://example.com"}, "data must be a string for the type link."),
        ("link", "javascript:alert(1)", "data must be a URL that begins with http:// or https://."),
        ("link", "http://example.com:0", "data must have a port from 1 to 65535."),
        ("link", f"{BASE_URL}/q/x", "data must not point to this service."),
        ("phone", "call me", f"data {PHONE}"),
        ("email", "ada", "data.email must be a valid e-mail address."),
        ("email", {"subject": "Hi"}, "data.email is required for the type email."),
        ("email", {"email": "a@example.com", "body": 5}, "data.body must be a string."),
        ("email", {"email": "a@example.com", "subject": "a\nb"}, "data.subject must not contain control characters."),
        ("sms", {"message": "Hi"}, "data.phone is required for the type sms."),
        ("sms", {"phone": "112", "message": "x" * 1601}, "data.message must be at most 1600 characters."),
        ("sms", "x", f"data.phone {PHONE}"),
        ("vcard", "Ada", f"data must be an object with {VCARD_IN_WORDS} for the type vcard."),
        ("vcard", {"phone": "112"}, "data.fname is required unless data.lname or data.org is set."),
        ("vcard", {"fname": "Ada", "fax": "x"}, f"data.fax {PHONE}"),
        ("vcard", {"fname": "Ada", "site": "javascript:x"}, "data.site must be a valid URL."),
        ("vcard", {"fname": "Ada", "site": "javascript://x"}, "data.site must be a URL that begins with "
         "http:// or https://."),
        ("wifi", [], "data must be an object with ssid, encryption and password for the type wifi."),
        ("wifi", ["a", "WPA", *"bc"], "data must be an object with ssid, encryption and password for the type wifi."),
        ("wifi", ["Cafe", {}], "data must be an object with ssid, encryption and password for the type wifi."),
        ("wifi", ["Cafe", "secret"], "data.encryption must be WPA, WEP or nopass."),
        ("wifi", {}, "data.ssid is required for the type wifi."),
        ("wifi", {"ssid": "x", "encryption": "WPA"}, "data.password is required unless data.encryption is nopass."),
        ("wifi", {"ssid": "x", "encryption": "rot13"}, "data.encryption must be WPA, WEP or nopass."),
        ("wifi", {"ssid": "é" * 17}, "data.ssid must be at most 32 bytes."),
        ("wifi", {"ssid": "x", "password": "é" * 33}, "data.password must be at most 64 bytes."),
    ],
)  # fmt: skip
def test_data_that_does_not_match_its_type_is_rejected(alice: Client, type_: str, data: Any, message: str) -> None:
    answer = alice.post("/api/qr/add", {"type": type_, "data": data})
    assert (answer.status_code, answer.get_json()["message"]) == (400, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "data is required."),
        ({"data": "x"}, "data must be an object with ssid, encryption and password for the type wifi."),
        ({"data": {}}, "data.ssid is required for the type wifi."),
        ({"data": {"ssid": "x"}, "name": ""}, "name must not be empty."),
        ({"data": {"ssid": "x"}, "background": ""}, f"background {COLOUR}"),
        ({"data": {"ssid": "x"}, "background": "rgb(0,0,90)"}, TOO_CLOSE("background to rgb(87,87,146)")),
        ({"data": {"ssid": "x"}, "logo": "none.png"}, None),
    ],
)
def test_an_invalid_update_changes_nothing(
    alice: Client, sql: Sql, changes: dict[str, Any], message: str | None
) -> None:
    qr_id = alice.add("/api/qr/add", {"type": "wifi", "data": DATA["wifi"], "foreground": "rgb(0,0,40)"})
    before = stored(sql, qr_id)
    answer = alice.put(f"/api/qr/{qr_id}/update", changes)
    assert answer.status_code == 400
    assert answer.get_json()["message"] == message or message is None
    assert stored(sql, qr_id) == before


def test_a_light_code_on_a_dark_background_is_stored_with_a_warning_that_proposes_the_reverse(alice: Client) -> None:
    white, navy = "rgb(255,255,255)", "rgb(0,40,90)"
    answer = alice.post("/api/qr/add", TEXT | {"foreground": white, "background": navy}).get_json()
    better = f"foreground to {navy} and background to {white}"
    assert answer["warnings"] == [f"Many readers cannot scan a light code on a dark background. Change {better}."]
    path = f"/api/qr/{answer['id']}/update"
    assert "warnings" not in alice.put(path, {"data": "y", "foreground": navy, "background": white}).get_json()


def test_two_concurrent_updates_cannot_make_the_colors_too_similar(
    alice: Client, sql: Sql, raw: psycopg2.extensions.connection
) -> None:
    """Update both colors, each of which has enough contrast with the previous value of the other."""
    qr_id = alice.add("/api/qr/add", TEXT)
    other = f"UPDATE qrs SET background = 'rgb(120,120,120)' WHERE id = {qr_id}"
    changes = {"data": "y", "foreground": "rgb(110,110,110)"}
    answer = during(raw, other, lambda: alice.put(f"/api/qr/{qr_id}/update", changes))
    assert (answer.status_code, answer.get_json()["message"]) == (400, TOO_CLOSE("foreground to rgb(47,47,47)"))
    assert stored(sql, qr_id)["foreground"] == "rgb(0,0,0)"
