"""Forms of the account page that are refused: messages beside their fields, and typed text that is kept."""

import re

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.conftest import Client
from tests.support.pages import PASSWORD, send, signed_in, words


def field_of(page: str, name: str) -> str:
    """Return the label, control and texts of the field that contains the control with this id."""
    [field] = [part for part in page.split('<div class="field">') if f'id="{name}"' in part]
    return words(field.split("</div>")[0])


def control(page: str, name: str) -> str:
    tag = re.search(f'<input[^>]* id="{name}"[^>]*>', page)
    assert tag
    return words(tag[0])


@pytest.mark.usefixtures("bob")
@pytest.mark.parametrize(
    ("path", "fields", "name", "message"),
    [
        ("email", {"email": 'new"@example.org'}, "email", "email must be a valid e-mail address."),
        ("email", {"email": "bob@example.com", "current_password": PASSWORD}, "email", "is already in use."),
        ("email", {"email": "new@example.org"}, "email-password", "Your current password is wrong."),
        ("email", {"email": "a\0b@example.org"}, "email", "email must not contain control characters."),
        ("email", {}, "email", "email must not be empty."),
        ("password", {"password": "1234", "current_password": "typed"}, "password", "password must be 5 to 1024"),
        ("password", {"password": "typed-new", "current_password": "typed"}, "password-password", "password is wrong."),
    ],
)
def test_a_refused_change_is_explained_beside_its_field_and_keeps_what_was_typed(
    *, app: Flask, console: FlaskClient, path: str, fields: dict[str, str], name: str, message: str
) -> None:
    page = send(console, f"/account/{path}", **fields)
    assert f'id="{name}-error" role="alert">' in field_of(page, name)
    assert message in field_of(page, name)
    assert page.count('role="alert"') == page.count("aria-invalid") == page.count("autofocus") == 1
    assert f'aria-invalid="true" aria-describedby="{name}-error' in control(page, name)
    typed = fields.get("email", "").replace('"', "&#34;")
    assert f'value="{typed}"' in control(page, "email")
    assert not [secret for secret in ("1234", "typed-new", 'value="typed"') if secret in page]
    assert "aria-invalid" not in console.get("/account").text
    signed_in(app)  # nothing has changed


def test_a_very_long_address_is_refused_like_any_other(console: FlaskClient) -> None:
    email = "".join(chr(0x10000 + number * 2003 % 0x80000) for number in range(5000))
    page = send(console, "/account/email", email=email, current_password=PASSWORD)
    cookie = console.get_cookie("linkmgr")
    assert cookie
    assert len(cookie.value) < 4000, "browsers ignore longer ones"
    assert "email must be at most 255 characters." in field_of(page, "email")


@pytest.mark.parametrize(("path", "name"), [("key", "key-password"), ("key/replace", "replace-password")])
@pytest.mark.parametrize("fields", [{}, {"current_password": "x"}])
def test_an_unattended_browser_does_not_reveal_the_key(
    *, console: FlaskClient, alice: Client, path: str, name: str, fields: dict[str, str]
) -> None:
    answer = console.post(f"/account/{path}", data=fields)
    assert answer.status_code == 400
    assert "Your current password is wrong." in field_of(answer.text, name)
    assert answer.text.count('role="alert"') == answer.text.count("aria-invalid") == 1
    assert ("<details open>" in answer.text) == (path == "key/replace")
    assert str(alice.key) not in answer.text
    assert alice.get("/api/account").status_code == 200
