"""/u/<username>/<slug or list>-<id>: the links of a campaign as a page."""

import re
from typing import Any
from urllib.parse import urlsplit

from flask import Flask
from flask.testing import FlaskClient
from selenium.webdriver.common.keys import Keys

from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.browser import PHONE, Browser
from tests.support.factories import Sql
from tests.support.pages import fields

LINKS_PER_PAGE = 25


def campaign(client: Client, **members: Any) -> tuple[int, str]:
    """Return the id of a campaign and the path of its list."""
    made = client.post("/api/campaign/add", {"name": "Spring", "public": True} | members).get_json()
    return made["id"], urlsplit(made["list"]).path


def fill(client: Client, sql: Sql, campaign_id: int, *links: tuple[str, str]) -> list[str]:
    """Add links and return their aliases."""
    ids = [factories.link(sql, client.id, url=url, title=title) for url, title in links]
    factories.assign(sql, campaign_id, ids)
    return [row["alias"] for row in sql("SELECT alias FROM links WHERE id = ANY(%(ids)s) ORDER BY id", ids=ids)]


def test_it_shows_the_links_newest_first(app: Flask, alice: Client, sql: Sql) -> None:
    campaign_id, path = campaign(alice, name="Spring <2026>", slug="spring-26-5")
    links = ("https://example.com?a=1", ""), ("https://example.com/2?a=1&b=2", "<b>Two</b>")
    first_alias, second_alias = fill(alice, sql, campaign_id, *links)
    assert path == f"/u/alice/spring-26-5-{campaign_id}"
    page = app.test_client().get(path)
    assert (page.status_code, page.headers["Cache-Control"]) == (200, "no-cache"), "changes take effect at once"
    assert '<h1 dir="auto">Spring &lt;2026&gt;</h1>' in page.text
    first, second = page.text.index("&lt;b&gt;Two&lt;/b&gt;"), page.text.index(f'href="{BASE_URL}/{first_alias}"')
    assert first < second
    assert f'href="{BASE_URL}/{second_alias}" rel="nofollow noopener ugc"' in page.text
    assert '<strong dir="auto">example.com</strong>' in page.text
    assert "<small>https://example.com/2?a=1&amp;b=2</small>" in page.text


def test_private_links_are_omitted_and_links_on_a_branded_domain_have_its_url(
    app: Flask, alice: Client, sql: Sql
) -> None:
    campaign_id, path = campaign(alice)
    private, branded = fill(alice, sql, campaign_id, ("https://example.com/1", "One"), ("https://example.com/2", ""))
    domain_id = alice.add("/api/domain/add", {"domain": "https://go.example.org"})
    sql("UPDATE links SET status = 'private' WHERE alias = %(alias)s RETURNING 1", alias=private)
    sql("UPDATE links SET domain_id = %(id)s WHERE alias = %(alias)s RETURNING 1", id=domain_id, alias=branded)
    page = app.test_client().get(path).text
    assert "One" not in page
    assert page.count("<li>") == 1
    assert f'href="https://go.example.org/{branded}"' in page


def test_without_a_slug_its_url_contains_list(app: Flask, alice: Client) -> None:
    campaign_id, path = campaign(alice)
    assert path == f"/u/alice/list-{campaign_id}"
    assert "There are no links here yet." in app.test_client().get(path).text


def test_it_is_paged(app: Flask, alice: Client, sql: Sql) -> None:
    campaign_id, path = campaign(alice)
    fill(alice, sql, campaign_id, *[(f"https://example.com/{n}", f"Link {n:03}.") for n in range(LINKS_PER_PAGE + 1)])
    browser = app.test_client()
    first = browser.get(path).text
    [following] = re.findall(rf'rel="next" href="{path}(\?after=\d+)"', first)
    second = browser.get(path + following).text
    assert first.count("<li>") == LINKS_PER_PAGE
    assert "Link 000." not in first
    assert (second.count("<li>"), 'rel="next"' in second, f'rel="first" href="{path}"' in second) == (1, False, True)
    assert "Link 000." in second
    assert "There are no more links." in browser.get(f"{path}?after=1").text
    assert browser.get(f"{path}?after=x").status_code == 400
    for query in ("page=1&limit=1", "limit=abc", "limit=0"):
        assert browser.get(f"{path}?{query}").text == first


def test_every_part_of_its_url_must_match(app: Flask, alice: Client, bob: Client, sql: Sql) -> None:
    campaign_id, path = campaign(alice, slug="spring")
    private_id, private = campaign(alice, name="Private", public=False)
    foreign_id, _ = campaign(bob, slug="foreign")
    wrong = [
        private,
        f"/u/alice/list-{campaign_id}",
        f"/u/alice/autumn-{campaign_id}",
        f"/u/bob/spring-{campaign_id}",
        f"/u/alice/foreign-{foreign_id}",
        f"/u/alice/spring-{2**62}",
        f"/u/alice/spring-{10**30}",
        f"/u/alice/spring-0{campaign_id}",
        "/u/alice/spring",
        "/u/alice",
        f"/u/al%00ice/spring-{campaign_id}",
    ]
    browser = app.test_client()
    assert browser.get(path).status_code == 200
    assert {where: browser.get(where).status_code for where in wrong} == dict.fromkeys(wrong, 404)
    assert private_id


def test_its_pages_can_be_browsed_with_the_keyboard_and_on_a_phone(
    browser: Browser, base: str, alice: Client, sql: Sql
) -> None:
    campaign_id, path = campaign(alice)
    links = [(f"{base}/healthz", "Where it leads"), (f"{base}/robots.txt?{'long-' * 60}", "")]
    fill(alice, sql, campaign_id, *links, *[(f"https://example.com/{n}", f"Link {n}") for n in range(LINKS_PER_PAGE)])
    browser.open(base + path)
    browser.run("document.querySelector('[rel=next]').focus()")
    browser.press(Keys.ENTER)
    browser.wait_for_text("Newest")
    browser.size(*PHONE)
    assert browser.find("[rel=first]").size["height"] < 60, "on one line"
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    browser.all("li a")[-1].click()
    browser.wait_for("/healthz")


def test_a_link_is_named_by_its_title_or_else_its_path(app: Flask, alice: Client, sql: Sql) -> None:
    campaign_id, path = campaign(alice)
    targets = (
        ("https://example.com/garten/b%C3%A4nke?a=1", ""),
        ("https://example.com/", ""),
        ("https://example.com/a", "A"),
    )
    fill(alice, sql, campaign_id, *targets)
    names = re.findall('<strong dir="auto">([^<]+)', app.test_client().get(path).text)
    assert names == ["A", "example.com", "garten/bänke"]


def test_the_owner_chooses_the_order_and_the_number_of_its_links(
    app: Flask, alice: Client, sql: Sql, console: FlaskClient
) -> None:
    campaign_id, path = campaign(alice, listorder="oldest", listsize=3)
    fill(alice, sql, campaign_id, *[("https://example.com/", f"Link {n}") for n in range(7)])
    browser, shown = app.test_client(), []
    following = path
    while following:
        page = browser.get(following).text
        shown.append(re.findall('<strong dir="auto">Link ([0-9])', page))
        following = next((path + query for query in re.findall(r'rel="next" href="[^?]+(\?after=\d+)"', page)), "")
    assert shown == [["0", "1", "2"], ["3", "4", "5"], ["6"]]
    assert ">Oldest</a>" in page
    form = fields(console.get(f"/console/campaigns/{campaign_id}/edit").text)
    assert (form["listorder"], form["listsize"]) == (["oldest"], ["3"])
    console.post(f"/console/campaigns/{campaign_id}/edit", data=form | {"listorder": "newest", "listsize": "5"})
    page = browser.get(path).text
    assert re.findall('<strong dir="auto">Link ([0-9])', page) == ["6", "5", "4", "3", "2"]
    for members in ({"listorder": "random"}, {"listsize": 0}, {"listsize": 101}, {"listsize": "5"}):
        assert alice.put(f"/api/campaign/{campaign_id}/update", {"name": "Spring"} | members).status_code == 400
