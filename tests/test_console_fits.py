"""The console in Chromium: the accessibility and fit of each page with no rows, with three, and with many."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from tests import factories
from tests.browser import Browser
from tests.conftest import Client
from tests.console_rows import fill_plain, fill_webhooks
from tests.factories import Sql
from tests.looks import check
from tests.receivers import Receiver
from tests.stocked import TITLES, fill_others
from tests.test_console_browser import signed_in  # noqa: F401 - a fixture
from tests.visited import Store, Visited

pytestmark = pytest.mark.browser


def referrers(number: int) -> str:
    return (
        "Direct, email and other",
        "news.ycombinator.com",
        "t.co",
        "a-very-long-host-name-of-a-referrer.departments.example.com",
    )[number % 4]


def fill(alice: Client, sql: Sql, store: Store) -> int:
    """Add links of all kinds, with visits of four months. Return the id of one that has all members."""
    chosen = Random(7)  # noqa: S311
    for number in range(40):
        factories.link(
            sql, alice.id, url=f"https://example.com/{'long/' * (number % 5 * 12)}", title=TITLES[number % 4]
        )
    channel, pixel = alice.add("/api/channel/add", {"name": "News"}), factories.pixel(sql, alice.id)
    link_id = alice.add(
        "/api/url/add",
        {
            "url": "https://example.com/shop/summer-sale?with=" + "parameters" * 20,
            "custom": "summer",
            "metatitle": "Summer sale 🌞 عرض الصيف",
            "description": "For the newsletter",
            "password": "secret",
            "expiry": "2030-12-31 23:59:59",
            "type": "frame",
            "status": "private",
            "geotarget": [{"location": "Germany", "link": "https://example.com/de"}],
            "parameters": [{"name": "utm_source", "value": "news"}],
            "pixels": [pixel],
            "channel": [channel],
            "campaign": factories.campaign(sql, alice.id),
        },
    )
    now = datetime.now(UTC)
    store(
        Visited(
            link_id,
            now - timedelta(days=day, minutes=chosen.randrange(60)),
            country=chosen.choice(["Germany", "United States", "South Georgia and the South Sandwich Islands"]),
            referrer=referrers(chosen.randrange(7)),
            browser=chosen.choice(["Firefox", "Chrome", "Safari"]),
        )
        for day in range(120)
        for _ in range(chosen.randrange(30 if day % 7 else 90))
    )
    sql("UPDATE totals SET clicks = 123456 WHERE target_id = %(id)s", id=link_id)
    return link_id


@pytest.mark.parametrize("rows", ["none", "three", "many"])
def test_each_page_is_accessible_and_fits(
    *,
    signed_in: Browser,  # noqa: F811 - the fixture
    base: str,
    alice: Client,
    sql: Sql,
    store: Store,
    tmp_path: Path,
    rows: str,
    receiver: Receiver,
    deliver: Callable[[], None],
) -> None:
    paths = {"home": "/console", "links": "/console/links", "new": "/console/links/new", "account": "/account"}
    paths |= {"qrs": "/console/qrs", "bios": "/console/bios", "campaigns": "/console/campaigns"}
    if rows == "none":
        paths |= {"channels": "/console/channels", "overlay-new": "/console/overlays/new"}
        paths |= {"domain-new": "/console/domains/new", "pixel-new": "/console/pixels/new"}
        paths |= {"webhooks": "/console/webhooks", "webhook-new": "/console/webhooks/new"}
    if rows == "three":
        ids = [factories.link(sql, alice.id, title=title) for title in TITLES[1:]]
        store([Visited(ids[0], datetime.now(UTC) - timedelta(days=day)) for day in (0, 0, 3, 9)])
        paths = {"home": "/console", "links": "/console/links", "link": f"/console/links/{ids[0]}"}
        paths |= fill_plain(alice, sql) | fill_webhooks(alice, sql, deliver, receiver.url)
    if rows == "many":
        link_id = fill(alice, sql, store)
        page = f"/console/links/{link_id}"
        paths = {"home": "/console", "links": "/console/links", "link": page, "day": f"{page}?period=24h"}
        paths |= {"year": f"{page}?period=12mo", "edit": f"{page}/edit", "delete": f"{page}/delete"}
        for name, row_id in fill_others(alice, sql, store).items():
            page = f"/console/{name}/{row_id}"
            paths |= {name: f"/console/{name}", f"{name}-page": page}
            paths |= {f"{name}-edit": f"{page}/edit"} if name != "campaigns" else {}
    for name, path in paths.items():
        signed_in.open(base + path)
        check(signed_in, f"{rows}-{name}", tmp_path)


def test_forms_with_messages_are_accessible_and_fit(
    signed_in: Browser,  # noqa: F811 - the fixture
    base: str,
    tmp_path: Path,
) -> None:
    browser = signed_in
    browser.find("#urls").send_keys("nonsense\nhttps://example.com/a\nexample.org/b\nftp://example.com/")
    browser.click("Create link")
    browser.wait_for_text("2 links created")
    check(browser, "home-refused", tmp_path, "light", "dark")
    browser.open(f"{base}/console/links/new")
    browser.find("#url").send_keys("nonsense")
    browser.find("form.form").submit()
    browser.wait_for_text("Nothing was saved.")
    check(browser, "form-refused", tmp_path, "light", "dark")
    for name, sent in {
        "qrs": "foreground=rgb(200,200,200)&data.link.link=x",
        "bios": "",
        "campaigns": "slug=a+b",
    }.items():
        browser.open(f"{base}/console/{name}/new?{sent}")
        browser.find("form.form").submit()
        browser.wait_for_text("Nothing was saved." if name != "campaigns" else "letters")
        check(browser, f"{name}-refused", tmp_path, "light", "dark")
