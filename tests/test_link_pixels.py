"""The pixels of a link: deleted ones, and concurrent updates."""

import psycopg2
from flask import Flask

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.races import during


def stored_pixels(sql: Sql) -> list[int]:
    [link] = sql("SELECT pixels FROM links")
    return list(link["pixels"])


def test_a_deleted_pixel_belongs_to_no_link(app: Flask, alice: Client, sql: Sql) -> None:
    pixel = factories.pixel(sql, alice.id)
    link_id = alice.add("/api/url/add", {"url": "https://example.com/page", "custom": "sale", "pixels": [pixel]})
    assert app.test_client().get("/sale").status_code == 200
    alice.delete(f"/api/pixel/{pixel}/delete")
    redirected = app.test_client().get("/sale")
    assert (redirected.status_code, redirected.headers["Location"]) == (302, "https://example.com/page")
    assert alice.get(f"/api/url/{link_id}").get_json()["details"]["pixels"] == []
    assert alice.put(f"/api/url/{link_id}/update", {"metatitle": "Changed"}).status_code == 200
    refused = alice.put(f"/api/url/{link_id}/update", {"pixels": [pixel]})
    assert (refused.status_code, refused.get_json()["code"]) == (400, "pixel_unknown")


def test_an_update_that_waits_for_another_replaces_the_pixels_that_it_stored(
    alice: Client, sql: Sql, raw: psycopg2.extensions.connection
) -> None:
    pixels = [factories.pixel(sql, alice.id) for _ in range(3)]
    link_id = alice.add("/api/url/add", {"url": "https://example.com/page", "pixels": pixels[:1]})
    other_update = f"UPDATE links SET pixels = ARRAY[{pixels[1]}]::bigint[] WHERE id = {link_id}"
    path = f"/api/url/{link_id}/update"
    assert during(raw, other_update, lambda: alice.put(path, {"pixels": pixels[2:]})).status_code == 200
    assert stored_pixels(sql) == pixels[2:]
