"""The calls of pixels from Chromium. Each vendor is a server on loopback, under its own name and TLS."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait

from linkmgr.public import pixel_tags
from tests.conftest import Client
from tests.support import foreign, interstitials
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.vendors import all_hosts

pytestmark = pytest.mark.browser


class Case(NamedTuple):
    tag: str
    calls: str  # an expression for the calls that the tag queues until the script is loaded
    home: str  # the host to which the vendor's script sends them
    sent: Any


GOOGLE = "[...dataLayer].map((call) => call.event ?? [...call].filter((value) => !(value instanceof Date)))"
UET = (
    "(window.UET = class { constructor(given) { this.q = [...given.q, given.ti]; } "
    "push(event) { report([...this.q, event]); } }, 0)"
)
TIKTOK = "[TiktokAnalyticsObject, Object.keys(ttq._i), ttq._i.C9AB._u, typeof ttq._t.C9AB, ...ttq]"
CONVERSION = ["event", "conversion", {"send_to": "AW-1/lab"}]
EVENTS = "https://analytics.tiktok.com/i18n/pixel/events.js"
CASES = {
    "gtmpixel": Case("GTM-1", GOOGLE, "www.google-analytics.com", ["gtm.js"]),
    "gapixel": Case("G-1", GOOGLE, "region1.google-analytics.com", [["js"], ["config", "G-1"]]),
    "adwordspixel": Case("AW-1/lab", GOOGLE, "googleads.g.doubleclick.net", [["js"], ["config", "AW-1"], CONVERSION]),
    "fbpixel": Case("12", "fbq.queue", "www.facebook.com", [["init", "12"], ["trackSingle", "12", "PageView"]]),
    "linkedinpixel": Case("13", "_linkedin_data_partner_ids", "px.ads.linkedin.com", ["13"]),
    "twitterpixel": Case("o1", "twq.queue", "t.co", [["config", "o1"]]),
    "adrollpixel": Case(
        "ADV/PIX", "[adroll_adv_id, adroll_pix_id, ...adroll]", "d.adroll.com", ["ADV", "PIX", ["track", ["pageView"]]]
    ),
    "quorapixel": Case("q1", "qp.queue", "q.quora.com", [["init", "q1"], ["track", "ViewContent"]]),
    "pinterest": Case("26", "pintrk.queue", "ct.pinterest.com", [["load", "26"], ["page"]]),
    "bing": Case("17", UET, "bat.bing.com", ["17", "pageLoad"]),
    "snapchat": Case("s-1", "snaptr.queue", "tr.snapchat.com", [["init", "s-1"], ["track", "PAGE_VIEW"]]),
    "reddit": Case("a2_1", "rdt.callQueue", "alb.reddit.com", [["init", "a2_1"], ["track", "PageVisit"]]),
    "tiktok": Case("C9AB", TIKTOK, "analytics.tiktok.com", ["ttq", ["C9AB"], EVENTS, "number", ["page"]]),
}


def script(type_: str) -> str:
    """Return host and path of the vendor's script."""
    return pixel_tags.pixel(type_, CASES[type_].tag).script.removeprefix("https://")


class Vendors:
    """All vendors on one server. Each serves a script that sends the calls of the page's tag to the vendor."""

    def __init__(self) -> None:
        self.case = CASES["bing"]
        self.asked: list[str] = []
        self.answers = threading.Event()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(f"{request.headers['Host'].split(':')[0]}{request.path}")
        self.answers.wait(10)
        script = (
            "{ const report = (calls) => { new Image().src = "
            f"'https://{self.case.home}/sent?calls=' + encodeURIComponent(JSON.stringify(calls)); }};"
            f"const calls = {self.case.calls}; if (calls) report(calls); }}"
        )
        foreign.answering(script.encode(), Content_Type="text/javascript")(request)

    @property
    def sent(self) -> Any:
        """Return the calls that the vendor's script sent."""
        [call] = [asked for asked in self.asked if asked.startswith(f"{self.case.home}/sent")]
        return json.loads(parse_qs(urlsplit(call).query)["calls"][0])


@pytest.fixture(scope="module")
def vendors_and_chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Vendors, webdriver.Chrome]]:
    """The vendors, and a Chromium that resolves all names to them except those that end in .test."""
    vendors = Vendors()
    with all_hosts(tmp_path_factory, vendors.answer) as chromium:
        yield vendors, chromium
        vendors.answers.set()


@pytest.fixture
def vendors(vendors_and_chromium: tuple[Vendors, webdriver.Chrome]) -> Vendors:
    found = vendors_and_chromium[0]
    found.asked.clear()
    found.answers.set()
    return found


@pytest.fixture
def buyer(vendors_and_chromium: tuple[Vendors, webdriver.Chrome]) -> Iterator[Browser]:
    """A browser without earlier visits."""
    found = Browser(vendors_and_chromium[1])
    yield found
    found.scripts(run=True)
    complaints = found.complaints()
    found.open("about:blank")
    assert complaints == []


@pytest.fixture
def visited(base: str, sql: Sql, alice: Client) -> Iterator[Callable[..., str]]:
    """Create a link to a shop with these pixels, and return its URL."""
    with foreign.server(
        foreign.answering(b'<link rel="icon" href="data:,">The shop', Content_Type="text/html")
    ) as port:
        url = f"http://shop.test:{port}/"
        yield lambda type_, *pixels: f"{base}/{interstitials.add_link(sql, alice.id, type_, url, pixels)}"


def arrive(browser: Browser) -> None:
    WebDriverWait(browser.driver, 120, 0.02).until(lambda _: "shop.test" in browser.driver.current_url)


@pytest.mark.parametrize("type_", CASES)
def test_a_pixel_fires_before_the_redirect(
    buyer: Browser, vendors: Vendors, visited: Callable[..., str], type_: str
) -> None:
    case = vendors.case = CASES[type_]
    buyer.open(visited("direct", (type_, case.tag)))
    arrive(buyer)
    assert script(type_) in vendors.asked
    assert vendors.sent == case.sent


def test_a_pixel_fires_on_a_framed_page(buyer: Browser, vendors: Vendors, visited: Callable[..., str]) -> None:
    vendors.case = CASES["fbpixel"]
    buyer.open(visited("frame", ("fbpixel", "12")))
    WebDriverWait(buyer.driver, 120, 0.05).until(lambda _: len(vendors.asked) > 1)
    assert vendors.sent == CASES["fbpixel"].sent


def test_two_pixels_of_one_vendor_load_its_script_once(
    buyer: Browser, vendors: Vendors, visited: Callable[..., str]
) -> None:
    vendors.case = CASES["fbpixel"]
    buyer.open(visited("direct", ("fbpixel", "1"), ("fbpixel", "2")))
    arrive(buyer)
    assert vendors.asked.count(script("fbpixel")) == 1
    assert {call[1] for call in vendors.sent} == {"1", "2"}


def test_two_tiktok_pixels_report_one_page_each(buyer: Browser, vendors: Vendors, visited: Callable[..., str]) -> None:
    """The vendor's script sends the calls of `ttq` for every pixel in `ttq._i`."""
    # Both scripts may run after both pixels have been added. Only the first of them reports.
    report = "ttq._i.C2 && !ttq.reported && (ttq.reported = [Object.keys(ttq._i), [...ttq]])"
    vendors.case = CASES["tiktok"]._replace(calls=report)
    buyer.open(visited("direct", ("tiktok", "C1"), ("tiktok", "C2")))
    arrive(buyer)
    scripts = {asked.partition("sdkid=")[2] for asked in vendors.asked if "events.js" in asked}
    assert scripts == {"C1&lib=ttq", "C2&lib=ttq"}
    assert vendors.sent == [["C1", "C2"], [["page"]]]


def test_a_vendor_that_does_not_respond_does_not_delay_the_visitor(
    buyer: Browser, vendors: Vendors, visited: Callable[..., str]
) -> None:
    vendors.answers.clear()
    buyer.driver.execute_cdp_cmd("Page.enable", {})
    buyer.run(f"location.href = '{visited('direct', ('reddit', 'a2_1'))}'")
    arrive(buyer)  # while the vendor's response is still outstanding
    vendors.answers.set()


def test_without_scripts_an_image_calls_the_vendor(
    buyer: Browser, vendors: Vendors, visited: Callable[..., str]
) -> None:
    address = visited("direct", ("fbpixel", "12"))
    buyer.scripts(run=False)
    buyer.open(f"{address}/pixels")  # separately: the driver runs scripts in frames without an origin
    assert "www.facebook.com/tr?id=12&ev=PageView&noscript=1" in vendors.asked
