"""/<alias> of a bio page: its content, its themes and its accessibility."""

import re
from typing import Any

import pytest
from flask import Flask
from selenium.webdriver.common.keys import Keys

from linkmgr.schemas.bio import THEMES
from tests.conftest import BASE_URL, ROOT, Client
from tests.support.browser import Browser
from tests.support.pages import POLICY, contrast

LINKS = [
    {"title": "My shop", "url": "https://www.example.com/shop?a=1&b=2"},
    {"title": "Blog", "url": "https://example.org/"},
]
DANA = {"name": "Dana Müller", "alias": "dana", "bio": "I bake.\n\nIn Köln.", "theme": "forest", "links": LINKS}


def page(app: Flask, client: Client, **members: Any) -> str:
    assert client.post("/api/bio/add", DANA | members).status_code == 200
    answer = app.test_client().get(f"/{(DANA | members)['alias']}")
    assert answer.status_code == 200
    return answer.text


def test_it_shows_its_owner_and_the_links_in_order(app: Flask, alice: Client) -> None:
    text = page(app, alice)
    assert '<html lang="en" class="bio forest">' in text
    assert '<h1 dir="auto">Dana Müller</h1>' in text
    assert "I bake.\n\nIn Köln.</p>" in text
    assert re.findall('<a href="(https.+?)" rel="(.+?)"', text) == [
        ("https://www.example.com/shop?a=1&amp;b=2", "noopener nofollow ugc"),
        ("https://example.org/", "noopener nofollow ugc"),
    ]
    assert re.findall("<strong>(.+)</strong>", text) == ["My shop", "Blog"]
    assert re.findall("<small>(.+)</small>", text) == ["example.com", "example.org"]


def test_previews_get_title_description_and_image(app: Flask, alice: Client) -> None:
    text = page(app, alice)
    metadata = dict(re.findall('<meta (?:name|property)="([a-z:]+)" content="(.*?)">', text))
    image = metadata["og:image"]
    assert metadata == {
        "viewport": "width=device-width, initial-scale=1",
        "description": "I bake. In Köln.",
        "og:type": "profile",
        "og:title": "Dana Müller",
        "og:description": "I bake. In Köln.",
        "og:url": f"{BASE_URL}/dana",
        "og:image": f"{BASE_URL}/avatar/bio/Dana-Muller.png",
        "og:image:alt": "",
        "twitter:card": "summary",
    }
    assert f'<link rel="canonical" href="{BASE_URL}/dana">' in text
    assert app.test_client().get(image).mimetype == "image/png"


def test_long_text_is_cut_only_in_previews(app: Flask, alice: Client) -> None:
    text = page(app, alice, bio="bread " * 300)
    assert f'<meta name="description" content="{"bread " * 32}bread…">' in text
    assert "bread " * 299 in text


@pytest.mark.parametrize(
    ("name", "alias", "drawn"),
    [
        ("Zoë O'Neill", "dana", "Zoe-O-Neill"),
        ("Dana/../../x", "dana", "Dana-x"),
        ("دانا", "dana", "dana"),
        ("Al", "dana", "dana"),
        ("...", "---", "---"),
        ("x" * 255, "dana", "x" * 50),
    ],
)
def test_any_name_has_an_image(app: Flask, alice: Client, name: str, alias: str, drawn: str) -> None:
    assert f'<img class="face" src="/avatar/bio/{drawn}.png"' in page(app, alice, name=name, alias=alias)
    assert app.test_client().get(f"/avatar/bio/{drawn}.png").status_code == 200


def test_a_page_without_text_and_links_works(app: Flask, alice: Client) -> None:
    text = page(app, alice, bio="", links=[])
    assert "There are no links here yet." in text
    assert '<meta name="description" content="Links by Dana Müller">' in text


def test_all_text_of_the_user_is_escaped(app: Flask, alice: Client) -> None:
    evil = '"><script>alert(1)</script>{{7*7}}'
    text = page(app, alice, name=evil, bio=evil, links=[{"title": evil, "url": "https://example.com/'\"><b>"}])
    assert "<script" not in text
    assert "<b>" not in text
    assert text.count("{{7*7}}") == 7


def test_no_external_resource_is_loaded_and_no_script_runs(app: Flask, alice: Client) -> None:
    alice.add("/api/bio/add", DANA)
    answer = app.test_client().get("/dana")
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert answer.headers["Cache-Control"] == "no-cache"
    assert not re.findall('<(?:script|style)|style=|(?:src|stylesheet" href)="http', answer.text)


def test_our_own_short_links_are_shown_without_a_host(app: Flask, alice: Client) -> None:
    text = page(app, alice, links=[{"title": "Mine", "url": f"{BASE_URL}?a=1"}])
    assert "<strong>Mine</strong>" in text
    assert "<small>" not in text


def test_it_exists_as_long_as_the_bio_page_and_only_under_its_exact_alias(app: Flask, alice: Client) -> None:
    bio_id = alice.add("/api/bio/add", DANA)
    browser = app.test_client()
    assert [browser.get(path).status_code for path in ("/dana", "/Dana", "/dan", "/danas")] == [200, 404, 404, 404]
    alice.put(f"/api/bio/{bio_id}/update", {"alias": "dana-2", "name": "Dana D."})
    assert browser.get("/dana").status_code == 404
    assert "<title>Dana D.</title>" in browser.get("/dana-2").text
    alice.delete(f"/api/bio/{bio_id}/delete")
    assert browser.get("/dana-2").status_code == 404


# --- the themes

STYLE = (ROOT / "linkmgr/static/bio.css").read_text()
NAMED = dict(re.findall(r"\.bio\.([a-z]+) {(.+?)}", STYLE, re.DOTALL))
READ = [("text", "sky"), ("text", "ground"), ("muted", "sky"), ("muted", "ground"), ("on-button", "button"),
        ("on-button", "button-hover"), ("on-button-muted", "button"), ("on-button-muted", "button-hover")]  # fmt: skip
SEEN = [("accent", "sky"), ("accent", "ground")]  # the outline of the focused element


def colors(theme: str) -> dict[str, str]:
    light = STYLE[: STYLE.index("}")]
    return dict(re.findall("--([a-z-]+): #([0-9a-f]{6});", light + NAMED.get(theme, "")))


def test_each_theme_has_its_colors_and_auto_those_of_light_and_dark() -> None:
    assert set(NAMED) | {"light"} == set(THEMES)
    assert colors("auto") == colors("dark")


@pytest.mark.parametrize("theme", THEMES)
def test_text_has_enough_contrast_in_each_theme(theme: str) -> None:
    values = colors(theme)
    least = dict.fromkeys(READ, 4.5) | dict.fromkeys(SEEN, 3)
    assert [pair for pair, ratio in least.items() if contrast(values[pair[0]], values[pair[1]]) < ratio] == []


# --- in a browser

BACKGROUND = "return getComputedStyle(document.documentElement).backgroundColor"


@pytest.mark.browser
def test_its_links_work_with_the_keyboard(browser: Browser, base: str, alice: Client) -> None:
    links = [{"title": "First", "url": f"{base}/nowhere"}, {"title": "Second", "url": f"{base}/robots.txt"}]
    alice.add("/api/bio/add", DANA | {"links": links})
    browser.open(f"{base}/dana")
    browser.press(Keys.TAB, Keys.TAB)
    assert browser.run("return document.activeElement.innerText.split('\\n')[0]") == "Second"
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press(Keys.ENTER)
    browser.wait_for("/robots.txt")


@pytest.mark.browser
def test_only_auto_follows_the_visitors_color_scheme(browser: Browser, base: str, alice: Client) -> None:
    seen = {}
    for theme in ("auto", "light", "dark"):
        alice.add("/api/bio/add", DANA | {"alias": theme, "theme": theme})
        for scheme in ("light", "dark"):
            browser.scheme(scheme)
            browser.open(f"{base}/{theme}")
            seen[theme, scheme] = browser.run(BACKGROUND)
    browser.scheme("light")
    light, dark = seen["light", "light"], seen["dark", "dark"]
    assert light != dark
    assert seen == {
        ("auto", "light"): light,
        ("auto", "dark"): dark,
        ("light", "light"): light,
        ("light", "dark"): light,
        ("dark", "light"): dark,
        ("dark", "dark"): dark,
    }
