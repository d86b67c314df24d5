"""Users who sign in with Chromium."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from flask import Flask

from linkmgr.core.web import session_store
from tests.support.browser import Browser

if TYPE_CHECKING:
    from tests.conftest import Client


def login_link(base: str, app: Flask, user_id: int) -> str:
    with app.app_context():
        return base + urlsplit(session_store.new_link(user_id)).path


def sign_in(browser: Browser, base: str, app: Flask, user_id: int) -> None:
    browser.open(login_link(base, app, user_id))
    browser.wait_for("/console")


@pytest.fixture
def signed_in(browser: Browser, base: str, app: Flask, alice: "Client") -> Browser:
    """A browser with a desktop window, in which alice sees the console."""
    sign_in(browser, base, app, alice.id)
    return browser
