"""Changes of what gives lasting access ask for a confirmation, so that a stolen session cannot get more."""

import json
from collections.abc import Callable

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.conftest import Client
from tests.support.authenticator import PRESENT, Authenticator, changed, decoded
from tests.support.factories import Sql
from tests.support.pages import PASSWORD, is_signed_in, send, signed_in
from tests.support.second_factors import add_passkey, confirm, next_code, password_given, set_up_codes

FORMS = {
    "/account/email": {"email": "new@example.org"},
    "/account/password": {"password": "another long horse"},
    "/account/key": {},
    "/account/key/replace": {},
    "/console/keys/new": {"name": "Robot", "scopes": "links:read"},
}
STATE = """
    SELECT (SELECT string_agg(concat(id, email, password_hash, key_digest), ' ' ORDER BY id) FROM users) AS users,
           (SELECT json_agg(f ORDER BY id) FROM factors f)::text AS factors, (SELECT count(*) FROM api_keys) AS keys
"""


@pytest.fixture
def local(app_with: Callable[..., Flask]) -> Flask:
    """A service whose host name browsers trust without HTTPS."""
    return app_with(base_url="http://localhost")


@pytest.fixture
def device(local: Flask, alice: Client) -> Authenticator:
    """A passkey of alice."""
    device = Authenticator()
    add_passkey(signed_in(local), device)
    return device


def answer_passkey(browser: FlaskClient, device: Authenticator, path: str = "/login/passkey") -> int:
    return browser.post(path, data={"credential": device.get(browser.get(path).text)}).status_code


def test_a_stolen_session_adds_no_factor_and_gets_no_other_access(app: Flask, console: FlaskClient, sql: Sql) -> None:
    """A sign-in does not confirm, neither with a password nor with a code."""
    phone, _ = set_up_codes(console)
    stolen = password_given(app)
    assert stolen.post("/login/code", data={"code": next_code(phone)}).status_code == 303
    [factor] = sql("SELECT id FROM factors")
    before = sql(STATE)
    rules = [rule for rule in app.url_map.iter_rules() if rule.endpoint.startswith("factors.")]
    paths = [str(rule).replace("<id:factor_id>", str(factor["id"])) for rule in rules if "POST" in (rule.methods or ())]
    assert len(paths) >= 6
    for path in paths:
        answer = stolen.post(path, data={"name": "x", "code": "1", "credential": "{}"})
        assert answer.headers["Location"] == "/account/confirm?next=/account/factors", path
    for path, form in FORMS.items():
        answer = stolen.post(path, data=form)
        assert (answer.status_code, "Confirm that it is you" in answer.text) == (400, True), path
    for sent in ({}, {"current_password": "wrong horse"}, {"code": "123456"}, {"credential": "{}"}):
        assert stolen.post("/account/confirm", data=sent).status_code in (400, 401)
    assert sql(STATE) == before


@pytest.mark.parametrize("path", FORMS)
def test_a_confirmation_counts_for_five_minutes(console: FlaskClient, sql: Sql, path: str) -> None:
    set_up_codes(console)
    page = path if path.endswith("new") else "/account"
    assert 'name="current_password"' not in console.get(page).text
    sql("UPDATE sessions SET confirmed = confirmed - interval '5 minutes' RETURNING 1")
    assert f"/account/confirm?next={page}" in console.get(page).text
    before = sql(STATE)
    assert console.post(path, data=FORMS[path]).status_code == 400
    assert sql(STATE) == before
    confirm(console)
    assert console.post(path, data=FORMS[path]).status_code in (200, 303)
    assert (sql(STATE) == before) == (path == "/account/key")


def test_a_user_who_has_a_password_alone_types_it_into_the_form(console: FlaskClient) -> None:
    page = console.get("/account").text
    assert (page.count('name="current_password"'), "/account/confirm" in page) == (4, False)
    assert "Your current password is wrong." in send(console, "/account/email", email="new@example.org")


@pytest.mark.parametrize(
    ("sent", "page"),
    [
        ("/console/keys?page=2", "/console/keys?page=2"),
        ("/account/factors", "/account/factors"),
        *((text, "/account") for text in ("", "//evil.example", "https://evil.example", "/console\\evil", "/\\evil",
                                          "/accounts", "/console/\r\nX: y", "javascript:1", "/console@evil")),
    ],
)  # fmt: skip
def test_a_confirmation_returns_to_pages_of_the_console_only(console: FlaskClient, sent: str, page: str) -> None:
    assert f'name="next" value="{page}"' in console.get("/account/confirm", query_string={"next": sent}).text
    form = {"current_password": PASSWORD, "next": sent}
    assert console.post("/account/confirm", data=form).headers["Location"] == page


# --- passkeys


def test_a_passkey_signs_in_without_a_code_and_confirms(local: Flask, device: Authenticator, sql: Sql) -> None:
    set_up_codes(signed_in(local))
    browser = local.test_client()
    assert answer_passkey(browser, device) == 303
    assert browser.post("/account/key").status_code == 400
    assert answer_passkey(browser, device, "/account/confirm") == 303
    assert browser.post("/account/key").status_code == 200
    [row] = sql("SELECT id FROM factors WHERE method = 'passkey'")
    browser.post(f"/account/factors/{row['id']}/rename", data={"name": "Key\0 <i>"})
    assert "Key &lt;i&gt;" in browser.get("/account/factors").text
    assert browser.post(f"/account/factors/{row['id']}/remove").status_code == 303
    assert answer_passkey(local.test_client(), device) == 401


def test_a_user_without_a_password_confirms_with_the_passkey(local: Flask, device: Authenticator, sql: Sql) -> None:
    sql("UPDATE users SET password_hash = '' WHERE username = 'alice' RETURNING 1")
    browser = local.test_client()
    assert answer_passkey(browser, device) == 303
    assert browser.get("/console").status_code == 200
    new = {"password": "another long horse"}
    assert browser.post("/account/password", data=new).status_code == 400
    assert 'name="current_password"' not in browser.get("/account/confirm").text
    assert answer_passkey(browser, device, "/account/confirm") == 303
    assert "Your password has been set." in send(browser, "/account/password", **new)


def test_the_passkey_of_another_user_confirms_nothing(local: Flask, device: Authenticator, bob: Client) -> None:
    browser, own = signed_in(local, "bob@example.com"), Authenticator(credential=b"of bob")
    add_passkey(browser, own)
    assert browser.post(
        "/account/factors/passkeys", data={"credential": own.create(browser.get("/account/factors").text)}
    ).status_code == 400  # fmt: skip
    assert answer_passkey(browser, device, "/account/confirm") == 401
    assert answer_passkey(browser, own, "/account/confirm") == 303


def test_an_answer_to_a_challenge_counts_once(local: Flask, device: Authenticator) -> None:
    browser = local.test_client()
    device.counter = -1  # as of passkeys that do not count
    sent = {"credential": device.get(browser.get("/login/passkey").text)}
    copy = local.test_client()
    cookie = browser.get_cookie("linkmgr")
    assert cookie
    copy.set_cookie("linkmgr", cookie.value)
    assert browser.post("/login/passkey", data=sent).status_code == 401  # it has counted before
    assert not is_signed_in(browser)
    fresh = Authenticator(key=device.key, counter=5)
    page = copy.get("/login/passkey").text
    sent, cookie = {"credential": fresh.get(page)}, copy.get_cookie("linkmgr")
    assert cookie
    assert copy.post("/login/passkey", data=sent).status_code == 303
    thief = local.test_client()
    thief.set_cookie("linkmgr", cookie.value)
    assert thief.post("/login/passkey", data=sent).status_code == 401


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://localhost:8080"},
        {"host": "evil.example"},
        {"flags": PRESENT},
        {"counter": -1},
        {"key": Authenticator().key},
        {"credential": b"unknown"},
    ],
    ids=["origin", "port", "host", "verification", "counter", "key", "credential"],
)
def test_a_wrong_passkey_is_refused(local: Flask, device: Authenticator, wrong: dict[str, object]) -> None:
    values = {"key": device.key, "counter": device.counter} | wrong
    browser = local.test_client()
    assert answer_passkey(browser, Authenticator(**values)) == 401  # type: ignore[arg-type]
    assert not is_signed_in(browser)
    assert answer_passkey(browser, device) == 303


def test_a_challenge_is_answered_within_five_minutes(local: Flask, device: Authenticator) -> None:
    browser = local.test_client()
    sent = {"credential": device.get(browser.get("/login/passkey").text)}
    with browser.session_transaction() as session:
        session["challenge"] = [session["challenge"][0], session["challenge"][1] - 301]
        session.accessed = True
    assert browser.post("/login/passkey", data=sent).status_code == 401
    sent = {"credential": device.get(browser.get("/login/passkey").text)}
    browser.delete_cookie("linkmgr")
    assert browser.post("/login/passkey", data=sent).status_code == 401


def test_malformed_responses_are_refused_with_a_sentence(local: Flask, device: Authenticator, sql: Sql) -> None:
    browser = signed_in(local)
    confirm(browser)
    good = device.get(browser.get("/login/passkey").text)
    new = Authenticator(credential=b"new")
    sizes = {"clientDataJSON": 140, "attestationObject": 200}
    texts = [
        "",
        "{}",
        "[]",
        "null",
        "1",
        "\0",
        "[" * 9000,
        json.dumps({"id": "a", "rawId": "a", "type": 1, "response": []}),
    ]
    for part in ("clientDataJSON", "authenticatorData", "signature"):
        texts += [changed(good, part, decoded(good, part)[:cut]) for cut in (0, 1, 36, -1)]
    before = sql(STATE)
    for text in texts:
        assert local.test_client().post("/login/passkey", data={"credential": text}).status_code == 401, text[:99]
    for part, size in sizes.items():
        for at in range(0, size, 8):
            for rest in (False, True):
                made = new.create(browser.get("/account/factors").text)
                whole = decoded(made, part)
                sent = whole[:at] + (b"\xff" + whole[at + 1 :] if rest else b"")
                answer = browser.post("/account/factors/passkeys", data={"credential": changed(made, part, sent)})
                if answer.status_code == 303:  # what was changed counts for nothing, such as the id of the model
                    browser.post(f"/account/factors/{sql('SELECT max(id) AS id FROM factors')[0]['id']}/remove")
                else:
                    assert (answer.status_code, "was not accepted" in answer.text) == (401, True), sent
    assert sql(STATE) == before


def test_passkeys_need_a_host_name(console: FlaskClient) -> None:
    confirm(console)
    page = console.get("/account/factors").text
    assert ("Passkeys need a service with a host name" in page, "data-passkey" in page) == (True, False)
