"""Users who work in the account of another user."""

from typing import TYPE_CHECKING

from flask import Flask
from flask.testing import FlaskClient

from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import signed_in

if TYPE_CHECKING:
    from tests.conftest import Client


def switch(browser: FlaskClient, account: "Client") -> FlaskClient:
    assert browser.post("/account/switch", data={"account": account.id}).status_code == 303
    return browser


def joined(app: Flask, sql: Sql, account: "Client", person: "Client", role: str = "editor") -> FlaskClient:
    """Return a browser of a person who works in an account with this role."""
    factories.member(sql, account.id, role=role, member_id=person.id)
    return switch(signed_in(app, f"{person.username}@example.com"), account)
