from collections.abc import Callable
from typing import Any

import psycopg2
import pytest

from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.races import during

LINKS = [{"title": "My shop", "url": "https://example.com/shop"}, {"title": "Blog", "url": "https://example.org/"}]
FULL = {"name": "Dana", "alias": "dana", "bio": "I bake.\n\nIn Köln.", "theme": "forest", "links": LINKS}
TAKEN = "This alias is already in use. Choose another one."


def read(client: Client, bio_id: int) -> dict[str, Any]:
    """Return the members except the id, the URL and the date."""
    answer = client.get(f"/api/bio/{bio_id}")
    assert answer.status_code == 200
    data: dict[str, Any] = answer.get_json()["data"]
    assert data.pop("id") == bio_id
    assert data.pop("shorturl") == f"{BASE_URL}/{data['alias']}"
    assert data.pop("updated") == data["date"]
    assert len(data.pop("date")) == len("2026-11-20 12:00:00")
    return data


def test_urls_are_stored_in_ascii_and_may_be_our_own_short_links(alice: Client) -> None:
    own = {"title": "Mine", "url": f"{BASE_URL}/abc"}
    links = [own | {"icon": "x"}, {"title": "Bücher", "url": "https://bücher.example/ä"}]
    kept = [own, {"title": "Bücher", "url": "https://xn--bcher-kva.example/%C3%A4"}]
    assert read(alice, alice.add("/api/bio/add", {"name": "Dana", "links": links}))["links"] == kept


# --- bio pages and links share one set of aliases


Ask = Callable[[Client, str], Any]
NEW = "INSERT INTO {} (user_id, alias, {}) VALUES ({}, 'wanted', 'https://example.com/')"


def make_bio(client: Client, alias: str) -> Any:
    return client.post("/api/bio/add", {"name": "Dana", "alias": alias})


def move_bio(client: Client, alias: str) -> Any:
    return client.put(f"/api/bio/{client.add('/api/bio/add', {'name': 'Dana'})}/update", {"alias": alias})


def make_link(client: Client, alias: str) -> Any:
    return client.post("/api/url/add", {"url": "https://example.com/", "custom": alias})


def move_link(client: Client, alias: str) -> Any:
    link_id = client.add("/api/url/add", {"url": "https://example.com/"})
    return client.put(f"/api/url/{link_id}/update", {"custom": alias})


def status_and_message(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.get_json().get("message", "")


@pytest.mark.parametrize("ask", [make_bio, move_bio, make_link, move_link])
@pytest.mark.parametrize("first", [make_bio, make_link])
def test_an_alias_that_is_taken_is_rejected(alice: Client, bob: Client, first: Ask, ask: Ask) -> None:
    assert first(bob, "wanted").status_code == 200
    assert status_and_message(ask(alice, "wanted")) == (400, TAKEN)
    assert ask(alice, "Wanted").status_code == 200


@pytest.mark.parametrize("ask", [make_bio, move_bio, make_link, move_link])
def test_an_alias_that_is_being_taken_is_waited_for(
    alice: Client, bob: Client, raw: psycopg2.extensions.connection, ask: Ask
) -> None:
    table, column = ("links", "url") if ask in (make_bio, move_bio) else ("bios", "name")
    answer = during(raw, NEW.format(table, column, bob.id), lambda: ask(alice, "wanted"))
    assert status_and_message(answer) == (400, TAKEN)


@pytest.mark.parametrize("ask", [make_bio, move_bio, make_link, move_link])
def test_links_and_bio_pages_do_not_wait_for_a_bio_page_with_another_alias(
    alice: Client, bob: Client, raw: psycopg2.extensions.connection, ask: Ask
) -> None:
    with raw.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(NEW.format("bios", "name", bob.id))
        assert ask(alice, "unwanted").status_code == 200
        cursor.execute("ROLLBACK")


def test_other_changes_of_a_bio_page_do_not_wait_for_links(
    alice: Client, bob: Client, raw: psycopg2.extensions.connection
) -> None:
    bio_id = alice.add("/api/bio/add", FULL)
    with raw.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(NEW.format("links", "url", bob.id))
        assert alice.put(f"/api/bio/{bio_id}/update", FULL | {"bio": "Changed"}).status_code == 200
        cursor.execute("ROLLBACK")


def test_a_link_under_a_branded_domain_may_have_the_alias_of_a_bio_page(alice: Client, sql: Sql) -> None:
    domain_id = factories.domain(sql, alice.id)
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=domain_id)[0]["host"]
    assert make_bio(alice, "wanted").status_code == 200
    members = {"url": "https://example.com/", "custom": "wanted", "domain": host}
    assert alice.post("/api/url/add", members).status_code == 200


@pytest.mark.parametrize("taken_by", [make_bio, make_link])
def test_a_generated_alias_that_is_taken_is_generated_again(
    alice: Client, monkeypatch: pytest.MonkeyPatch, taken_by: Ask
) -> None:
    assert taken_by(alice, "wanted").status_code == 200
    made = iter(["wanted", "wanted", "another"])
    monkeypatch.setattr("linkmgr.repository.links.new_alias", lambda: next(made))
    assert alice.post("/api/bio/add", {"name": "Dana"}).get_json()["alias"] == "another"
