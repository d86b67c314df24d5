"""Concurrent updates of the pixels of a link."""

import psycopg2
from flask import Flask

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.races import at_once, during


def stored_pixels(sql: Sql) -> list[int]:
    return [row["pixel_id"] for row in sql("SELECT pixel_id FROM link_pixels ORDER BY 1")]


def test_an_update_that_waits_for_another_replaces_the_pixels_that_it_stored(
    alice: Client, sql: Sql, raw: psycopg2.extensions.connection
) -> None:
    pixels = [factories.pixel(sql, alice.id) for _ in range(3)]
    link_id = alice.add("/api/url/add", {"url": "https://example.com/page", "pixels": pixels[:1]})
    other_update = f"""
        UPDATE links SET plain = false WHERE id = {link_id};
        DELETE FROM link_pixels;
        INSERT INTO link_pixels (user_id, link_id, pixel_id) VALUES ({alice.id}, {link_id}, {pixels[1]})
    """
    path = f"/api/url/{link_id}/update"
    assert during(raw, other_update, lambda: alice.put(path, {"pixels": pixels[2:]})).status_code == 200
    assert stored_pixels(sql) == pixels[2:]


def test_parallel_updates_leave_one_of_the_sets_of_pixels(app: Flask, alice: Client, sql: Sql) -> None:
    pixels = [factories.pixel(sql, alice.id) for _ in range(20)]
    sets = (pixels[:10], pixels[10:])
    link_id = alice.add("/api/url/add", {"url": "https://example.com/page", "custom": "sale", "pixels": pixels[:10]})

    def replace(number: int) -> int:
        client = Client(app.test_client(), alice.key)
        return client.put(f"/api/url/{link_id}/update", {"pixels": sets[number % 2]}).status_code

    for _ in range(50):
        assert set(at_once(8, replace, threads=8)) == {200}
        assert stored_pixels(sql) in sets
