"""Features can be left out: all of them, or each by itself."""

import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from flask import Flask
from marshmallow import Schema

from linkmgr import create_app
from linkmgr.core.settings import InvalidSetting
from linkmgr.core.web.operation import routes
from linkmgr.features import ALL
from tests.conftest import Client
from tests.support import contract
from tests.support.factories import Sql
from tests.support.operations import KEYED, Call
from tests.support.pages import signed_in
from tests.support.stage import Stage

# The specification, chapter 4
DOCUMENTED = """
    GET /api/account
    PUT /api/account/update
    GET /api/domains
    POST /api/domain/add
    PUT /api/domain/{domain_id}/update
    DELETE /api/domain/{domain_id}/delete
    GET /api/splash
    GET /api/overlay
    GET /api/pixels
    POST /api/pixel/add
    PUT /api/pixel/{pixel_id}/update
    DELETE /api/pixel/{pixel_id}/delete
    GET /api/qr
    GET /api/qr/{qr_id}
    POST /api/qr/add
    PUT /api/qr/{qr_id}/update
    DELETE /api/qr/{qr_id}/delete
    GET /api/campaigns
    POST /api/campaign/add
    POST /api/campaign/{campaign_id}/assign/{link_id}
    PUT /api/campaign/{campaign_id}/update
    DELETE /api/campaign/{campaign_id}/delete
    GET /api/channels
    GET /api/channel/{channel_id}
    POST /api/channel/add
    POST /api/channel/{channel_id}/assign/{type}/{item_id}
    PUT /api/channel/{channel_id}/update
    DELETE /api/channel/{channel_id}/delete
    GET /api/plans
    PUT /api/plan/{plan_id}/user/{user_id}
    GET /api/users
    GET /api/user/{user_id}
    POST /api/user/add
    DELETE /api/user/{user_id}/delete
    GET /api/user/login/{user_id}
"""

WITHOUT_OPERATIONS = ("mail", "signin")  # they have pages only


@pytest.fixture(scope="module")
def alone(app: Flask, make_app: Callable[..., Flask]) -> Flask:
    return make_app(features=())


def is_served(app: Flask, call: Call) -> bool:
    return any((route.method, route.path) == (call.method, call.route.path) for route in routes(app))


@pytest.fixture
def stage(alone: Flask, register: Callable[..., Client], sql: Sql) -> Stage:
    return Stage(register("alice", via=alone), register("admin", admin=True, via=alone), sql)


def test_the_documented_service_has_all_operations_of_the_specification(alone: Flask) -> None:
    served = {f"{route.method} {route.path}" for route in routes(alone)}
    assert [line for line in map(str.strip, DOCUMENTED.splitlines()) if line and line not in served] == []


@pytest.mark.parametrize(("calls", "index"), [*contract.READ, *contract.WRITES], ids=str)
def test_the_documented_service_keeps_the_contract(
    alone: Flask, stage: Stage, read_by: list[type[Schema]], calls: list[Call], index: int
) -> None:
    contract.check(stage, read_by, [call for call in calls if is_served(alone, call)], index)


@pytest.mark.parametrize("name", ALL)
def test_a_feature_that_is_left_out_is_a_404_and_in_no_document_and_menu(
    make_app: Callable[..., Flask], register: Callable[..., Client], name: str
) -> None:
    app = make_app(features=[f"-{name}"])
    user, admin = register("alice", via=app), register("admin", admin=True, via=app)
    gone = [call for call in KEYED if not is_served(app, call)]
    assert gone or name in WITHOUT_OPERATIONS
    for call in gone:
        answer = user.call(call.method, re.sub("{[a-z_]+}", "17", call.path))
        assert (answer.status_code, answer.get_json()["code"]) == (404, "no_such_operation"), call
    document = user.http.get("/api/openapi.json").get_json()
    assert not {call.route.path for call in gone} & {*document["paths"]}
    if name == "statistics":  # without it there is no console
        return
    for browser in (signed_in(app), signed_in(app, "admin@example.com")):
        assert browser.get("/console").status_code == 200
        for path in {*re.findall(r'href="(/(?!static)[^"?#]*)', browser.get("/console").text)}:
            assert browser.get(path).status_code == 200, path
    assert admin.get("/api/users").status_code == 200


def test_without_statistics_sign_in_leads_to_the_account(alone: Flask, register: Callable[..., Client]) -> None:
    register("alice", via=alone)
    browser = alone.test_client()
    answer = browser.post("/login", data={"email": "alice@example.com", "password": "correct horse"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/account")
    page = browser.get("/account")
    assert (page.status_code, 'href="/console' in page.text) == (200, False)
    assert browser.get("/console").status_code == 404


def test_features_that_are_left_out_are_not_imported() -> None:
    script = (
        "import sys, linkmgr; linkmgr.create_app(features=(), database_url='postgresql://unused', secret_key='x' * 32);"
        "left_out = ('linkmgr.features.', 'linkmgr.console.links', 'authlib', 'webauthn', 'pyotp', 'zxcvbn');"
        "print([name for name in sys.modules if name.startswith(left_out)])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("features", [(), None])
def test_authlib_is_not_imported_without_a_provider(features: tuple[str, ...] | None) -> None:
    script = (
        f"import sys, linkmgr; linkmgr.create_app({features}, database_url='postgresql://unused', secret_key='x' * 32);"
        "print([name for name in sys.modules if name.partition('.')[0] in ('authlib', 'joserfc')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_unknown_feature_stops_the_start() -> None:
    with pytest.raises(InvalidSetting, match=r"LINKMGR_FEATURES must not contain 'plugins'\. Possible names: "):
        create_app(features=["plugins"], database_url="postgresql://unused", secret_key="unused" * 6)
