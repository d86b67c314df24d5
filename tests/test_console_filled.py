"""The main pages of an account that is full, in Chromium. With PICTURES=<folder>, their pictures are stored there."""

import gzip
import os
from base64 import b64decode
from pathlib import Path

import pytest
from flask import Flask

from tests.conftest import Client
from tests.support import axe
from tests.support.browser import DESKTOP, Browser
from tests.support.filled import Filled
from tests.support.fit import COVERED, MEASURE, SHORTEN, UNSTICK, style
from tests.support.pages import signed_in as client_of
from tests.support.sessions import sign_in

pytestmark = pytest.mark.browser

PICTURES = os.environ.get("PICTURES", "")
WIDTHS = {320: 640, 390: 844, 800: 800, 1280: 800}  # and heights
NARROW = 390  # the width of a phone
MAX_STATEMENTS, MAX_BYTES = 4, 30_000
MAX_HEIGHT = 3000  # of a picture


def paths(filled: Filled) -> list[str]:
    ids = filled.ids
    return [
        "/console",
        "/console/links",
        "/console/links?order=recent&per=50",
        "/console/links?health=broken",
        f"/console/links/{ids['link']}",
        f"/console/links/{ids['broken']}",
        f"/console/links/{ids['link']}/edit",
        "/console/links/bin",
        "/console/statistics?dimension=target",
        "/console/statistics?dimension=campaign",
        "/console/campaigns?period=month",
        f"/console/campaigns/{ids['campaign']}",
        "/console/channels",
        f"/console/channels/{ids['channel']}",
        "/console/qrs",
        f"/console/qrs/{ids['qr']}",
        "/console/qrs/bin",
        "/console/bios",
        "/console/domains",
        "/console/imports",
        f"/console/imports/{ids['import']}",
        "/account",
        f"/u/alice/list-{ids['campaign']}",
    ]


# Names of which the first 24 characters do not fit into their box.
CUT = """
    const names = document.querySelectorAll("main :is(.row-title, .row-name .short, .label) > :is(bdi, a)");
    return [...names].filter((name) => {
        const box = name.closest(".row-title, .short, .label").getBoundingClientRect(), range = new Range();
        const text = document.createTreeWalker(name, NodeFilter.SHOW_TEXT).nextNode();
        if (!text || !name.checkVisibility()) return false;
        range.setStart(text, 0);
        range.setEnd(text, Math.min(24, text.length));
        return range.getBoundingClientRect().width > box.width + 1;
    }).map((name) => name.textContent.slice(0, 40));
"""
ROWS = """
    const rows = document.querySelectorAll(".selectable li");
    return [...rows].map((row) => Math.round(row.getBoundingClientRect().height));
"""
# Tables that scroll sideways.
SCROLLING = """
    const boxes = [...document.querySelectorAll("#conversions .figures")];
    return boxes.filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.innerText);
"""
# Cells of a row whose texts touch.
TOUCHING = """
    const range = new Range();
    const gap = (cell) => {
        range.selectNodeContents(cell);
        return (cell.matches("td") ? range : cell).getBoundingClientRect(); // names may be cut in their box
    };
    return [...document.querySelectorAll(".bars tbody tr")].flatMap((row) => {
        const boxes = [...row.children].filter((cell) => cell.innerText.trim()).map(gap);
        return boxes.slice(1).filter((box, at) =>
            Math.abs(box.top - boxes[at].top) < 8 && box.left < boxes[at].right + 4).map(() => row.innerText);
    });
"""


def test_each_page_of_a_filled_account_is_small_and_fits_and_cuts_no_name(
    *, browser: Browser, base: str, app: Flask, alice: Client, filled: Filled, executed: list[str]
) -> None:
    client, faults = client_of(app), []
    sign_in(browser, base, app, alice.id)
    for path in paths(filled):
        executed.clear()
        answer = client.get(path)
        assert answer.status_code == 200, path
        size, statements = len(gzip.compress(answer.data)), [text for text in executed if "SELECT blocks" not in text]
        faults += [f"{path} has {size} bytes"] if size >= MAX_BYTES else []
        most = MAX_STATEMENTS + path.startswith("/console/statistics")  # which counts conversions too
        faults += [f"{path} needs {len(statements)} statements"] if len(statements) > most else []
        browser.open(base + path)
        for width, height in WIDTHS.items():
            browser.size(width, height)
            picture(browser, path, width)
            faults += [f"{path} is {at} pixels wide at {width}" for at in browser.run(MEASURE) if at > width]
            faults += [f"{path} has at {width} a card below another one: {card}" for card in browser.run(COVERED)]
            faults += [f"{path} has at {width} figures that touch: {row}" for row in browser.run(TOUCHING)]
            faults += [f"{path} scrolls sideways at {width}: {table}" for table in browser.run(SCROLLING)]
            if width > NARROW:
                faults += [f"{path} has at {width} a row of {high} pixels" for high in browser.run(ROWS) if high > 72]
            if width == max(WIDTHS) and "=target" in path:
                title = browser.find(".bars .row-title").rect["width"]
                faults += [f"{path} cuts titles at {title} pixels"] if title < 400 else []
            if width >= NARROW:
                faults += [f"{path} cuts at {width}: {name}" for name in browser.run(CUT)]
        browser.run(UNSTICK)
        browser.run(SHORTEN)
        look, scheme = next(browser.looks)
        browser.size(look, WIDTHS[look])
        style(browser, scheme)
        faults += [f"{path}, {look}: {text}" for text in axe.violations(browser, "best-practice", left_out=".side")]
    browser.size(*DESKTOP)
    assert faults == [], "\n".join(faults)


def picture(browser: Browser, path: str, width: int) -> None:
    if not PICTURES:
        return
    Path(PICTURES).mkdir(parents=True, exist_ok=True)
    name = path.strip("/").replace("/", "-").replace("?", "-")
    for scheme in ("light", "dark"):
        style(browser, scheme)
        height = min(browser.run("return document.documentElement.scrollHeight"), MAX_HEIGHT)
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        Path(PICTURES, f"{name}-{width}-{scheme}.png").write_bytes(b64decode(shot["data"]))
