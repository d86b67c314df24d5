"""The forms of the console have all members of the bodies of the API."""

import re
from importlib import import_module
from pkgutil import iter_modules

import pytest
from flask import Flask
from marshmallow import Schema

from linkmgr.fields.base import Choice
from linkmgr.pages import console
from linkmgr.pages.console.forms import Form
from linkmgr.resources.bio import BioPage
from linkmgr.resources.campaigns import Campaign
from linkmgr.resources.channels import Channel
from linkmgr.resources.domains import Domain
from linkmgr.resources.overlay import Overlay
from linkmgr.resources.pixels import Pixel
from linkmgr.resources.qr import QrCode
from linkmgr.resources.splash import Splash
from linkmgr.resources.urls import Link
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import get, signed_in

BODIES: dict[str, type[Schema]] = {
    "link": Link.creates(), "qr": QrCode.creates(), "campaign": Campaign.creates(), "channel": Channel.creates(),
    "bio": BioPage.creates(), "splash": Splash.creates(), "overlay": Overlay.creates(), "pixel": Pixel.creates(),
    "domain": Domain.creates(),
}  # fmt: skip


def forms() -> dict[type[Schema], Form]:
    """Return the forms of the modules of the console, by the body that they send."""
    modules = [import_module(f"{console.__name__}.{module.name}") for module in iter_modules(console.__path__)]
    values = [value for module in modules for value in vars(module).values() if isinstance(value, Form)]
    return {form.kind.creates(): form for form in values}


def types(schema: type[Schema]) -> tuple[str, ...]:
    """Return the values of the member `type`, on which the fields of a form may depend."""
    member = schema().fields.get("type")
    return member.choices if isinstance(member, Choice) else ("",)


def names(page: str) -> set[str]:
    """Return the names of the controls of all forms, without what follows a dot."""
    return {name.split(".")[0] for name in re.findall(r'<(?:input|select|textarea)\b[^>]*\bname="([^"]+)"', page)}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_form_has_the_members_of_the_body(app: Flask, alice: Client, sql: Sql, body: type[Schema]) -> None:
    for make in (factories.pixel, factories.channel, factories.campaign, factories.domain):
        make(sql, alice.id)
    form, browser = forms()[body], signed_in(app)
    shown = set().union(*(names(get(browser, f"/console/{form.plural}/new?type={kind}")) for kind in types(body)))
    assert set(body().fields) <= shown
    assert set(form.kind.updates()().fields) <= set(body().fields) | {"version"}
