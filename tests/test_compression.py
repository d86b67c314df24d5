"""Compression of responses."""

import gzip

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.conftest import Client

STYLE = "/static/style.css"
GZIP = {"Accept-Encoding": "gzip"}


@pytest.mark.parametrize("coding", ["gzip", "br, gzip;q=0.5", "*"])
def test_a_text_is_compressed_for_clients_that_accept_it(app: Flask, coding: str) -> None:
    client = app.test_client()
    with client.get(STYLE) as plain, client.get(STYLE, headers={"Accept-Encoding": coding}) as compressed:
        assert gzip.decompress(compressed.data) == plain.data
        assert plain.headers["Vary"] == compressed.headers["Vary"] == "Accept-Encoding"
        assert compressed.headers["ETag"] == f"W/{plain.headers['ETag']}"
        tag, length = compressed.headers["ETag"], compressed.content_length
    with client.get(STYLE, headers=GZIP | {"If-None-Match": tag}) as repeated, client.head(STYLE, headers=GZIP) as head:
        assert repeated.status_code == 304
        assert (head.content_length, head.headers["Content-Encoding"]) == (length, "gzip")


def test_the_response_to_a_form_is_not_compressed_because_it_may_show_a_key(console: FlaskClient) -> None:
    shown, answered = (console.open("/console/keys/new", method=method, headers=GZIP) for method in ("GET", "POST"))
    assert shown.content_encoding == "gzip"
    assert answered.status_code == 400
    assert "Content-Encoding" not in answered.headers


@pytest.mark.parametrize("coding", ["", "identity", "br", "gzip;q=0"])
def test_a_text_is_not_compressed_for_others(app: Flask, coding: str) -> None:
    with app.test_client().get(STYLE, headers={"Accept-Encoding": coding}) as response:
        assert "Content-Encoding" not in response.headers


def test_a_part_of_a_file_is_not_compressed_because_its_range_is_one_of_the_file(app: Flask) -> None:
    client = app.test_client()
    with client.get(STYLE) as whole, client.get(STYLE, headers=GZIP | {"Range": "bytes=100-4099"}) as part:
        assert (part.status_code, part.headers["Content-Range"]) == (206, f"bytes 100-4099/{len(whole.data)}")
        assert part.data == whole.data[100:4100]


def test_a_compressed_record_is_changed_with_its_etag(alice: Client) -> None:
    link_id = alice.add("/api/url/add", {"url": "https://example.com/", "description": "long " * 200})
    headers = GZIP | {"Authorization": f"Bearer {alice.key}"}
    read = alice.http.get(f"/api/url/{link_id}", headers=headers)
    assert read.headers["Content-Encoding"] == "gzip"
    tag = {"If-Match": read.headers["ETag"]}
    assert alice.put(f"/api/url/{link_id}/update", {"title": "New"}, headers=tag).status_code == 200
    assert alice.put(f"/api/url/{link_id}/update", {"title": "Newer"}, headers=tag).status_code == 412
