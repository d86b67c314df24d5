"""Authentication: API keys, their forms and their expiry. tests/test_matrix.py covers the route table."""

from collections.abc import Callable

import pytest
from flask import Flask

from linkmgr.core import keys
from linkmgr.core.database import statements
from linkmgr.core.web import operation
from tests.conftest import Client
from tests.support.keyring import Make

MISSING = "The API key is missing. Send it in the header 'Authorization: Bearer API_KEY'."
UNKNOWN = "The API key is invalid. Check for typing errors; it may also have been replaced, turned off or deleted."
EXPIRED = "The API key has expired. Create a new one on your account page, or ask an administrator for one."


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "Token {}", "{}", "  Bearer   {}  "])
def test_a_key_is_accepted_in_each_form_that_clients_send(
    alice: Client, anonymous: Client, make_key: Make, form: str
) -> None:
    for key in (alice.key, make_key(alice).key):
        answer = anonymous.get("/api/account", headers={"Authorization": form.format(key)})
        assert answer.get_json()["data"]["id"] == alice.id


@pytest.mark.parametrize("header", ["", "Bearer", "Token ", "Basic YTpi x", "a b c"])
def test_without_a_key_the_error_names_the_header(anonymous: Client, header: str) -> None:
    answer = anonymous.get("/api/account", headers={"Authorization": header})
    assert (answer.status_code, answer.get_json()["message"]) == (401, MISSING)
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("key", ["linkmgr_wrong", "Ünïcode", "x" * 5000, "%00", "' OR 1=1 --".replace(" ", "")])
def test_an_unknown_key_is_refused(anonymous: Client, key: str) -> None:
    answer = anonymous.get("/api/account", headers={"Authorization": f"Bearer {key}"})
    assert (answer.status_code, answer.get_json()["message"]) == (401, UNKNOWN)


def test_a_key_expires_after_its_lifetime(
    app_with: Callable[..., Flask], register: Callable[..., Client], sql: Callable[..., list[statements.Row]]
) -> None:
    alice = register("alice", via=app_with(key_lifetime_days="30"))
    sql("UPDATE users SET key_created = now() - interval '30 days' + interval '1 minute' RETURNING 1")
    assert alice.get("/api/account").status_code == 200
    sql("UPDATE users SET key_created = now() - interval '30 days' RETURNING 1")
    answer = alice.get("/api/account")
    assert (answer.status_code, answer.get_json()["message"]) == (401, EXPIRED)


def test_a_plan_without_the_api_refuses_every_call(
    alice: Client, admin: Client, make_key: Make, sql: Callable[..., list[statements.Row]]
) -> None:
    scoped = make_key(alice)
    sql("""INSERT INTO plans (name, free, limits) VALUES ('Web', false, '{"api": {"enabled": "0"}}') RETURNING 1""")
    sql("UPDATE users SET plan_id = (SELECT id FROM plans WHERE name = 'Web') RETURNING 1")
    for answer in (alice.get("/api/account"), scoped.get("/api/account")):
        message = "Your plan does not include the API. Ask an administrator for another plan."
        assert (answer.status_code, answer.get_json()["message"]) == (403, message)
    assert admin.get("/api/account").status_code == 200, "an administrator is bound by no plan"


def test_the_key_has_a_prefix_and_256_random_bits(alice: Client, bob: Client) -> None:
    assert alice.key
    assert alice.key != bob.key
    assert alice.key.startswith("linkmgr_")
    assert len(alice.key) == len("linkmgr_") + 43  # 32 bytes in base64


def test_an_encrypted_key_that_is_moved_to_another_user_is_not_shown(
    app: Flask, alice: Client, bob: Client, sql: Callable[..., list[statements.Row]]
) -> None:
    moved = sql("SELECT key_ciphertext FROM users WHERE id = %(id)s", id=alice.id)[0]["key_ciphertext"]
    with app.app_context():
        assert keys.reveal(alice.id, moved) == alice.key
        with pytest.raises(ValueError, match="is stored with user"):
            keys.reveal(bob.id, moved)


def test_keys_remain_valid_after_a_change_of_the_secret(app_with: Callable[..., Flask]) -> None:
    with app_with(secret_key="old" * 11).app_context():
        sealed = keys.new_key(1)
    with app_with(secret_key="new" * 11, secret_key_fallbacks=f"older, {'old' * 11}").app_context():
        assert keys.digest(keys.reveal(1, sealed["key_ciphertext"])) == sealed["key_digest"]


@pytest.mark.parametrize("scheme", ["http", "https", "ws", "wss"])
def test_a_protocol_upgrade_header_is_ignored(app_with: Callable[..., Flask], alice: Client, scheme: str) -> None:
    behind = Client(app_with(trusted_proxies="1").test_client(), alice.key)
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "X-Forwarded-Proto": scheme}
    assert behind.get("/api/account", headers=headers).status_code == 200


def test_no_blueprint_of_the_api_has_hooks_or_error_handlers(app_with: Callable[..., Flask]) -> None:
    """Flask does not look for them (linkmgr/core/web/request.py)."""
    app = app_with()
    names = {route.rule.endpoint.rpartition(".")[0] for route in operation.routes(app)}
    kept = (app.before_request_funcs, app.after_request_funcs, app.teardown_request_funcs, app.url_value_preprocessors)
    assert names
    assert not [name for hooks in kept for name in names if hooks.get(name)]
    assert not [name for name in names for handlers in app.error_handler_spec[name].values() if handlers]
