"""The check of an open page: its accessibility, and its fit to screens of 320 to 2560 pixels."""

from tests.support import axe
from tests.support.browser import DESKTOP, LOOKS, Browser

WIDTHS = (320, 768, 2560)  # besides that of the look
# The width of a phone's window grows with the page, so it is not compared.
MEASURE = """
    return ["rtl", "ltr"].map((direction) => {
        document.documentElement.dir = direction;
        return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth);
    });
"""
# Links within a text may be lower. The others are at least 24 pixels high, so that it does not matter how they wrap.
LOW = """
    return [...document.querySelectorAll("a, button:not([aria-hidden]), summary")].filter((target) => {
        const {height} = target.getBoundingClientRect();
        return getComputedStyle(target).display !== "inline" && height > 0 && height < 23.9;
    }).map((target) => target.outerHTML);
"""
# Cards that lie on each other hide what the lower one says.
COVERED = """
    const cards = [...document.querySelectorAll(".card:not([popover])")];
    const meet = (one, other) => {
        const [first, second] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
        const across = Math.min(first.right, second.right) - Math.max(first.left, second.left);
        const down = Math.min(first.bottom, second.bottom) - Math.max(first.top, second.top);
        return across > 1 && down > 1 && !one.contains(other);
    };
    return cards.filter((one, at) => cards.slice(at + 1).some((other) => meet(one, other))).map((one) => one.innerText);
"""
# Bars that stay in the window cover other controls until one scrolls.
UNSTICK = """
    for (const element of document.querySelectorAll("*")) {
        if (getComputedStyle(element).position === "sticky") element.style.position = "static";
    }
"""
# axe takes as long for each row of a list. Names are of four kinds, so that some of each kind stay.
SHORTEN = """
    const rows = {};
    for (const row of document.querySelectorAll("tr, li")) {
        const structure = row.outerHTML.replace(/(?<! class)="[^"]*"|>[^<]*/g, "");
        rows[structure] = (rows[structure] ?? 0) + 1;
        if (rows[structure] > 8) row.remove();
    }
"""


def style(browser: Browser, scheme: str) -> None:
    """Set the color scheme, without the transitions between colors."""
    features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    media = {"features": [{"name": name, "value": value} for name, value in features.items()]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def faults(browser: Browser, *more: str, closed: bool = False) -> list[str]:
    """Return the faults of the page in all widths and directions, with its details open, and in one of the looks."""
    path = browser.path
    browser.run("document.querySelector('[data-pause]')?.click()")  # the countdown of a splash page
    if not closed:
        browser.run("for (const details of document.querySelectorAll('details')) details.open = true")
    # With this attribute, browsers discard the page of an error. Content-Disposition makes them save a file.
    found = [f"{path} has a link with the attribute download"] if browser.all("a[download]") else []
    look, scheme = next(browser.looks)
    for width in (*WIDTHS, look):
        browser.size(width, 900)
        found += [f"{path} is {at} pixels wide at {width}" for at in browser.run(MEASURE) if at > width]
        found += [f"{path} has at {width} a card below another one: {card}" for card in browser.run(COVERED)]
    found += [f"{path} has at {look} a target of less than 24 pixels: {target}" for target in browser.run(LOW)]
    style(browser, scheme)
    browser.run(UNSTICK)
    browser.run(SHORTEN)
    # The menu is the same on all pages, and a third of what axe reads.
    menu = ".side" if browser.checked >= len(LOOKS) else ""
    browser.checked += 1
    found += [f"{path}, {look}, {scheme}: {text}" for text in axe.violations(browser, *more, left_out=menu)]
    browser.size(*DESKTOP)
    return found
