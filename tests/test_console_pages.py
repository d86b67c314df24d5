"""The console in Chromium: the accessibility and fit of each page."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.conftest import Client
from tests.support import factories
from tests.support.browser import Browser
from tests.support.console_pages import check, fill, signed_in_browser  # noqa: F401 - a fixture
from tests.support.console_rows import fill_plain, fill_webhooks
from tests.support.factories import Sql
from tests.support.receivers import Receiver
from tests.support.stocked import TITLES, fill_others
from tests.support.visited import Store, Visited

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("rows", ["none", "three", "many"])
def test_each_page_is_accessible_and_fits(
    *,
    signed_in: Browser,
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


def test_forms_with_messages_are_accessible_and_fit(signed_in: Browser, base: str, tmp_path: Path) -> None:
    browser = signed_in
    lines = "nonsense\\nhttps://example.com/a\\nexample.org/b\\nftp://example.com/"  # Enter would send the form
    browser.run(f"document.getElementById('urls').value = '{lines}'")
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
