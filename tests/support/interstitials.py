"""Links with an interstitial page, and helpers that read their pages."""

import html
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from linkmgr.errors import AppError
from linkmgr.pages.interstitial import pixel_page, respond
from linkmgr.repository.overlay import OVERLAYS
from linkmgr.repository.splash import SPLASH_PAGES
from tests.support.factories import Sql, row

TARGET = "https://shop.example.com/sale?a=1&b='2'"
OVERLAY = {
    "name": "Talk to us",
    "message": "What do you think?",
    "link": "",
    "label": "",
    "position": "bottom",
    "color": "#ffffff",
    "background": "#1d4ed8",
}


def splash(sql: Sql, user_id: int, **members: Any) -> int:
    given = {"title": "", "message": "", "link": "", "counter": 5, "banner": ""} | members
    return row(sql, "splash_pages", user_id=user_id, name="Splash", **given)


def overlay(sql: Sql, user_id: int, kind: str, **members: Any) -> int:
    return row(sql, "overlays", user_id=user_id, type=kind, **(OVERLAY | members))


def add_link(sql: Sql, user_id: int, kind: str, url: str, pixels: tuple[tuple[str, str], ...] = (), **ids: int) -> str:
    """Add a link with its pixels, given as pairs of type and tag, and return its alias."""
    alias = "visited"
    link_id = row(sql, "links", user_id=user_id, alias=alias, url=url, type=kind, **ids)
    for type_, tag in pixels:
        pixel_id = row(sql, "pixels", user_id=user_id, type=type_, name="Shop", tag=tag)
        sql(
            "UPDATE links SET pixel_ids = pixel_ids || %(pixel)s::bigint WHERE id = %(id)s RETURNING 1",
            pixel=pixel_id,
            id=link_id,
        )
    return alias


def link(user_id: int, kind: str = "direct", **members: Any) -> dict[str, Any]:
    """Return the link as the query of the redirect returns it."""
    ids: dict[str, Any] = {"splash_id": None, "overlay_id": None, "pixels": [], "password_hash": None}
    return {"id": 1, "alias": "visited", "user_id": user_id, "type": kind, "url": TARGET, "title": ""} | ids | members


def _overlaid(row: dict[str, Any]) -> dict[str, Any]:
    """The splash page and the overlay of a link, as the statement for short links reads them."""
    members: dict[str, Any] = {"splash": None, "overlay": None}
    for name, read in (("splash", SPLASH_PAGES.read), ("overlay", OVERLAYS.read)):
        with suppress(AppError):
            members[name] = read(row["user_id"], row[f"{name}_id"])
    return members


Show = Callable[..., TestResponse]


@pytest.fixture(scope="session")
def app_with_page(make_app: Callable[..., Flask]) -> Callable[..., Flask]:
    """Return a function that makes the service with these settings once, and a page whose view a test replaces."""

    @cache
    def make(**settings: str) -> Flask:
        made = make_app(**settings)
        made.add_url_rule("/shown", "shown")
        return made

    return make


def link_page(
    app_with_page: Callable[..., Flask], row: dict[str, Any], target: str = TARGET, **settings: str
) -> TestResponse:
    """Return the page of a link, as its short URL serves it."""
    made = app_with_page(**settings)
    made.view_functions["shown"] = lambda: respond(row | _overlaid(row), target)
    return made.test_client().get("/shown")


@pytest.fixture
def show(app_with_page: Callable[..., Flask], app: Flask) -> Show:
    return partial(link_page, app_with_page)


def pixels_page(app_with_page: Callable[..., Flask], row: dict[str, Any]) -> TestResponse:
    """Return the page of a link's pixels, as the frame in the link's page loads it."""
    made = app_with_page()
    made.view_functions["shown"] = lambda: pixel_page(row)
    return made.test_client().get("/shown")


def policy(answer: TestResponse) -> dict[str, list[str]]:
    directives = answer.headers["Content-Security-Policy"].split("; ")
    return {name: sources for name, *sources in map(str.split, directives)}


def refresh(answer: TestResponse) -> tuple[int, str]:
    """Return the target of the page's refresh for browsers without scripts, and its delay in seconds."""
    [found] = re.findall(r'<noscript><meta http-equiv="refresh" content="(\d+); url=(.+?)"></noscript>', answer.text)
    return int(found[0]), html.unescape(found[1])


def hrefs(answer: TestResponse) -> list[str]:
    return [html.unescape(found) for found in re.findall(r'<a [^>]*?href="(.+?)"', answer.text, re.DOTALL)]
