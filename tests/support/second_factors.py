"""Users with one-time codes and passkeys."""

import re
import time

import pyotp
from flask import Flask
from flask.testing import FlaskClient

from tests.support.authenticator import Authenticator
from tests.support.pages import PASSWORD


def confirm(browser: FlaskClient, **sent: str) -> None:
    answer = browser.post("/account/confirm", data=sent or {"current_password": PASSWORD})
    assert answer.status_code == 303, answer.text


def set_up_codes(browser: FlaskClient) -> tuple[pyotp.TOTP, list[str]]:
    """Return the generator of codes and the recovery codes. The code of the current time is used up."""
    confirm(browser)
    page = browser.post("/account/factors/codes").text
    app_on_phone = pyotp.TOTP("".join(page.split('<p class="text mono">')[1].split("</p>")[0].split()))
    answer = browser.post("/account/factors/codes/first", data={"code": app_on_phone.now()})
    assert answer.status_code == 200, answer.text
    return app_on_phone, re.findall("(?:[A-Z2-7]{4}-){3}[A-Z2-7]{4}", answer.text)


def next_code(app_on_phone: pyotp.TOTP) -> str:
    """Return a code that has not been used, which is that of the next half minute."""
    return app_on_phone.at(int(time.time()) + 30)


def password_given(app: Flask, name: str = "alice") -> FlaskClient:
    """Return a browser that is asked for a one-time code."""
    browser = app.test_client()
    answer = browser.post("/login", data={"email": name, "password": PASSWORD})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/login/code")
    return browser


def add_passkey(browser: FlaskClient, device: Authenticator) -> None:
    confirm(browser)
    sent = {"name": "Laptop", "credential": device.create(browser.get("/account/factors").text)}
    answer = browser.post("/account/factors/passkeys", data=sent)
    assert answer.status_code == 303, answer.text
