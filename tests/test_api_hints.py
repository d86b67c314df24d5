"""Hints to the caller besides the result: warnings, problems by member, and headers."""

from typing import Any

import pytest
from flask import Flask

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.operations import KEYED
from tests.support.worlds import World, ask

URL = "https://example.com/page"


STRICT = [call for call in KEYED if call.path in ("/api/stats", "/api/stats/live") or call.path.endswith("/visits")]
STRICT += [call for call in KEYED if call.method == "DELETE" or call.path.endswith("/bulk/delete")]
ANSWERS = [call for call in KEYED if not call.operation.file and call not in STRICT]


def test_an_unknown_query_parameter_of_any_operation_is_named(world: World) -> None:
    last = ("users.update", "users.delete")  # suspend and delete the owner
    for call in sorted([*ANSWERS, *STRICT], key=lambda call: call.operation.id in last):
        world.made.clear()
        ids = world.ready_ids(call, "owner")
        actor = world.clients["administrator" if call.operation.is_for_administrators else "owner"]
        headers = {"Accept": "application/json"}
        path, body = f"{call.path_of(ids)}?limt=5", call.example_of(ids)
        answer = actor.call(call.method, path, body, headers=headers, **call.upload)
        if call in STRICT:
            assert answer.get_json()["message"].startswith("limt is not a parameter of this operation; "), call
            continue
        assert answer.status_code == 200, (call, answer.text)
        hint = " Did you mean 'limit'?" * ("limit" in call.operation.query)
        warning = f"The query parameter 'limt' is unknown and was ignored.{hint}"
        assert warning in answer.get_json().get("warnings", ()), call
    assert "warnings" not in world.clients["owner"].get("/api/pixels?limit=5").get_json()


def test_every_single_record_is_in_record_too(world: World) -> None:
    for call in KEYED:
        if call.operation.has_etag:
            assert "record" in call.operation.response["properties"], call
            actor = world.clients["administrator" if call.operation.is_for_administrators else "owner"]
            answer = ask(actor, call, world.ready_ids(call, "owner")).get_json()
            own = {name: answer[name] for name in answer["record"].keys() & answer.keys()}
            assert answer["record"] == answer.get("details", answer.get("data", own)), call


def test_a_link_is_found_by_its_alias(alice: Client, bob: Client, sql: Sql) -> None:
    [domain] = sql("SELECT domain AS name FROM domains WHERE id = %(id)s", id=factories.domain(sql, alice.id))
    own = alice.add("/api/url/add", {"url": URL, "custom": "summer"})
    branded = alice.add("/api/url/add", {"url": URL, "custom": "summer", "domain": domain["name"]})
    assert alice.get("/api/urls?alias=summer").get_json()["id"] == own
    assert alice.get(f"/api/urls?alias=summer&domain={domain['name']}").get_json()["id"] == branded
    assert alice.get(f"/api/urls?alias=summer&domain={domain['name']}/").get_json()["id"] == branded
    host = domain["name"].partition("://")[2]
    ports = {"": True, ":443": True, ":80": True, ":8080": False}  # the scheme does not matter
    for port, is_served in ports.items():
        answer = alice.get(f"/api/urls?alias=summer&domain={host}{port}").get_json()
        assert answer.get("id") == (branded if is_served else None), port
    for client, alias in ((bob, "summer"), (alice, "winter"), (alice, "x/summer")):
        assert client.get(f"/api/urls?alias={alias}").get_json()["code"] == "short_url_unknown"


def test_a_past_expiry_is_stored_with_a_warning(alice: Client) -> None:
    answer = alice.post("/api/url/add", {"url": URL, "expiry": "2020/1/2"}).get_json()
    assert answer["warnings"] == ["The member 'expiry' is in the past, so the link has expired."]


@pytest.mark.parametrize(
    ("path", "body", "codes"),
    [
        ("/api/url/add", {"metatitle": 5}, {"url": "required", "metatitle": "type"}),
        ("/api/url/add", {"url": URL, "campaign": {}, "channel": {}}, {"campaign": "type", "channel": "type"}),
        (
            "/api/pixel/add",
            {"type": "x", "name": "x" * 256},
            {"type": "unknown_value", "name": "too_long", "tag": "required"},
        ),
        ("/api/splash/add", {"name": "x", "counter": 61}, {"counter": "out_of_range"}),
        ("/api/qr/add", {"type": "vcard", "data": {"email": "x"}}, {"data.email": "invalid"}),
        ("/api/qr/add", {"type": "vcard", "data": {"city": "Rome"}}, {"data.fname": "required"}),
        ("/api/qr/add", {"type": "phone", "data": {"phone": "x"}}, {"data": "invalid"}),
        ("/api/qr/add", {"type": "email", "data": "x"}, {"data.email": "invalid"}),
        ("/api/key/add", {"name": "x", "scopes": ["x:read"]}, {"scopes": "unknown_value"}),
        ("/api/key/add", {"name": "x", "scopes": []}, {"scopes": "too_short"}),
        ("/api/urls/bulk", {"urls": []}, {"urls": "too_short"}),
    ],
)
def test_problems_are_listed_by_member(alice: Client, path: str, body: dict[str, Any], codes: dict[str, str]) -> None:
    answer = alice.post(path, body).get_json()
    assert answer["code"] == "invalid"
    assert {error["field"]: error["code"] for error in answer["errors"]} == codes
    assert "; ".join(error["message"].removesuffix(".") for error in answer["errors"]) + "." == answer["message"]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("/api/pixels?limit=x", ("limit", "type")),
        ("/api/pixels?limit=0", ("limit", "out_of_range")),
        ("/api/pixels?page=1&page=2", ("page", "invalid")),
        ("/api/pixels?page=2&after=9", ("after", "invalid")),
        (f"/api/urls?alias={'x' * 256}", ("alias", "too_long")),
        ("/api/urls?order=click&after=9", ("after", "invalid")),
        ("/api/events?type=x", ("type", "unknown_value")),
        ("/api/stats?x=1", ("x", "invalid")),
        ("/api/stats?by=time:hour&from=2026-01-01&to=2026-12-01", ("by", "invalid")),
        ("/api/stats?metrics=x", ("metrics", "unknown_value")),
        ("/api/stats?device=x", ("device", "unknown_value")),
        ("/api/stats?limit=0", ("limit", "out_of_range")),
        ("/api/stats?to=2026-01-01", ("from", "required")),
    ],
)
def test_a_problem_of_the_query_names_the_parameter(alice: Client, query: str, problem: tuple[str, str]) -> None:
    answer = alice.get(query).get_json()
    assert [(error["field"], error["code"], error["message"]) for error in answer["errors"]] == [
        (*problem, answer["message"])
    ]


def test_an_element_that_fails_lists_its_problems(alice: Client) -> None:
    sent = [{"url": URL}, {"url": "x"}, {"custom": 5}]
    [_, failed, without] = alice.post("/api/urls/bulk", {"urls": sent}).get_json()["results"]
    assert failed["errors"] == [{"field": "url", "code": "invalid", "message": failed["message"]}]
    assert {error["field"]: error["code"] for error in without["errors"]} == {"url": "required", "custom": "type"}


def test_what_is_negotiated_varies_by_accept(alice: Client) -> None:
    for path in ("/api/channels/export", "/api/stats"):
        assert "Accept" in alice.get(path).headers["Vary"]
    assert "Accept" not in alice.get("/api/channels").headers.get("Vary", "")


def test_the_paths_of_the_browser_extension_answer(app: Flask, alice: Client) -> None:
    alice.add("/api/url/add", {"url": URL, "custom": "summer"})
    http = app.test_client()
    with http.get("/summer/ico") as icon:
        assert (icon.status_code, icon.mimetype) == (200, "image/vnd.microsoft.icon")
    assert (http.get("/user").status_code, http.get("/user").location) == (302, "/console")


@pytest.mark.parametrize(
    ("path", "sent", "named"),
    [
        ("/api/url/add", {"url": URL, "type": "overlay-99"}, "type"),
        ("/api/url/add", {"url": URL, "custom": "taken"}, "custom"),
        ("/api/bio/add", {"name": "Dana", "alias": "taken"}, "alias"),
        ("/api/url/add", {"url": "https://go.example.org/x"}, "url"),
        ("/api/qr/add", {"type": "link", "data": "https://go.example.org/x"}, "data"),
        ("/api/url/add", {"url": URL, "pixels": [99]}, "pixels"),
    ],
)
def test_an_error_about_one_member_names_it(
    sql: Sql, alice: Client, path: str, sent: dict[str, Any], named: str
) -> None:
    factories.row(sql, "domains", user_id=alice.id, scheme="https", host="go.example.org")
    alice.post("/api/url/add", {"url": URL, "custom": "taken"})
    refused = alice.post(path, sent).get_json()
    assert refused["errors"] == [{"field": named, "code": refused["code"], "message": refused["message"]}]
    assert refused["code"] != "invalid"
