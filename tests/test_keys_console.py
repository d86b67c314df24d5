"""The pages of API keys in the console."""

import re
from html import unescape
from typing import Any
from unittest.mock import ANY

import pytest
from flask import Flask
from flask.testing import FlaskClient
from psycopg2.extensions import connection as Connection
from werkzeug.test import TestResponse

from linkmgr.core import keys
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import PASSWORD, signed_in, words
from tests.support.races import during

FORM: dict[str, Any] = {"name": "Shop", "scopes": ["links:create", "stats:read"], "current_password": PASSWORD}


def secret_in(page: str) -> str:
    [secret] = re.findall(f'id="secret">({keys.SCOPED_PATTERN})<', page)
    return str(secret)


def only_key(alice: Client) -> dict[str, Any]:
    [key] = alice.get("/api/keys").get_json()["data"]["keys"]
    return dict(key)


def test_a_new_key_is_shown_once_in_the_response_to_the_form(console: FlaskClient, alice: Client) -> None:
    assert "Create your first API key" in console.get("/console/keys").text
    answer = console.post("/console/keys/new", data=FORM)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    secret = secret_in(answer.text)
    assert Client(alice.http, secret).post("/api/url/add", {"url": "https://example.com/"}).status_code == 200
    page = console.get("/console/keys").text
    assert secret not in page
    assert f"{secret[:8]}…</code> links:create, stats:read" in page
    assert "Used <time" in words(page)
    assert "from 127.0.0.1" in page


def test_all_limits_are_stored_and_changed(console: FlaskClient, alice: Client, sql: Sql) -> None:
    domains = sorted((factories.domain(sql, alice.id) for _ in range(2)), key=str)  # as forms send them
    limits = {"own_only": "1", "domains": domains, "expires": "2030-12-31T23:59", "allowed_ips": "192.0.2.1\r\n::1, "}
    console.post("/console/keys/new", data=FORM | limits)
    key = only_key(alice)
    expected = {"domains": domains, "own_only": True, "expires": "2030-12-31 23:59:00"}
    assert key | expected | {"allowed_ips": ["192.0.2.1/32", "::1/128"]} == key
    path = f"/console/keys/{key['id']}/edit"
    version = re.findall('name="version" value="([^"]+)"', console.get(path).text)[0]
    changed = FORM | limits | {"version": version, "scopes": ["*"], "domains": domains[:1], "allowed_ips": ""}
    assert console.post(path, data=changed).status_code == 303
    expected = {"scopes": ["*"], "domains": domains[:1], "allowed_ips": [], "updated": ANY}
    assert only_key(alice) == key | expected


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"current_password": "wrong"}, "Your current password is wrong."),
        ({"scopes": []}, "Scopes must not be empty."),
        ({"scopes": ["admin"]}, "Only administrators can give the scope admin, with a key that has it."),
        ({"domains": ["17"]}, "Domains must contain only ids of your branded domains."),
        ({"domains": ["9" * 5000]}, "Domains must be an array of at most 100 ids of your branded domains."),
        ({"allowed_ips": "here"}, "IP addresses must be an array of at most 100 IP addresses or networks"),
    ],
    ids=str,
)
def test_a_refused_form_keeps_what_was_typed(
    console: FlaskClient, alice: Client, sql: Sql, wrong: dict[str, Any], message: str
) -> None:
    factories.domain(sql, alice.id)
    answer = console.post("/console/keys/new", data=FORM | {"name": "Typed"} | wrong)
    assert answer.status_code == 400
    assert message in words(unescape(answer.text))
    assert PASSWORD not in answer.text
    assert sql("SELECT FROM api_keys") == []


def test_a_key_is_rotated_after_the_password_is_confirmed(console: FlaskClient, alice: Client) -> None:
    old = secret_in(console.post("/console/keys/new", data=FORM | {"scopes": ["*"]}).text)
    path = f"/console/keys/{only_key(alice)['id']}/rotate"
    assert "1 day" in console.get(path).text
    refused = console.post(path, data={"overlap": "3600", "current_password": "wrong"})
    assert (refused.status_code, "Your current password is wrong." in refused.text) == (400, True)
    new = secret_in(console.post(path, data={"overlap": "3600", "current_password": PASSWORD}).text)
    assert [Client(alice.http, key).get("/api/account").status_code for key in (old, new)] == [200, 200]
    newest = secret_in(console.post(path, data={"overlap": "0", "current_password": PASSWORD}).text)
    assert [Client(alice.http, key).get("/api/account").status_code for key in (old, new, newest)] == [401, 401, 200]
    assert console.post(path, data={"overlap": "-1", "current_password": PASSWORD}).status_code == 400


def test_a_form_that_rotates_a_key_works_once(console: FlaskClient, alice: Client, raw: Connection) -> None:
    old = secret_in(console.post("/console/keys/new", data=FORM | {"scopes": ["*"]}).text)
    key_id = only_key(alice)["id"]
    path = f"/console/keys/{key_id}/rotate"

    def rotate() -> TestResponse:
        return console.post(path, data=form)

    [version] = re.findall('name="version" value="([^"]+)"', console.get(path).text)
    form = {"overlap": "86400", "current_password": PASSWORD, "version": version}
    new = secret_in(rotate().text)
    again = rotate()
    assert again.status_code == 412
    assert "This key has changed since you opened this page, and was not rotated again." in words(again.text)
    assert [Client(alice.http, key).get("/api/account").status_code for key in (old, new)] == [200, 200]
    assert "Rotating again ends the previous key at once. It is valid until" in words(console.get(path).text)
    # at the same time
    form["version"] = re.findall('name="version" value="([^"]+)"', again.text)[0]
    answer = during(raw, f"UPDATE api_keys SET previous_until = now() + '1 day' WHERE id = {key_id}", rotate)
    assert answer.status_code == 412


def test_a_key_is_deleted(console: FlaskClient, alice: Client) -> None:
    key_id = alice.add("/api/key/add", {"name": "Shop", "scopes": ["*"]})
    page = console.get(f"/console/keys/{key_id}/delete").text
    assert "<bdi>Shop</bdi></strong>. Programs that use it stop working at once." in words(page)
    assert console.post(f"/console/keys/{key_id}/delete").headers["Location"] == "/console/keys"
    assert alice.get(f"/api/key/{key_id}").status_code == 404


def test_the_default_key_is_turned_off_and_always_on_again(console: FlaskClient, alice: Client, sql: Sql) -> None:
    def turn(active: str, password: str = PASSWORD) -> str:
        form = {"active": active, "current_password": password}
        return words(console.post("/console/keys/default", data=form, follow_redirects=True).text)

    assert "You have no other API key that is valid." in turn("0")
    alice.add("/api/key/add", {"name": "Shop", "scopes": ["*"]})
    assert "The default key has been turned off." in turn("0")
    assert alice.get("/api/account").status_code == 401
    sql("DELETE FROM api_keys RETURNING 1")
    assert "Your current password is wrong." in turn("1", "wrong")
    assert "The default key has been turned on." in turn("1")
    assert alice.get("/api/account").status_code == 200


def test_only_administrators_are_offered_administration(app: Flask, console: FlaskClient, admin: Client) -> None:
    assert 'value="admin"' not in console.get("/console/keys/new").text
    administrator = signed_in(app, "admin@example.com")
    assert 'value="admin"' in administrator.get("/console/keys/new").text
    administrator.post("/console/keys/new", data=FORM | {"scopes": ["admin"]})
    assert only_key(admin)["scopes"] == ["admin"]
