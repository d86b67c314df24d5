"""A link has one name on all pages, and host names are shown as people write them."""

import re

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.core.fields.urls import readable
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, pages, seen, signed_in, visit, words
from tests.support.visited import Store

TARGET = "https://www.example.com/sale/autumn?shop=1#top"
HOST, SHOWN = "xn--bcher-kva.example", "bücher.example"


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


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        (HOST, SHOWN),
        ("www.xn--caf-dma.xn--p1ai:8080", "café.рф:8080"),
        ("xn--n8j6ds53lwwkrqhv28a.jp", "天気の良い日.jp"),
        # Cyrillic and Latin letters, letters like Latin ones, an emoji, and what is no label
        ("xn--pple-43d.com", "xn--pple-43d.com"),
        ("xn--80ak6aa92e.com", "xn--80ak6aa92e.com"),
        ("xn--e28h.com", "xn--e28h.com"),
        ("xn--zzzzzz.com", "xn--zzzzzz.com"),
        # A letter without a name, and a label that is too long
        ("xn--910fc.com", "xn--910fc.com"),
        (f"xn--f1{'a' * 60}.com", f"xn--f1{'a' * 60}.com"),
    ],
)
def test_a_host_name_that_may_look_like_another_one_stays_in_ascii(host: str, shown: str) -> None:
    assert readable(f"https://{host}/xn--bcher-kva") == f"{shown}/xn--bcher-kva"


def test_no_page_shows_an_encoded_host_name(*, app: Flask, admin: Client, sql: Sql, store: Store) -> None:
    user, url = admin.id, f"https://{HOST}/page"
    domain = factories.row(
        sql, "domains", user_id=user, scheme="https", host=HOST, redirectroot=url, brandname=SHOWN, checked="now()"
    )
    link = factories.row(sql, "links", user_id=user, alias="abc", url=url, domain_id=domain)
    sql("UPDATE users SET domain = %(domain)s WHERE id = %(user)s RETURNING 1", domain=f"https://{HOST}", user=user)
    campaign, channel = factories.campaign(sql, user), factories.channel(sql, user)
    factories.assign(sql, campaign, [link])
    admin.post(f"/api/channel/{channel}/assign/links/{link}")
    factories.report(sql, link)
    store([visit(link, referrer=HOST) for _ in range(30)])
    own = {"base_url": f"https://{HOST}"}
    paths = "/abc+", "/absent", "/abc/pixels"
    answers = {f"{HOST}{path}": app.test_client().get(path, **own) for path in paths}
    browser = signed_in(app, "admin@example.com")
    ids = {"links": link, "campaigns": campaign, "channels": channel, "domains": domain}
    console = list(pages(app, sql, user, **ids))
    queries = ("links?domain=" + str(domain), "statistics?dimension=referrer", f"statistics?domain={HOST}",
               f"statistics?link={link}", "statistics?dimension=domain", "statistics?dimension=target")  # fmt: skip
    shown = [*console, *(f"/console/{query}" for query in queries), f"/u/admin/list-{campaign}"]
    answers |= {path: browser.get(path) for path in shown}
    encoded = {
        path: text[max(0, text.index("xn--") - 80) : text.index("xn--") + 60]
        for path, answer in answers.items()
        if answer.mimetype == "text/html" and "xn--" in (text := seen(without_code(answer.text)))
    }
    assert encoded == {}
    for path in (f"/console/links/{link}", "/console/links", "/console/domains", f"{HOST}/abc+"):
        assert SHOWN in seen(answers[path].text), path


def without_code(page: str) -> str:
    """Return the page without what is copied or edited as it is stored."""
    return re.sub(r"<(code|pre|textarea)\b.*?</\1>", "", page, flags=re.DOTALL)


def test_an_alias_that_looks_like_a_host_name_stays_as_it_is(console: FlaskClient, alice: Client) -> None:
    link = alice.add("/api/url/add", {"url": TARGET, "custom": "xn--bcher-kva"})
    for path in ("/console/links", f"/console/links/{link}"):
        assert "/xn--bcher-kva" in seen(get(console, path).replace("<wbr>", ""))
