"""The form of a link in the console: its fields, their messages, and changes by others in the meantime."""

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.datastructures import MultiDict

from linkmgr.console import controls
from linkmgr.core.fields.base import Target, Url
from linkmgr.features.reports import repository as reports
from linkmgr.schemas.domains import DomainUrl
from linkmgr.visits.rules import CONDITIONS
from tests.conftest import Client
from tests.support.bodies import everything
from tests.support.factories import Sql
from tests.support.pages import as_form, details, fields, forms, message, signed_in

URL = "https://example.com/page"


def test_the_form_creates_what_the_api_creates(console: FlaskClient, alice: Client, sql: Sql) -> None:
    body = everything(alice, sql)
    answer = console.post("/console/links/new", data=as_form(body))
    assert answer.status_code == 303, answer.text
    page = console.get(answer.headers["Location"]).text
    assert "Link created." in page
    assert '<span class="badge">overlay</span>' in page
    link = details(alice, int(answer.headers["Location"].rsplit("/", 1)[1]))
    assert {name: link[name] for name in body if name != "password"} == {
        name: value for name, value in body.items() if name != "password"
    }
    assert link["haspassword"] is True


@pytest.mark.parametrize(
    ("typed", "member", "expected"),
    [
        ({"expiry": ""}, "expiry", None),
        ({"type": "direct"}, "type", "direct"),
        ({"geotarget.link": ["https://example.com/x", "", ""]}, "location", {"germany": "https://example.com/x"}),
        ({"geotarget.location": [""], "geotarget.link": [""]}, "location", {}),
        ({"pixels": []}, "pixels", []),
        ({"deeplink.auto": []}, "deeplink", {"apple": "https://apps.apple.com/app/1"}),
        ({"password.remove": "1"}, "haspassword", False),
    ],
)
def test_a_change_of_one_field_changes_only_that(
    *, console: FlaskClient, alice: Client, sql: Sql, typed: dict[str, Any], member: str, expected: Any
) -> None:
    link_id = alice.add("/api/url/add", everything(alice, sql))
    before = details(alice, link_id)
    page = console.get(f"/console/links/{link_id}/edit").text
    answer = console.post(f"/console/links/{link_id}/edit", data=fields(page) | typed)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/console/links/{link_id}")
    after = details(alice, link_id)
    assert after[member] == expected
    derived = {"longurl", "alias", "shorturl", "title", "location", "geotarget", "updated", "version", member}
    assert {name: after[name] for name in after if name not in derived} == {
        name: before[name] for name in before if name not in derived
    }


@pytest.mark.parametrize(
    ("typed", "field", "text"),
    [
        ({"url": ""}, "url", "Target is required."),
        ({"custom": "taken"}, "custom", "This alias is already in use."),
        ({"domain": "https://go.example.org"}, "domain", "Domain must be one of your branded domains."),
        ({"type": "99"}, "type", "How the target is shown must refer to one of your splash pages."),
        ({"campaign": "99"}, "campaign", "Campaign must be the id"),
        ({"pixels": "99"}, "pixels", "Pixels must contain only ids of your pixels."),
        ({"channel": "99"}, "channel", "Channels must be the id"),
        ({"geotarget.location": "Germany", "geotarget.link": ""}, "geotarget", "Fill in both location and link"),
        ({"parameters.name": "", "parameters.value": "x"}, "parameters", "Fill in the name of each parameter"),
        ({"rules.0.condition": "country", "rules.0.value": "Germny"}, "rules", "Rule 1: the country has the value"),
        ({"rules.0.value": "Peru", "rules.0.condition": ""}, "rules", "Rule 1: choose a condition."),
        ({"rules.0.url": "https://x.test"}, "rules", "Rule 1: choose a condition."),
        ({"rules.0.condition": "clicks", "rules.0.value": "from x"}, "rules", "must be written as in the example 0 to"),
        ({"variants.name": "A", "variants.url": URL, "variants.weight": "0"}, "variants", "number 1: weight must be"),
        ({"deeplink.apple": "nonsense"}, "deeplink", "App links contains an invalid link"),
    ],
)
def test_a_message_is_beside_its_field_and_what_was_typed_is_kept(
    *, console: FlaskClient, bob: Client, sql: Sql, typed: dict[str, str], field: str, text: str
) -> None:
    bob.add("/api/url/add", {"url": URL, "custom": "taken"})
    answer = console.post("/console/links/new", data={"url": URL, "metatitle": "Kept <b>"} | typed)
    assert answer.status_code == 400
    assert text in message(answer.text, field).replace("&#39;", "'")
    is_marked = re.search(f'name="{field}[^>]*aria-invalid="true"[^>]* autofocus', answer.text)
    assert is_marked or field in ("pixels", "channel"), "checkboxes"
    sent = fields(answer.text)
    for name, value in ({"metatitle": "Kept <b>"} | typed).items():
        if name not in ("pixels", "channel", "status") and value:
            assert value in sent[name] or value.lower() in sent[name]  # as it is stored
    assert len(sql("SELECT 1 FROM links")) == 1


def test_a_blocked_host_is_named_beside_the_only_target_or_above_several(
    app: Flask, console: FlaskClient, admin: Client
) -> None:
    evil, text = "https://evil.example/", "have blocked the host"
    with app.app_context():
        reports.block_host("evil.example", by=admin.id)
    assert text in message(console.post("/console/links/new", data={"url": evil}).text, "url")
    page = console.post("/console/links/new", data={"url": URL, "expiredurl": evil}).text
    assert text in page
    assert 'id="url-error"' not in page


@pytest.mark.parametrize("added", ["rules", "rules.0", "variants", "parameters", "geotarget"])
def test_a_row_that_is_added_without_scripts_is_visible_and_has_the_focus(console: FlaskClient, added: str) -> None:
    page = console.post("/console/links/new", data={"url": URL, "rules.0.url": URL, "again": added}).text
    [group] = [part for part in page.split("<details ") if " autofocus" in part]
    assert group.startswith('class="group" open')


def test_a_feature_that_the_plan_lacks_is_named_above_the_form(app: Flask, on_plan: Callable[..., Client]) -> None:
    carol = on_plan(alias={"enabled": "0"})
    console = signed_in(app, "carol@example.com")
    answer = console.post("/console/links/new", data={"url": URL, "custom": "summer"})
    assert answer.status_code == 400
    assert "Your plan does not include" in answer.text
    assert carol.get("/api/urls").get_json()["data"]["result"] == 0


def test_the_warnings_of_the_api_are_shown_after_saving(console: FlaskClient) -> None:
    body = {"url": URL, "geotarget.location": "Germny", "geotarget.link": "https://example.com/de"}
    answer = console.post("/console/links/new", data=body)
    page = console.get(answer.headers["Location"]).text
    assert "Link created." in page
    [warning] = re.findall('class="notice warning" role="status">([^<]+)<', page)
    assert "germny" in warning
    edit = fields(console.get(answer.headers["Location"] + "/edit").text)
    console.post(answer.headers["Location"] + "/edit", data=edit | {"languagetarget.language": ["Frnch"],
                 "languagetarget.link": ["https://example.com/fr"]})  # fmt: skip
    page = console.get(answer.headers["Location"]).text
    [warning] = re.findall('class="notice warning" role="status">([^<]+)<', page)
    assert "frnch" in warning


def test_a_url_may_be_typed_without_its_scheme_in_every_form(console: FlaskClient, alice: Client) -> None:
    def is_url(field: Any) -> bool:
        return isinstance(field, Url | Target | DomainUrl)

    fields_of = {form.path: {n: f for n, f in form.resource.controls().items() if is_url(f)} for form in forms()}
    named = {name for names in fields_of.values() for name in names}
    assert named >= {"url", "metaimage", "domain", "redirectroot", "redirect404", "link", "banner"}
    for typed, url in (("example.com/a?b", "https://example.com/a?b"), ("http://a.test", "http://a.test"), ("x", "x")):
        for names in fields_of.values():
            assert {controls.read(f, n, MultiDict({n: f" {typed} "})) for n, f in names.items()} <= {url}
    for word, body in {
        "links": {"url": "example.com/1", "geotarget.location": "germany", "geotarget.link": "example.com/2",
                  "deeplink.apple": "apps.apple.com/3"},
        "bios": {"name": "Dana", "theme": "light", "links.title": "Shop", "links.url": "example.com/4"},
        "qrs": {"type": "link", "data.link.link": "example.com/5"},
    }.items():  # fmt: skip
        answer = console.post(f"/console/{word}/new", data=body)
        assert answer.status_code == 303, answer.text
        page = html.unescape(console.get(f"{answer.headers['Location']}/edit").text)
        urls = [text for text in body.values() if "example.com" in text or "apple.com" in text]
        assert [text for text in urls if f"https://{text}" not in page] == []


def test_the_first_group_of_a_link_has_its_campaign_and_channels_and_rules_have_lists_of_values(
    console: FlaskClient, alice: Client
) -> None:
    campaign, channel = (alice.add(f"/api/{word}/add", {"name": "Spring"}) for word in ("campaign", "channel"))
    page = console.get("/console/links/new").text
    first = page.split('<details class="group" open>')[1].split("</details>")[0]
    assert {'name="custom"', 'name="campaign"', 'name="channel"'} <= set(re.findall('name="[a-z]+"', first))
    assert (f'value="{campaign}"' in first, f'value="{channel}"' in first) == (True, True)
    when = {"country": ["Peru"], "weekdays": ["monday"], "ip": ["192.0.2.1"]}
    link = alice.add("/api/url/add", {"url": "https://example.com/", "rules": [{"when": when, "url": "https://a.com"}]})
    page = console.get(f"/console/links/{link}/edit").text
    assert 'value="Peru" list="values-country"' in page
    assert 'value="monday" list="values-weekdays"' in page
    assert re.search('value="192.0.2.1[/0-9]*" aria-label', page), "any text"
    lists = dict(re.findall('<datalist id="values-([a-z]+)">(.*?)</datalist>', page))
    assert {"country", "device", "os", "browser", "language", "weekdays", "timezone"} == lists.keys()
    assert "<option>Germany</option>" in lists["country"]
    for name in CONDITIONS.keys() & lists.keys():
        values = [html.unescape(value) for value in re.findall("<option>([^<]+)", lists[name])]
        [stored] = [CONDITIONS[name].from_text(", ".join(values))]
        assert CONDITIONS[name].deserialize(stored[:50]), "they are as the API takes them"
