"""Every page in Chromium: one walk without rows, one with rows and refused forms, and one of the public pages."""

from collections.abc import Callable

import pytest
from flask import Flask

from linkmgr import demo
from tests.conftest import Client
from tests.support import factories
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.fit import faults
from tests.support.pages import ROWS, pages
from tests.support.receivers import Receiver
from tests.support.sessions import sign_in

pytestmark = pytest.mark.browser

DOCS = "/api/docs"
NAMED = ("bios", "campaigns", "channels", "overlays", "pixels", "qrs", "splash_pages", "utm_templates",
         "webhooks")  # fmt: skip
NAMES = ["A name of 255 characters " + "x" * 210, "عرض الصيف الكبير على جميع المنتجات", "🎉🍞 Party bread"]


RULES = [{"when": {"query": ["x" * 100], "country": ["Germany", "AT"]}, "url": "https://example.com/" + "long" * 50}]
VARIANTS = [{"name": name[-50:], "url": f"https://example.com/{number}"} for number, name in enumerate(NAMES)]
# Forms with a message, by what their page says.
REFUSED = {
    "/console/links/new?url=nonsense": "Nothing was saved.",
    "/console/qrs/new?foreground=rgb(200,200,200)&data.link.link=x": "Nothing was saved.",
    "/console/bios/new": "Nothing was saved.",
    "/console/campaigns/new?slug=a+b": "letters",
}


@pytest.fixture
def demo_user(app: Flask, sql: Sql, deliver: Callable[[], None], receiver: Receiver) -> Client:
    """The demo user, who has rows of every kind with names that are long, from right to left, or emoji."""
    with app.app_context():
        client = Client(app.test_client(), demo.seed(with_demo=True)["demo"])
    client.add("/api/webhooks", {"name": "Shop", "url": receiver.url, "events": ["*"]})
    client.add("/api/url/add", {"url": "https://example.com/?" + "parameters" * 20})
    deliver()
    first = {table: sql(f"SELECT min(id) AS id FROM {table}")[0]["id"] for table in (*NAMED, "links")}
    channels = [client.add("/api/channel/add", {"name": name}) for name in NAMES]
    client.put(f"/api/url/{first['links']}/update", {"channel": channels, "rules": RULES, "variants": VARIANTS})
    for table in NAMED:  # the same names in each run
        name = f"(%(names)s::text[])[(id - {first[table]}) %% 3 + 1] || ' ' || id - {first[table]}"
        sql(f"UPDATE {table} SET name = {name} RETURNING 1", names=NAMES)
    title = f"(%(names)s::text[])[(id - {first['links']}) %% 4 + 1]"
    sql(f"UPDATE links SET title = {title} RETURNING 1", names=[*NAMES, ""])
    [row] = sql("UPDATE users SET admin = true WHERE username = 'demo' RETURNING id")
    client.id = row["id"]
    factories.missing_path(sql, client.id, sql("SELECT min(id) AS id FROM domains")[0]["id"], "/a-path" + "-of-it" * 40)
    app.test_client().post("/about-pg+", data={"reason": "spam", "text": "x" * 500})
    return client


def is_page(app: Flask, path: str) -> bool:
    """Return False for files, and for pages like others: lists and forms of members that others have too."""
    forms = ("links", "domains", "bios", "qrs", "overlays", "keys", "webhooks", "administration")
    own = {"delete": ("links", "domains"), "edit": forms[:5], "new": forms}
    word, last = path.split("/")[2] if path.count("/") > 1 else "", path.rpartition("/")[2]
    same = word not in own[last] if last in own else last in ("pixels", "splash", "utm", "selected", "errors")
    is_file = path.endswith(("/qr", "/image", ".csv", "/preview"))
    return not (same or is_file) and app.test_client().get(path).mimetype == "text/html"


def test_each_page_of_the_console_is_accessible_and_fits(
    browser: Browser, base: str, app: Flask, demo_user: Client, sql: Sql
) -> None:
    named = {"splash": "splash_pages", "utm": "utm_templates"}
    tables = {word: named.get(word, word) for word in ROWS if word not in ("imports", "keys")}
    ids = {word: sql(f"SELECT min(id) AS id FROM {table}")[0]["id"] for word, table in tables.items()}
    link = f"/console/links/{ids['links']}"
    paths = [*pages(app, sql, demo_user.id, **{word: row_id for word, row_id in ids.items() if row_id}), "/account"]
    paths += [f"{link}?period=24h", "/console/links?status=public&password=no&q=e"]
    sign_in(browser, base, app, demo_user.id)
    found = []
    for path in filter(lambda path: is_page(app, path), paths):
        browser.open(base + path)
        found += faults(browser, "best-practice")
    for path, text in REFUSED.items():
        browser.open(base + path)
        browser.find("form.form").submit()
        browser.wait_for_text(text)
        found += faults(browser, "best-practice")
    browser.open(f"{base}/console")
    browser.run("document.getElementById('urls').value = 'nonsense\\nhttps://example.com/a\\nftp://example.com/'")
    browser.click("Create link")
    browser.wait_for_text("Link created")
    found += faults(browser, "best-practice")
    assert found == [], "\n".join(found)


def test_each_page_of_the_console_without_rows_is_accessible_and_fits(signed_in: Browser, base: str) -> None:
    found = []
    for path in ("/console", "/console/overlays/new", "/console/links", "/console/imports"):
        signed_in.open(base + path)
        found += faults(signed_in, "best-practice")
    assert found == [], "\n".join(found)


def test_each_public_page_is_accessible_and_fits(
    browser: Browser, base: str, app: Flask, demo_user: Client, sql: Sql
) -> None:
    paths = [f"/{row['alias']}" for row in sql("SELECT alias FROM links UNION SELECT alias FROM bios")]
    paths += [f"/q/{row['code']}" for row in sql("SELECT code FROM qrs")]
    [campaign] = sql("SELECT id, slug FROM campaigns LIMIT 1")
    [previewed] = sql("SELECT alias FROM links ORDER BY id LIMIT 1")
    paths += [
        f"/{previewed['alias']}+",
        f"/u/demo/{campaign['slug'] or 'list'}-{campaign['id']}",
        "/login",
        "/nowhere",
        "/login/spent",
        DOCS,
    ]
    found, shown = [], 0
    for path in paths:
        answer = app.test_client().get(path)
        if answer.mimetype == "text/html" and "Location" not in answer.headers:
            # Without this script, a page that redirects at once stays. A countdown is paused instead.
            blocked = [] if b"data-pause" in answer.data else ["*://*:*/static/go.js*", "*://*:*/static/app.js*"]
            patterns = [{"urlPattern": pattern, "block": True} for pattern in blocked]
            browser.driver.execute_cdp_cmd("Network.enable", {})
            browser.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urlPatterns": patterns})
            browser.open(base + path)
            # All operations at once are more than axe reads in a minute.
            found += faults(browser, closed=path == DOCS)
            shown += 1
        browser.driver.execute_cdp_cmd("Network.disable", {})
    assert shown >= 10
    assert found == [], "\n".join(found)
