"""Overlay forms: validation, storage and limits of visitors' answers."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from linkmgr.public.overlay_answers import ANSWERS, THANKS
from linkmgr.repository import overlay as overlays
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.interstitials import TARGET, Show, hrefs, overlay


class Form:
    """The form of an overlay of alice, as a visitor receives it."""

    def __init__(self, show: Show, app: Flask, sql: Sql, user_id: int, type_: str, **members: str) -> None:
        self.http: FlaskClient = app.test_client()
        self.sql = sql
        self.id = overlay(sql, user_id, type_, **members)
        page = show("overlay", overlay_id=self.id).text
        [self.page] = re.findall('name="page" value="(.+?)"', page)

    def send(self, fields: dict[str, str], **headers: str) -> TestResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post("/o/answer", data={"page": self.page} | fields, headers=named)

    def stored(self) -> list[Any]:
        found = self.sql("SELECT answer FROM overlay_answers WHERE overlay_id = %(id)s ORDER BY id", id=self.id)
        return [row["answer"] for row in found]


@pytest.fixture
def form(show: Show, app: Flask, sql: Sql, alice: Client) -> Callable[..., Form]:
    return lambda type_, **members: Form(show, app, sql, alice.id, type_, **members)


NEWSLETTER = {"email": "jo@example.com"}
CONTACT = {"name": "Jo", "email": "jo@example.com", "message": "Hello\r\n<b>you</b>"}


@pytest.mark.parametrize(
    ("type_", "fields"),
    [("contact", CONTACT), ("newsletter", NEWSLETTER), ("poll", {"choice": "Yes"})],
)
def test_an_answer_is_stored_and_its_visitor_thanked(
    form: Callable[..., Form], type_: str, fields: dict[str, str]
) -> None:
    sent = form(type_)
    answer = sent.send(fields | {"extra": "ignored"})
    assert answer.status_code == 200
    assert THANKS in answer.text
    assert TARGET in hrefs(answer)
    assert sent.stored() == [fields]


def test_a_script_gets_json(form: Callable[..., Form]) -> None:
    sent = form("newsletter")
    answer = sent.send(NEWSLETTER, Accept="application/json")
    assert json.loads(answer.text) == {"error": 0, "message": THANKS}
    refused = sent.send({"email": "jo"}, Accept="application/json")
    assert (refused.status_code, refused.get_json()["message"]) == (400, "email must be a valid e-mail address.")


@pytest.mark.parametrize(
    ("type_", "fields"),
    [
        ("contact", CONTACT | {"message": "x" * 2001}),
        ("contact", CONTACT | {"message": "a\0b"}),
        ("newsletter", {}),
        ("poll", {"choice": "Maybe"}),
    ],
)
def test_answers_that_the_form_does_not_allow_are_rejected(
    form: Callable[..., Form], type_: str, fields: dict[str, str]
) -> None:
    sent = form(type_)
    assert sent.send(fields).status_code == 400
    assert sent.stored() == []


@pytest.mark.parametrize("page", ["", "x", "WzEsMSwiaHR0cHM6Ly9ldmlsLmV4YW1wbGUvIl0.aaaa.bbbb"])
def test_an_answer_must_come_from_a_page_of_the_service(form: Callable[..., Form], page: str) -> None:
    sent = form("newsletter")
    sent.page = page
    answer = sent.send(NEWSLETTER)
    assert answer.status_code == 400
    assert "Open the short link again" in answer.text


def test_a_form_on_another_site_is_refused(form: Callable[..., Form]) -> None:
    sent = form("newsletter")
    assert sent.send(NEWSLETTER, Sec_Fetch_Site="cross-site").status_code == 403
    assert sent.stored() == []


def test_an_overlay_that_was_deleted_meanwhile_accepts_no_answer(form: Callable[..., Form]) -> None:
    sent = form("newsletter")
    sent.sql("DELETE FROM overlays WHERE id = %(id)s RETURNING id", id=sent.id)
    assert sent.send(NEWSLETTER).status_code == 404


def test_an_ip_address_has_a_limit_of_answers(form: Callable[..., Form]) -> None:
    sent = form("newsletter")
    assert {sent.send(NEWSLETTER).status_code for _ in range(ANSWERS)} == {200}
    refused = sent.send(NEWSLETTER)
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= 600
    assert len(sent.stored()) == ANSWERS
    sent.sql("UPDATE rate_windows SET until = now() - interval '1 second' RETURNING 1")
    assert sent.send(NEWSLETTER).status_code == 200


def test_an_overlay_has_a_limit_of_answers(form: Callable[..., Form], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlays, "MAX_ANSWERS", 2)
    full, other = form("newsletter"), form("newsletter")
    assert [full.send(NEWSLETTER).status_code for _ in range(2)] == [200, 200]
    refused = full.send(NEWSLETTER)
    assert refused.status_code == 403
    assert "This form has reached its limit of answers." in refused.text
    assert full.stored() == [NEWSLETTER] * 2
    assert other.send(NEWSLETTER).status_code == 200
