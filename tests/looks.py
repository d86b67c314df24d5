"""Checks of a page in two sizes and color schemes, and pictures of it."""

import os
from itertools import product
from pathlib import Path

from tests import axe
from tests.browser import Browser

SIZES = {"phone": (390, 844), "desktop": (1280, 900)}


def picture(browser: Browser, path: Path) -> None:
    """Keep a picture of the whole page."""
    width, height = browser.run("return [innerWidth, document.documentElement.scrollHeight]")
    browser.size(width, max(height, 600))
    browser.driver.save_screenshot(str(path))


def style(browser: Browser, scheme: str) -> None:
    """Set the color scheme, without the transitions between colors."""
    features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    media = {"features": [{"name": name, "value": value} for name, value in features.items()]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def check(browser: Browser, name: str, folder: Path, *schemes: str) -> None:
    """Keep pictures if PICTURES is set, then open all details and check the width of the page in both directions, and
    its accessibility. test_accessibility.py checks all pages with ordinary rows, in more widths and color schemes."""
    for size, scheme in product(SIZES, ("light", "dark")) if os.environ.get("PICTURES") else ():
        browser.size(*SIZES[size])
        style(browser, scheme)
        picture(browser, folder / f"{name}-{size}-{scheme}.png")
    browser.run("for (const details of document.querySelectorAll('details')) details.open = true")
    for direction in ("rtl", "ltr"):
        browser.run(f"document.documentElement.dir = '{direction}'")
        for width, height in SIZES.values():
            browser.size(width, height)
            assert browser.run("return document.documentElement.scrollWidth") <= width, (name, width, direction)
    for scheme in schemes or ("dark",):
        style(browser, scheme)
        assert axe.violations(browser, "best-practice") == [], f"{name} {scheme}"
