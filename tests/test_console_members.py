"""The forms of the console have all members of the bodies of the API."""

import re
from pathlib import Path

import pytest
from flask import Flask
from marshmallow import Schema

from linkmgr import console
from linkmgr.console.forms import Form
from linkmgr.core.fields.base import Choice
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import forms, get, signed_in

FORMS = Path(console.__file__).parents[1] / "templates" / "console"


def types(schema: type[Schema]) -> tuple[str, ...]:
    """Return the values of the member `type`, on which the fields of a form may depend."""
    member = schema().fields.get("type")
    return member.choices if isinstance(member, Choice) else ("",)


def names(page: str) -> set[str]:
    """Return the names of the controls of all forms, without what follows a dot."""
    return {name.split(".")[0] for name in re.findall(r'<(?:input|select|textarea)\b[^>]*\bname="([^"]+)"', page)}


@pytest.mark.parametrize("form", forms(), ids=lambda form: form.path[1:])
def test_a_form_has_the_members_of_the_body(app: Flask, alice: Client, sql: Sql, form: Form) -> None:
    for make in (factories.pixel, factories.channel, factories.campaign, factories.domain):
        make(sql, alice.id)
    browser, body = signed_in(app), form.resource.creates()
    shown = set().union(*(names(get(browser, f"/console{form.path}/new?type={name}")) for name in types(body)))
    assert set(body().fields) - {"active"} <= shown  # a new webhook is on
    assert set(form.resource.updates()().fields) <= set(body().fields) | {"version"}


@pytest.mark.parametrize("path", [*FORMS.glob("*_form.html")], ids=lambda path: path.stem)
def test_a_group_names_its_controls_for_whose_messages_it_opens(path: Path) -> None:
    groups = re.findall(r'call group\("[^"]+", \(([^)]*)\)(.*?){% endcall %}', path.read_text(), re.DOTALL)
    for names_of_group, content in groups:
        assert {*re.findall(r'\b(?:control|boxes)\("(\w+)"', content)} <= {*re.findall(r"\w+", names_of_group)}
