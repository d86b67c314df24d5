"""A compressed body is a 415 that says so, for every operation that reads a body."""

import gzip
import json

import pytest

from tests.conftest import Client


@pytest.mark.parametrize("path", ["/api/url/add", "/api/urls/bulk", "/api/qr/bulk", "/api/imports"])
@pytest.mark.parametrize("coding", ["gzip", "br", "deflate, gzip", "GZIP"])
def test_a_content_encoding_is_415(alice: Client, path: str, coding: str) -> None:
    body = gzip.compress(json.dumps({"url": "https://example.com/"}).encode())
    answer = alice.call(
        "POST", path, None, data=body, headers={"Content-Encoding": coding}, mimetype="application/json"
    )
    assert (answer.status_code, answer.get_json()["code"]) == (415, "encoding_unsupported")


def test_identity_is_no_encoding(alice: Client) -> None:
    body = {"url": "https://example.com/"}
    assert alice.call("POST", "/api/url/add", body, headers={"Content-Encoding": "identity"}).status_code == 200
