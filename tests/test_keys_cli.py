"""flask --app app keys ..."""

import pytest
from click.testing import Result
from flask import Flask

from linkmgr.core import keys
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql


def run(app: Flask, *arguments: object) -> Result:
    return app.test_cli_runner().invoke(args=["keys", *map(str, arguments)])


def test_a_key_is_added_listed_rotated_and_deleted(app: Flask, alice: Client, sql: Sql) -> None:
    domain = factories.domain(sql, alice.id)
    limits = ("--domain", domain, "--own-only", "--allow-ip", "127.0.0.1", "--expires", "2099-12-31 23:59:59")
    secret = run(app, "add", "alice", "Shop", "--scope", "links:read", "--scope", "stats:read", *limits).output.strip()
    assert keys.is_well_formed(secret)
    client = Client(alice.http, secret)
    assert client.get("/api/urls").status_code == 200
    [key] = alice.get("/api/keys").get_json()["data"]["keys"]
    lines = run(app, "list", "ALICE").output.splitlines()
    assert lines[1].split()[:3] == [str(key["id"]), f"{secret[:8]}...", "Shop"]
    assert lines[1].endswith(
        f"links:read stats:read (own rows only; domains {domain}; from 127.0.0.1/32; until 2099-12-31 23:59:59)"
    )
    assert lines[2].split() == ["linkmgr_...", "default", "everything"]
    rotated = run(app, "rotate", "alice", key["id"], "--overlap", "60").output.strip()
    assert [Client(alice.http, text).get("/api/urls").status_code for text in (secret, rotated)] == [200, 200]
    assert run(app, "delete", "alice", key["id"]).output == f"Key {key['id']} of alice has been deleted.\n"
    assert client.get("/api/urls").status_code == 401


def test_the_default_key_is_turned_off_and_on(app: Flask, alice: Client) -> None:
    assert "You have no other API key" in run(app, "default", "alice", "off").output
    run(app, "add", "alice", "Shop", "--scope", "*")
    assert run(app, "default", "alice", "off").output == "The default key of alice has been turned off.\n"
    assert alice.get("/api/urls").status_code == 401
    assert run(app, "list", "alice").output.splitlines()[-1].endswith("turned off")
    run(app, "default", "alice", "on")
    assert alice.get("/api/urls").status_code == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("add", "alice", "Shop", "--scope", "links:delete"), "scopes must be from the list *, "),
        (("add", "alice", "Shop", "--scope", "admin"), "Only administrators can give the scope admin"),
        (("add", "alice", "Shop", "--scope", "*", "--domain", 17), "domains must contain only ids"),
        (("add", "alice", "Shop", "--scope", "*", "--allow-ip", "here"), "allowed_ips must be an array"),
        (("add", "nobody", "Shop", "--scope", "*"), "There is no user named 'nobody'"),
        (("rotate", "alice", 17), "There is no key with this id"),
        (("delete", "alice", 17), "There is no key with this id"),
    ],
    ids=str,
)
def test_mistakes_are_named(app: Flask, alice: Client, arguments: tuple[object, ...], message: str) -> None:
    result = run(app, *arguments)
    assert (result.exit_code, message in result.output) == (1, True), result.output
