"""Text of users in Arabic or Hebrew has its own direction on English pages."""

from collections.abc import Callable

import pytest

from tests.conftest import Client
from tests.support.browser import Browser
from tests.support.codes import encoded_path

TEXT = "\u0645\u0631\u062d\u0628\u0627 (1)!"


def splash(alice: Client) -> str:
    page = alice.add("/api/splash/add", {"name": "A", "title": TEXT, "message": TEXT, "counter": 60})
    return shortened(alice, "splash-page", str(page))


def overlay(alice: Client) -> str:
    poll = {"type": "poll", "name": "B", "message": f"{TEXT}\n{TEXT}\n{TEXT} ?", "label": TEXT}
    return shortened(alice, "with-overlay", f"overlay-{alice.add('/api/overlay/add', poll)}")


def shortened(alice: Client, alias: str, type_: str) -> str:
    alice.add("/api/url/add", {"url": "https://example.com/", "custom": alias, "type": type_})
    return f"/{alias}"


def campaign(alice: Client) -> str:
    made = alice.post("/api/campaign/add", {"name": TEXT, "public": True}).get_json()
    link_id = alice.add("/api/url/add", {"url": "https://example.com/", "metatitle": TEXT})
    alice.post(f"/api/campaign/{made['id']}/assign/{link_id}")
    return f"/u/alice/list-{made['id']}"


def bio(alice: Client) -> str:
    links = [{"title": TEXT, "url": "https://example.com/"}]
    alice.add("/api/bio/add", {"name": TEXT, "alias": "about-me", "bio": TEXT, "links": links})
    return "/about-me"


PAGES: dict[str, Callable[[Client], str]] = {
    ".text": lambda alice: encoded_path(alice, "text", TEXT),
    "#network, #password": lambda alice: encoded_path(alice, "wifi", {"ssid": TEXT, "password": TEXT}),
    ".facts dd:last-child, .text": lambda alice: encoded_path(
        alice, "email", {"email": "zoe@example.com", "subject": TEXT, "body": TEXT}
    ),
    ".card h1, .links strong": campaign,
    ".splash h1, .lines": splash,
    ".message, .choices label, form .button": overlay,
    ".bio h1, .about, li strong": bio,
}


@pytest.mark.browser
def test_it_runs_from_right_to_left(browser: Browser, base: str, alice: Client) -> None:
    for selector, make in PAGES.items():
        browser.open(base + make(alice))
        found = browser.run(f"""
            return Array.from(document.querySelectorAll('{selector}'), one => getComputedStyle(one).direction)""")
        assert found == ["rtl"] * len(found), selector
        assert len(found) >= selector.count(",") + 1, selector
