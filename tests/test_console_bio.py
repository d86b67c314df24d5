"""Bio pages in the console: the list, the page of one, and the editor with its preview."""

import re
from html import unescape
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.conftest import BASE_URL, Client
from tests.support.factories import Sql
from tests.support.pages import fields, get, message

NEW = "/console/bios/new"
LINKS = [{"title": f"Link {letter}", "url": f"https://example.com/{letter}"} for letter in "abc"]
BODY = {"name": "Dana", "alias": "dana", "bio": "Two\nlines", "theme": "ocean", "links": LINKS}


def as_form(body: dict[str, Any]) -> dict[str, Any]:
    links = body.get("links", [])
    titles, urls = [link["title"] for link in links], [link["url"] for link in links]
    return body | {"links": [], "links.title": [*titles, ""], "links.url": [*urls, ""]}


def preview(page: str) -> str:
    found = re.search('srcdoc="([^"]+)"', page)
    assert found
    return unescape(found[1])


def titles(page: str) -> list[str]:
    return [title for title in fields(page)["links.title"] if title]


def read(client: Client, path: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/bio/{path.rsplit('/', 1)[1]}").get_json()["data"]
    return found


def test_the_page_shows_its_address_and_a_preview(console: FlaskClient, alice: Client) -> None:
    page = get(console, f"/console/bios/{alice.add('/api/bio/add', BODY)}")
    assert f'href="{BASE_URL}/dana"' in page
    assert "Link a" in preview(page)


def test_the_form_changes_a_bio_page_and_its_links(console: FlaskClient, alice: Client) -> None:
    path = f"/console/bios/{alice.add('/api/bio/add', BODY)}"
    changed = {"bio": "", "theme": "candy", "links.title": ["", "New"], "links.url": ["", "https://example.org/"]}
    assert console.post(f"{path}/edit", data=fields(get(console, f"{path}/edit")) | changed).status_code == 303
    bio = read(alice, path)
    assert (bio["bio"], bio["theme"], bio["alias"]) == ("", "candy", "dana")
    assert bio["links"] == [{"title": "New", "url": "https://example.org/"}]


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("up-1", "bac"),
        ("up-0", "abc"),
        ("down-0", "bac"),
        ("down-2", "abc"),
        ("remove-1", "ac"),
        ("remove-3", "abc"),
        ("up-999", "abc"),
        ("add", "abc"),
        ("nonsense", "abc"),
    ],
)
def test_buttons_order_the_links_without_scripts(console: FlaskClient, sql: Sql, action: str, expected: str) -> None:
    page = console.post(NEW, data=as_form(BODY) | {"again": action}).text
    assert titles(page) == [f"Link {letter}" for letter in expected]
    assert re.findall("Link [abc]", preview(page)) == titles(page)
    assert fields(page)["bio"] == ["Two\nlines"]
    assert sql("SELECT 1 FROM bios") == []


def test_the_preview_is_the_page_of_what_was_typed(console: FlaskClient) -> None:
    typed = as_form({"name": "Dana <b>", "theme": "forest", "links": [*LINKS[:1], {"title": "Half", "url": "ftp:"}]})
    shown = preview(console.post(NEW, data=typed | {"again": "preview"}).text)
    assert '<html lang="en" class="framed bio forest">' in shown
    assert '<base target="_blank">' in shown
    assert "Dana &lt;b&gt;" in shown
    assert "Link a" in shown
    assert "Half" not in shown
    empty = preview(get(console, NEW))
    assert "Your name" in empty
    assert "There are no links here yet." in empty


def test_each_wrong_link_has_its_message(console: FlaskClient, sql: Sql) -> None:
    typed = as_form(BODY | {"links": [LINKS[0], {"title": "No URL", "url": ""}, {"title": "", "url": "ftp://x"}]})
    answer = console.post(NEW, data=typed)
    assert answer.status_code == 400
    assert message(answer.text, "links") == "Correct the marked links, or remove them."
    wrong = {
        place: message(answer.text, f"links-{place}") for place in ("title-0", "url-0", "url-1", "title-2", "url-2")
    }
    assert (wrong["title-0"], wrong["url-0"]) == ("", "")
    assert wrong["url-1"] == "URL is required."
    assert wrong["title-2"] == "Title is required."
    assert wrong["url-2"].startswith("URL must")
    assert titles(answer.text) == ["Link a", "No URL"]
    assert sql("SELECT 1 FROM bios") == []
