"""Uploads while the data folder has no space."""

import resource
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from flask import Flask

from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.imported import sale, shlink
from tests.support.pages import signed_in

FILE = shlink(*(sale(f"row-{n}") for n in range(4000)))


@pytest.fixture
def full() -> Iterator[None]:
    """Let files have at most 64 KiB, which fails as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize(
    "body",
    [
        {"data": FILE, "content_type": "text/csv"},
        {"data": {"file": (BytesIO(FILE), "links.csv")}, "content_type": "multipart/form-data"},
    ],
)
def test_a_file_that_the_disk_has_no_space_for_can_be_sent_again(alice: Client, sql: Sql, body: Any) -> None:
    answer = alice.post("/api/imports", **body)
    assert (answer.status_code, answer.get_json()["code"]) == (503, "busy")
    assert int(answer.headers["Retry-After"]) > 0
    assert sql("SELECT FROM imports") == []


@pytest.mark.usefixtures("full", "alice")
def test_the_console_says_that_a_file_can_be_sent_again(app: Flask) -> None:
    form = {"file": (BytesIO(FILE), "links.csv")}
    answer = signed_in(app).post(
        "/console/imports/new", data=form, content_type="multipart/form-data", follow_redirects=True
    )
    assert "short of resources. Try again in 2 seconds." in answer.text
