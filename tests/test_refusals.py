"""Refusals by the schemas of bodies. test_contract.py shows that each operation uses its schema."""

from collections.abc import Callable
from typing import Any

import pytest

from linkmgr.core.fields import base
from tests.conftest import BASE_URL
from tests.support.bodies import LEAST
from tests.support.refusals import Refusal, least, schemas

Wrong = list[tuple[Any, str]]  # values, and what their messages say behind the name of the member

HTTP = "must be a URL that begins with http:// or https://"
TIME = "must be a time such as 2030-12-31 23:59:59"
ALIAS = "must be 1 to 100 letters, digits, '_' or '-'"
COLOR = "must be a color such as #f50 or #ff5500"
RGB = "must be a color such as rgb(255,128,0)"
USERNAME = "must be 3 to 50 letters, digits, '_', '.' or '-'"
TAG = "must be 1 to 100 letters, digits, '_', '.', ':', '/' or '-'"
IDS = "must be an array of ids such as [17, 18]"
LINK_TYPE = "must be direct, frame, splash, the id of a splash page, or overlay-<id>"
DEEP_LINK = "must be an object with auto, apple and google"
BIO_LINKS = "must be an array of objects with title and url"
SITE = "https://example.org/"
LINK = {"title": "Blog", "url": SITE}
CONTROL = "must not contain control characters"
SPACES = "must not contain spaces, control characters or backslashes"
USER_NAME = "must not contain a user name or password"
OURS = "must not point to this service"
NO_BOOLEANS: list[Any] = ["yes", "", 1, 0, 0.5, [], {}]
NO_OBJECTS: list[Any] = ["x", None, []]
NO_TEXTS: list[Any] = [5, 0, True, False, [], {}, [SITE], {"url": SITE}]


def same(problem: str, *values: Any) -> Wrong:
    return [(value, problem) for value in values]


def is_too_long(length: int) -> Wrong:
    return [("x" * (length + 1), f"must be at most {length} characters")]


URLS = [
    *same(HTTP, "example.com", "//example.com/", "javascript:alert(1)", "data:image/png;base64,", "ftp://example.com/"),
    *same(USER_NAME, "https://user@example.com", "https://a:b@example.com/"),
    *same(SPACES, "https://example.com/a b", "https://a\r\nb", "https://a\\b"),
    *same("must have a port from 1 to 65535", "http://example.com:0", "https://example.com:00000/", "http://[::5]:0/"),
    ("https://example.com/" + "x" * 2048, "must be at most 2048 characters"),
]
TARGETS = [*URLS, *same(OURS, f"{BASE_URL}/x", "http://127.0.0.1.:5000", "http://127\u30020.0.1\u3002/")]
# By the name of the type of a member, or of one that it is derived from
BY_TYPE: dict[str, Callable[[Any], Wrong]] = {
    "Alias": lambda _: [
        # Those that some domains allow are in test_wide_aliases.py.
        *same(ALIAS, "x" * 101, "a b", "a..", "a//b", "../x", "äö\u200d", "abc\n", " abc", "a%20b", " "),
        *((word, f"'{word}' is reserved: choose another alias") for word in ("api", "healthz", "static")),
    ],
    "Password": lambda field: same(
        f"must be {field.minimum} to 1024 characters", "x" * 1025, *["1234"] * (field.minimum > 4)
    ),
    "Email": lambda _: [
        *same("must be a valid e-mail address", "nobody", "carol@"),
        ("a@b.example\n", CONTROL),
        ("x" * 250 + "@example.com", "must be at most 255 characters"),
    ],
    "Timestamp": lambda _: same(TIME, "tomorrow", "2030-01-01", "2030-02-30 00:00:00", "2030-1-1 0:0:0"),
    "Color": lambda _: same(COLOR, "red", "#ff55", "#ff5500\n", "rgb(1,2,3)", "#gg5500", "#fff;x:url(//a.example)"),
    "ExternalId": lambda field: same(f"must be {field.description}", ".", "a b", "a/b", "x\n", "x" * 256, "é"),
    "Matching": lambda field: same(f"must be {field.description}", "a b", "x\n", "x" * 101, "été", "{}"),
    "Choice": lambda field: same(f"must be one of {', '.join(field.choices)}", "other", field.choices[0].upper()),
    "Url": lambda _: URLS,
    "Target": lambda _: TARGETS,
    "Boolean": lambda _: same("must be true or false", "true", "yes", 1, 0, []),
    "Integer": lambda field: same(
        f"must be an integer from {field.minimum} to {field.maximum}",
        *(field.minimum - 1, field.maximum + 1, 10**30, True, 1.0, "1", [1]),
    ),
    "Id": lambda _: same("must be an integer", "2", True),
}
# Texts of any characters, and the lengths that the API documents
LENGTHS = {
    "url": {"metatitle": 255, "metadescription": 1000, "description": 1000},
    "bio": {"name": 255, "bio": 2000},
    "domain": {"brandname": 60, "brandlogo": 2048},
    "splash": {"name": 255, "title": 255, "message": 2000},
    "overlay": {"name": 255, "message": 2000, "label": 255},
    "pixel": {"name": 255},
    "qr": {"name": 255, "logo": 2048},
    "campaign": {"name": 255},
    "channel": {"name": 255, "description": 1000},
    "key": {"name": 255},
    "webhook": {"name": 255},
    "plan": {"name": 50},
}
OF_A_LINK: dict[str, Wrong] = {
    "type": same(LINK_TYPE, "popup", "overlay-", "overlay-x", True, ["direct"], {}),
    "status": same("must be one of private, public", "hidden"),
    "domain": [("-.-", "must contain a valid host name"), ("ftp://x", HTTP)],
    "starts": same(TIME, "tomorrow", "2030-02-30"),
    "expiry": [(1767225600, "must be a string"), ("tomorrow", TIME)],  # test_times.py has more
    "geotarget": [
        (5, "must be an array of objects with location and link"),
        *(([{"location": "fr", "link": url}], f"contains an invalid link: it {problem}") for url, problem in TARGETS),
    ],
    "devicetarget": same("must be an array of objects with device and link", "x"),
    "languagetarget": same("must be an array of objects with language and link", {"en": SITE}),
    "parameters": same("must be an array of objects with name and value", {"a": "b"}),
    "variants": same("must be an array of objects with name, url and weight", "x", {}),  # test_variants.py has more
    "rules": [  # test_rules.py has more
        *same("must be an array of objects with when and url", "x", {}, [5]),
        ([{}] * 21, "must have at most 20 rules"),
    ],
    "deeplink": [
        *same(DEEP_LINK, "x", [1]),
        *(({"apple": url}, f"contains an invalid link: it {problem}") for url, problem in TARGETS),
        *(({"auto": auto, "other": 1}, "must be an object whose auto is true or false") for auto in NO_BOOLEANS),
        *(
            (members | {store: url}, f"must be an object whose {store} is a URL")
            for url in NO_TEXTS
            for store, members in (("apple", {}), ("google", {"auto": True, "apple": SITE}))
        ),
    ],
    "metadata": [
        *same("must be a JSON object", "x", [1], 5),
        *same("must be a JSON object without NUL characters and large numbers", {"a": "\0"}, {"a": 2**64}),
        *same("must be a JSON object of at most 2,048 bytes", {"a": "x" * 2041}, {"é" * 1022: 1}),
    ],
    "pixels": same(IDS, 5),
    "campaign": same("must be an id such as 17", "x", True, 1.5, "٣"),
    "channel": same("must be an id such as 17, or an array of ids such as [17, 18]", {}, 1.5),
}
LINKS: Wrong = [
    *same(BIO_LINKS, SITE, {}),
    ([LINK] * 101, "must have at most 100 links"),
    *(([LINK, item], "number 2 must be an object with title and url") for item in NO_OBJECTS),
    ([{}], "number 1: title is required; url is required"),
    ([LINK | {"title": 5}], "number 1: title must be a string"),
    *(([LINK, LINK | {"url": url}], f"number 2: url {problem}") for url, problem in URLS),
]
OF_A_KEY: dict[str, Wrong] = {
    "scopes": [([], "must not be empty"), (["x"] * 101, "must be an array of at most 100 scopes")],
    "domains": same("must be an array of at most 100 ids of your branded domains", [0], [True], ["17"], [2**63]),
    "allowed_ips": same(
        "must be an array of at most 100 IP addresses or networks such as 192.0.2.7 or 2001:db8::/32",
        ["192.0.2.300"], ["fe80::1%eth0"], [7], "192.0.2.1",
    ),
}  # fmt: skip
# Members that have a rule of their own
BY_WORD: dict[str, dict[str, Wrong]] = {
    "url": OF_A_LINK,
    "bio": {"links": LINKS},
    "qr": {
        name: [*same(RGB, "rgb(256,0,0)", "rgb(-1,0,0)", "rgb(0,0)", "rgb(0,0,٣)", "#ffffff", "rgb(0,0,0)\n")]
        for name in ("background", "foreground")
    },
    "pixel": {"tag": same(TAG, "x" * 101)},
    "key": OF_A_KEY,
    "webhook": {
        "events": same(
            "must be a non-empty array of event types such as ['link.created', 'visit'], or prefixes such as"
            " ['link.*'] and ['*']", [], "*",
        )
    },
    "user": {"username": same(USERNAME, "ab", "x" * 101)},
}  # fmt: skip
ELSEWHERE = {
    "plan": {"prices", "limits"},  # test_plans.py
    "domain": {"domain"},  # test_domains.py
    "qr": {"data"},  # test_qr.py
}


def refused(word: str, name: str, field: Any) -> Wrong:
    """Return the values that a member refuses."""
    wrong = BY_WORD.get(word, {}).get(name, [])
    if name in LENGTHS.get(word, {}):
        wrong = [*wrong, *is_too_long(LENGTHS[word][name]), (" ", "must not be empty")]
        wrong += same(CONTROL, "bell\a", "\x7f", *([] if field.multiline else ["two\nlines"]))
    elif not wrong or isinstance(field, base.Matching):
        kinds = [kind.__name__ for kind in type(field).__mro__]
        wrong = wrong + next((BY_TYPE[kind](field) for kind in kinds if kind in BY_TYPE), [])
    return wrong + (same("must be a string", 5, ["x"], {}) if isinstance(field, base.Text) else [])


@pytest.mark.parametrize("word", LEAST)
def test_each_member_refuses_what_its_type_does_not_allow(refusal: Refusal, word: str) -> None:
    for schema in schemas(word):
        for name, field in schema().fields.items():
            wrong = refused(word, name, field)
            assert wrong or name in ELSEWHERE[word]
            for value, problem in wrong:
                sent = least(word, schema) | {name: value}
                assert refusal(schema, sent) == f"{name} {problem}.", (schema, sent)


@pytest.mark.parametrize("word", LEAST)
def test_the_least_is_enough_and_each_of_its_members_is_needed(refusal: Refusal, word: str) -> None:
    schema = schemas(word)[0]
    if not LEAST[word]:
        assert refusal(schema, {}) == refusal(schema, {"email": None}) == "Send email, password or domain."
        return
    assert refusal(schema, LEAST[word]) == ""
    required = [name for name, field in schema().fields.items() if field.required]
    for unsent in ({}, dict.fromkeys(LEAST[word]), dict.fromkeys(LEAST[word], "")):
        problems = "; ".join(f"{name} is required" for name in required)
        assert refusal(schema, unsent) == (f"{problems}." if problems else "")


@pytest.mark.parametrize(
    ("word", "sent", "message"),
    [
        ("campaign", {"slug": "x"}, "name is required."),
        ("campaign", {"name": None}, "name is required."),
        ("pixel", {"name": "x"}, "tag is required."),
        ("pixel", {"name": "", "tag": "x"}, "name must not be empty."),
        ("qr", {"name": "x"}, "data is required."),
        ("qr", {"data": "x", "name": ""}, "name must not be empty."),
        ("qr", {"data": "x", "background": ""}, f"background {RGB}."),
        ("splash", {"name": ""}, "name must not be empty."),
        *(("overlay", {name: ""}, "") for name in ("message", "link", "label")),
        *(("overlay", {name: ""}, f"{name} {COLOR}.") for name in ("color", "background")),
        ("account", {"email": ""}, "email must not be empty."),
        ("account", {"password": ""}, "password must be 5 to 1024 characters."),
        ("key", {"expires": ""}, ""),
    ],
)
def test_an_update_needs_and_clears_some_members(refusal: Refusal, word: str, sent: Any, message: str) -> None:
    assert refusal(schemas(word)[-1], sent) == message
