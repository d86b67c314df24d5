"""A link has one name on all pages."""

import re

import pytest
from flask.testing import FlaskClient

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, visit, words
from tests.support.visited import Store

TARGET = "https://www.example.com/sale/autumn?shop=1#top"


@pytest.mark.parametrize(
    ("own", "fetched", "name"),
    [("", "", "example.com/sale/autumn"), ("", "Autumn & more", "Autumn & more"), ("Own", "Autumn & more", "Own")],
)
def test_all_pages_call_a_link_by_the_same_name(
    *, console: FlaskClient, alice: Client, sql: Sql, store: Store, own: str, fetched: str, name: str
) -> None:
    link = factories.link(sql, alice.id, url=TARGET, title=own)
    factories.page_title(sql, link, fetched)
    campaign, channel = factories.campaign(sql, alice.id), factories.channel(sql, alice.id)
    factories.assign(sql, campaign, [link])
    alice.post(f"/api/channel/{channel}/assign/links/{link}")
    store([visit(link) for _ in range(30)])
    escaped = name.replace("&", "&amp;")
    heading = f"<h1><bdi>{escaped}</bdi></h1>"
    in_list = rf'<p class="row-title"><a href="[^"]*"><bdi>{re.escape(escaped)}</bdi></a></p>'
    shown = {
        f"/links/{link}": re.escape(heading),
        "/links": in_list,
        f"/campaigns/{campaign}": in_list,
        f"/channels/{channel}": in_list,
        "": in_list,
        "/statistics?dimension=target": in_list,
        f"/statistics?link={link}": rf"<bdi>Link: {re.escape(escaped)}</bdi>",
        f"/links/{link}/edit": rf"<bdi>{re.escape(escaped)}</bdi></a></p>",
        f"/links/{link}/delete": rf"<strong><bdi>{re.escape(escaped)}</bdi></strong>",
    }
    for path, pattern in shown.items():
        assert re.search(pattern, words(get(console, f"/console{path}"))), path
    for path in (f"/campaigns/{campaign}", f"/channels/{channel}"):
        assert re.search(rf'<option value="[^"]*">{re.escape(escaped)}</option>', get(console, f"/console{path}"))
    asked = console.post("/console/links/selected", data={"action": "ask", "id": link}).text
    assert f'<p class="row-title"><bdi>{escaped}</bdi></p>' in words(asked)
    table = console.get("/console/statistics?dimension=target&format=csv").text
    assert table.splitlines()[1].split(",")[0] == name
