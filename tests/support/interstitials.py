"""Links with an interstitial page, and helpers that read their pages."""

import html
import re
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.support.document import BASE_URL
from tests.support.factories import Sql, row

_numbers = count(1)
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


def overlay(sql: Sql, user_id: int, type_: str, **members: Any) -> int:
    return row(sql, "overlays", user_id=user_id, type=type_, **(OVERLAY | members))


def add_link(
    sql: Sql, user_id: int, type_: str, url: str, pixels: tuple[tuple[str, str], ...] = (), **columns: Any
) -> str:
    """Add a link with its pixels, given as pairs of type and tag, and return its alias."""
    alias = f"visited{next(_numbers)}"
    link_id = row(sql, "links", user_id=user_id, alias=alias, url=url, type=type_, **columns)
    for vendor, tag in pixels:
        pixel_id = row(sql, "pixels", user_id=user_id, type=vendor, name="Shop", tag=tag)
        sql(
            "UPDATE links SET pixels = pixels || %(pixel)s::bigint WHERE id = %(id)s RETURNING 1",
            pixel=pixel_id,
            id=link_id,
        )
    return alias


Show = Callable[..., TestResponse]


@pytest.fixture
def show(app_with: Callable[..., Flask], sql: Sql, alice: Any) -> Show:
    """Return a function that adds a link of alice, and returns the response to its visitor."""

    def visit(
        type_: str = "direct", target: str = TARGET, *, base_url: str = BASE_URL, path: str = "", **link: Any
    ) -> Any:
        alias = add_link(sql, alice.id, type_, target, **link)
        return app_with(base_url=base_url).test_client().get(f"/{alias}{path}")

    return visit


def policy(answer: TestResponse) -> dict[str, list[str]]:
    directives = answer.headers["Content-Security-Policy"].split("; ")
    return {name: sources for name, *sources in map(str.split, directives)}


def refresh(answer: TestResponse) -> tuple[int, str]:
    """Return the target of the page's refresh for browsers without scripts, and its delay in seconds."""
    [found] = re.findall(r'<noscript><meta http-equiv="refresh" content="(\d+); url=(.+?)"></noscript>', answer.text)
    return int(found[0]), html.unescape(found[1])


def hrefs(answer: TestResponse) -> list[str]:
    return [html.unescape(found) for found in re.findall(r'<a [^>]*?href="(.+?)"', answer.text, re.DOTALL)]
