"""Sign-in at an OpenID Connect provider: whom it signs in, and what it changes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.pages import PASSWORD, by_link, is_signed_in, login_path, seen, send, signed_in, words
from tests.support.provider import Browser, Provider

With = Callable[..., Flask]


@pytest.fixture
def having(provider: Provider, app_with: With, app: Flask) -> With:
    """Return the service with the provider and other settings."""
    return lambda **others: app_with(**provider.settings(**others))


def user(sql: Sql, name: str = "dana") -> dict[str, Any]:
    query = "SELECT u.*, p.name AS plan FROM users u LEFT JOIN plans p ON p.id = plan_id WHERE username = %(name)s"
    return dict(next(iter(sql(query, name=name)), {}))


def welcomed(answer: TestResponse) -> bool:
    return (answer.status_code, answer.headers.get("Location")) == (303, "/console")


def refused(answer: TestResponse, status: int, sentence: str) -> bool:
    return answer.status_code == status and sentence in words(answer.text) and "Sign in</h1>" in answer.text


# --- accounts


def test_a_person_gets_an_account_at_the_first_sign_in_and_the_same_one_later(
    having: With, provider: Provider, sql: Sql
) -> None:
    app = having()
    browser = app.test_client()
    assert welcomed(provider.sign_in(browser))
    account = user(sql)
    assert (account["email"], account["password_hash"], account["admin"]) == ("dana@example.org", "", False)
    page = browser.get("/account").text
    assert "Set a password first" not in page
    assert "Connected to <strong><bdi>dana@example.org</bdi></strong>" in page
    sql("UPDATE users SET email = 'own@example.org' RETURNING 1")
    provider.know("dana", email="new@example.org", preferred_username="renamed")
    assert welcomed(provider.sign_in(app.test_client()))
    assert (user(sql)["id"], user(sql)["email"]) == (account["id"], "own@example.org")
    assert [row["name"] for row in sql("SELECT name FROM identities")] == ["new@example.org"]
    provider.know("dana", email="dana@example.org", preferred_username="dana")


def test_of_first_sign_ins_at_once_one_makes_the_account(having: With, provider: Provider, sql: Sql) -> None:
    app, at = having(), Browser()
    browsers = [app.test_client() for _ in range(6)]
    paths = [provider.approve(browser.get("/login/oidc").headers["Location"], at=at) for browser in browsers]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda pair: pair[0].get(pair[1]), zip(browsers, paths, strict=True)))
    while waiting := [place for place, answer in enumerate(answers) if answer.status_code == 503]:  # no free slot
        for place in waiting:
            answers[place] = provider.sign_in(browsers[place])
    assert all(map(welcomed, answers)), [words(answer.text)[-700:] for answer in answers]
    assert len(sql("SELECT FROM users")) == len(sql("SELECT FROM identities")) == 1


@pytest.mark.parametrize(
    ("claims", "names"),
    [
        ({"preferred_username": "alice"}, {"alice-2"}),
        ({"preferred_username": "Jürgen Müller"}, {"Jurgen-Muller"}),
        ({"preferred_username": "李", "email": "li@example.org"}, {"user"}),
        ({"preferred_username": "x" * 80}, {"x" * 40}),
        ({"preferred_username": None, "email": "first.last@example.org"}, {"first.last"}),
        ({"preferred_username": "a\0b", "email": "ab@example.org"}, {"user-ab"}),
        ({"preferred_username": ["a", {}]}, {"frida"}),
    ],
)
def test_the_name_of_an_account_follows_from_that_at_the_provider(
    having: With, provider: Provider, *, alice: Client, sql: Sql, claims: dict[str, Any], names: set[str]
) -> None:
    provider.know("frida", **{"preferred_username": "frida", "email": "frida@example.org"} | claims)
    assert welcomed(provider.sign_in(having().test_client(), "frida"))
    assert {row["username"] for row in sql("SELECT username FROM users WHERE id <> %(id)s", id=alice.id)} == names


@pytest.mark.parametrize(
    ("setting", "claims", "status", "sentence"),
    [
        ("off", {}, 403, "Example SSO knows you, but you have no account here."),
        ("example.com", {}, 403, "you have no account here"),
        ("example.com, example.org", {}, 303, ""),
        ("example.org", {"email": "eve@EXAMPLE.org"}, 303, ""),
        ("example.org", {"email": "eve@sub.example.org"}, 403, "you have no account here"),
        ("example.org", {"email_verified": False}, 403, "you have no account here"),
        ("example.org", {"email_verified": "true"}, 403, "you have no account here"),
        ("on", {"email_verified": False}, 303, ""),
        ("on", {"email": None}, 403, "did not send your e-mail address"),
        ("on", {"email": "no address"}, 400, "email must be a valid e-mail address"),
        ("on", {"email": "x" * 300 + "@example.org"}, 403, "did not send your e-mail address"),
    ],
)
def test_the_setting_decides_who_gets_an_account(
    having: With, provider: Provider, *, sql: Sql, setting: str, claims: dict[str, Any], status: int, sentence: str
) -> None:
    provider.know("eve", **{"email": "eve@example.org", "email_verified": True} | claims)
    answer = provider.sign_in(having(new_accounts=setting).test_client(), "eve")
    assert answer.status_code == status
    assert sentence in words(answer.text)
    assert len(sql("SELECT FROM users")) == (status == 303)


@pytest.mark.parametrize(
    ("setting", "claims", "connects"),
    [
        ("0", {}, False),
        ("1", {}, True),
        ("1", {"email_verified": False}, False),
        ("1", {"email": "a@b.example"}, False),
    ],
)
def test_an_account_is_found_by_a_verified_email_address_only_if_the_setting_says_so(
    having: With, provider: Provider, *, alice: Client, sql: Sql, setting: str, claims: dict[str, Any], connects: bool
) -> None:
    provider.know("al", **{"email": "Alice@example.com", "email_verified": True} | claims)
    browser = having(oidc_match_email=setting, new_accounts="example.com").test_client()
    answer = provider.sign_in(browser, "al")
    assert welcomed(answer) == connects
    assert [row["user_id"] for row in sql("SELECT user_id FROM identities")] == [alice.id] * connects
    if not connects:
        sentence = (
            "An account with the e-mail address Alice@example.com exists." if not claims else "you have no account"
        )
        assert refused(answer, 403, sentence)
        return
    assert PASSWORD, "the password remains"
    assert is_signed_in(signed_in(having()))
    provider.know("mallory", email="alice@example.com")
    assert refused(provider.sign_in(having(oidc_match_email="1").test_client(), "mallory"), 403, "exists.")


# --- groups

GROUPS = "staff=plan:Pro, board=plan:Business, ops=admin, all staff=plan:Nothing"


def test_groups_give_and_take_at_each_sign_in(having: With, provider: Provider, admin: Client, sql: Sql) -> None:
    app = having(oidc_groups=GROUPS)

    def after(groups: Any) -> tuple[str | None, bool]:
        provider.know("gina", groups=groups)
        assert welcomed(provider.sign_in(app.test_client(), "gina"))
        return user(sql, "gina")["plan"], user(sql, "gina")["admin"]

    assert after(None) == (None, False)
    assert after(["staff", "ops", 7, "\0"]) == ("Pro", True)
    version = user(sql, "gina")["version"]
    assert after(["ops", "staff"]) == ("Pro", True)
    assert user(sql, "gina")["version"] == version, "nothing was written"
    assert after("staff") == ("Pro", False)
    assert after(["board", "staff"]) == ("Pro", False), "the first of the setting"
    assert after(["board"]) == ("Business", False)
    assert after(["Staff"]) == (None, False)
    sql("""UPDATE users SET plan_id = p.id, expires = now() + interval '1 day'
             FROM plans p WHERE p.name = 'Pro' AND username = 'gina' RETURNING 1""")  # fmt: skip
    assert after(["staff"]) == ("Pro", False)
    assert user(sql, "gina")["expires"] is None


def test_a_plan_of_no_group_remains_and_one_that_does_not_exist_is_logged(
    having: With, provider: Provider, sql: Sql, caplog: pytest.LogCaptureFixture
) -> None:
    app = having(oidc_groups="staff=plan:Pro, all staff=plan:Nothing, free=plan:Free")
    provider.know("hal", groups=["all staff", "free"])
    assert welcomed(provider.sign_in(app.test_client(), "hal"))
    assert user(sql, "hal")["plan"] is None
    assert "LINKMGR_OIDC_GROUPS: no premium plan is named Nothing, Free" in caplog.text
    sql("UPDATE users SET plan_id = p.id FROM plans p WHERE p.name = 'Business' RETURNING 1")
    assert welcomed(provider.sign_in(app.test_client(), "hal"))
    assert user(sql, "hal")["plan"] == "Business"


def test_the_last_administrator_remains_one_and_suspended_users_stay_suspended(
    having: With, provider: Provider, sql: Sql, caplog: pytest.LogCaptureFixture
) -> None:
    app = having(oidc_groups="ops=admin")
    provider.know("ida", groups=["ops"])
    provider.sign_in(app.test_client(), "ida")
    provider.know("ida", groups=[])
    assert welcomed(provider.sign_in(app.test_client(), "ida"))
    assert user(sql, "ida")["admin"]
    assert "There is no other administrator." in caplog.text
    provider.know("joan", groups=[])
    provider.sign_in(app.test_client(), "joan")
    sql("UPDATE users SET suspended = 'access' WHERE username = 'joan' RETURNING 1")
    provider.know("joan", groups=["ops"])
    browser = app.test_client()
    provider.sign_in(browser, "joan")
    assert "This account is suspended." in browser.get("/account").text
    assert (user(sql, "joan")["admin"], user(sql, "joan")["suspended"]) == (False, "access")


# --- the browser


def test_a_callback_works_once_and_only_in_its_browser(having: With, provider: Provider, sql: Sql) -> None:
    app = having()
    browser, other = app.test_client(), app.test_client()
    path = provider.approve(browser.get("/login/oidc").headers["Location"])
    other.get("/login/oidc")
    for stranger in (other, app.test_client()):
        assert refused(stranger.get(path), 400, "This sign-in was begun in another browser")
    cookie = browser.get_cookie("linkmgr")
    assert cookie
    assert welcomed(browser.get(path))
    assert welcomed(browser.get(path)), "it is signed in, and the code was not sent again"
    thief = app.test_client()
    thief.set_cookie("linkmgr", cookie.value)
    assert refused(thief.get(path), 400, "or it has been used")
    assert len([path for path in provider.requests if path == "/token"]) == 1
    assert len(sql("SELECT FROM sessions")) == 1
    for query in ("", "?state=", "?state=%00&code=%ff", "?code=x", "?error=access_denied"):
        assert refused(app.test_client().get(f"/login/oidc/callback{query}"), 400, "This sign-in was begun")


def test_a_code_that_was_redeemed_is_refused(having: With, provider: Provider) -> None:
    app, at = having(), Browser()
    first, second = app.test_client(), app.test_client()
    used = provider.approve(first.get("/login/oidc").headers["Location"], at=at)
    path = provider.approve(second.get("/login/oidc").headers["Location"], at=at)
    assert welcomed(first.get(used))
    code, state = (name.split("&")[0] for name in (used.split("code=")[1], path.split("state=")[1]))
    assert refused(second.get(f"/login/oidc/callback?code={code}&state={state}"), 400, "or it has been used")


def test_tabs_sign_in_side_by_side_and_the_oldest_of_many_is_forgotten(having: With, provider: Provider) -> None:
    browser, at = having().test_client(), Browser()
    begun = [browser.get("/login/oidc").headers["Location"] for _ in range(6)]
    paths = [provider.approve(url, at=at) for url in begun]
    assert refused(browser.get(paths[0]), 400, "This sign-in was begun")
    assert all(welcomed(browser.get(path)) for path in reversed(paths))
    cookie = browser.get_cookie("linkmgr")
    assert cookie
    assert len(cookie.value) < 1000


def test_a_sign_in_that_takes_longer_than_ten_minutes_is_refused(
    having: With, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = having().test_client()
    path = provider.approve(browser.get("/login/oidc").headers["Location"])
    monkeypatch.setattr("linkmgr.console.sign_in_oidc._SECONDS", -1)
    assert refused(browser.get(path), 400, "more than 10 minutes ago")


def test_a_refusal_of_the_provider_is_told_without_its_words(having: With, provider: Provider) -> None:
    browser = having().test_client()
    state = browser.get("/login/oidc").headers["Location"].split("state=")[1].split("&")[0]
    answer = browser.get(f"/login/oidc/callback?state={state}&error=access_denied&error_description=Call+the+thief")
    assert refused(answer, 403, "Example SSO has not signed you in.")
    assert "thief" not in answer.text


def test_sign_ins_of_an_ip_address_are_limited(
    having: With, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("linkmgr.console.sign_in_oidc._MAX_SIGN_INS", 1)
    app = having()
    assert welcomed(provider.sign_in(app.test_client()))
    answer = provider.sign_in(app.test_client())
    assert refused(answer, 429, "Too many sign-ins from your IP address.")
    assert int(answer.headers["Retry-After"]) > 0


def test_signing_out_ends_the_session_at_the_provider_too(having: With, provider: Provider, sql: Sql) -> None:
    browser, at = having().test_client(), Browser()
    path = provider.approve(browser.get("/login/oidc").headers["Location"], at=at)
    browser.get(path)
    assert "id_token" not in str(sql("SELECT id_token FROM sessions")[0]["id_token"]).split(".")
    answer = browser.post("/account/sign-out")
    assert "Signing you out of Example SSO" in answer.text
    url = answer.headers["Refresh"].removeprefix("0; url=")
    assert (provider.issuer in url, "id_token_hint=ey" in url) == (True, True)
    assert not is_signed_in(browser)
    assert "You have been signed out." in browser.get("/login").text
    _, page = at.request(url)
    [secret] = {part.split('"')[0] for part in page.split('name="xsrf" value="')[1:]}
    back, _ = at.request(f"{provider.issuer}/session/end/confirm", {"xsrf": secret, "logout": "yes"})
    assert back
    assert back.startswith("http://127.0.0.1:5000/login")
    assert signed_out_locally(having(), provider)


def signed_out_locally(app: Flask, provider: Provider) -> bool:
    """Return True if a provider without such a URL changes nothing."""
    provider.forget()
    provider.changes["/openid-configuration"] = lambda answer: (
        answer[0],
        answer[1].replace(b"end_session_endpoint", b"x"),
    )
    browser = app.test_client()
    provider.sign_in(browser)
    return browser.post("/account/sign-out").headers.get("Location") == "/login"


# --- the account page


def continued(page: TestResponse) -> str:
    assert page.status_code == 200, page.text
    assert "Continue at Example SSO" in page.text
    return page.headers["Refresh"].removeprefix("0; url=")


def test_a_user_connects_an_account_at_the_provider_and_disconnects_it(
    having: With, provider: Provider, alice: Client, bob: Client, sql: Sql
) -> None:
    app = having(new_accounts="off")
    console = signed_in(app)
    wrong = console.post("/account/identity/connect", data={"current_password": "wrong"})
    assert (wrong.status_code, "Your current password is wrong." in wrong.text) == (400, True)
    url = continued(console.post("/account/identity/connect", data={"current_password": PASSWORD}))
    path = provider.approve(url, "al.work")
    assert refused(signed_in(app, "bob@example.com").get(path, follow_redirects=True), 400, "") is False
    assert sql("SELECT FROM identities") == [], "another browser"
    assert console.get(path).headers["Location"] == "/account"
    page = console.get("/account").text
    assert ("You can now sign in with Example SSO." in page, "al.work@example.org</bdi>" in page) == (True, True)
    browser = app.test_client()
    assert welcomed(provider.sign_in(browser, "al.work"))
    assert "alice@example.com" in browser.get("/account").text
    other = signed_in(app, "bob@example.com")
    url = continued(other.post("/account/identity/connect", data={"current_password": PASSWORD}))
    other.get(provider.approve(url, "al.work"))
    assert "is connected to another account here" in other.get("/account").text
    assert "Your current password is wrong." in send(console, "/account/identity/disconnect", current_password="no")
    ended = send(console, "/account/identity/disconnect", current_password=PASSWORD)
    assert "You no longer sign in with Example SSO." in ended
    assert refused(provider.sign_in(app.test_client(), "al.work"), 403, "you have no account here")


def test_the_user_gets_a_message_about_a_connected_and_a_disconnected_account(
    having: With, provider: Provider, alice: Client, sql: Sql
) -> None:
    console = signed_in(having(mail_url="smtp://127.0.0.1:9", mail_from="Links <links@example.org>"))
    messages = "SELECT FROM jobs WHERE argument ->> 'message' = 'account_changed'"
    for form, number in (("connect", 1), ("connect", 1), ("disconnect", 2)):
        answer = console.post(f"/account/identity/{form}", data={"current_password": PASSWORD})
        if form == "connect":
            console.get(provider.approve(continued(answer), "al.work"))
        assert len(sql(messages)) == number, "the second time, it was connected before"


def confirm(browser: FlaskClient, provider: Provider, name: str = "dana") -> TestResponse:
    url = continued(browser.post("/account/identity/confirm", data={"next": "/account/factors"}))
    assert "max_age=0" in url
    return browser.get(provider.approve(url, name))


def test_the_only_way_to_sign_in_cannot_be_disconnected(having: With, provider: Provider, sql: Sql) -> None:
    browser = having().test_client()
    provider.sign_in(browser)
    confirm(browser, provider)
    assert "This is the only way for you to sign in." in send(browser, "/account/identity/disconnect")
    assert "Your password has been set." in send(browser, "/account/password", password="vast heron lamp")
    sql("UPDATE sessions SET confirmed = NULL RETURNING 1")
    assert "You no longer sign in" in send(browser, "/account/identity/disconnect", current_password="vast heron lamp")
    assert sql("SELECT FROM identities") == []


def test_without_a_password_another_sign_in_at_the_provider_confirms(having: With, provider: Provider) -> None:
    browser = having().test_client()
    provider.sign_in(browser)
    fields = {"email": {"email": "x@example.org"}, "password": {"password": "vast heron lamp"}}
    for path in ("key", "key/replace", "email", "password", "identity/disconnect"):
        assert "Confirm that it is you" in send(browser, f"/account/{path}", **fields.get(path, {}))
    assert confirm(browser, provider).location == "/account/factors"
    assert 'id="api-key">linkmgr_' in browser.post("/account/key").text


def test_another_person_at_the_provider_confirms_nothing(having: With, provider: Provider) -> None:
    browser = having().test_client()
    provider.sign_in(browser)
    assert "with another account than the one" in confirm(browser, provider, "mallory").text
    assert browser.post("/account/key").status_code == 400


def test_an_administrator_who_must_set_up_a_factor_confirms_at_the_provider(
    having: With, provider: Provider, admin: Client, sql: Sql
) -> None:
    browser = having(admin_factor="1").test_client()
    provider.sign_in(browser)
    sql("UPDATE users SET admin = true WHERE username = 'dana' RETURNING 1")
    assert browser.get("/console/administration").location == "/account/factors"
    assert confirm(browser, provider).location == "/account/factors"
    assert browser.post("/account/factors/codes").status_code == 200
    assert browser.post("/account/identity/connect").location == "/account/factors"


def test_a_user_with_a_passkey_disconnects_the_account_at_the_provider(
    having: With, provider: Provider, sql: Sql
) -> None:
    browser = having().test_client()
    provider.sign_in(browser)
    confirm(browser, provider)
    sql("""INSERT INTO factors (user_id, method, credential, public_key, counter)
           SELECT id, 'passkey', '1', '1', 0 FROM users WHERE username = 'dana' RETURNING 1""")
    assert "You no longer sign in with" in send(browser, "/account/identity/disconnect")
    assert sql("SELECT FROM identities") == []


def test_connections_are_in_the_audit_trail(having: With, provider: Provider, alice: Client, sql: Sql) -> None:
    sql("UPDATE users SET admin = true RETURNING 1")
    console = signed_in(having())
    url = continued(console.post("/account/identity/connect", data={"current_password": PASSWORD}))
    console.get(provider.approve(url))
    send(console, "/account/identity/disconnect", current_password=PASSWORD)
    noted = sql("SELECT data FROM outbox WHERE data -> 'changes' ? 'identity'")
    assert {row["data"]["id"] for row in noted} == {alice.id}
    assert len(noted) == 2 * len(sql("SELECT FROM auditors"))


# --- passwords


def test_passwords_can_be_turned_off(
    having: With, provider: Provider, *, alice: Client, admin: Client, bob: Client, sql: Sql
) -> None:
    app = having(passwords="0")
    page = app.test_client().get("/login").text
    assert ('name="password"' in page, 'href="/login/oidc">Sign in with Example SSO' in page) == (False, True)
    answer = app.test_client().post("/login", data={"email": "alice@example.com", "password": PASSWORD})
    assert (answer.status_code, "This service has no passwords." in answer.text) == (403, True)
    sql("UPDATE users SET password_hash = '' WHERE username = 'alice' RETURNING 1")
    console = by_link(app, admin, alice)
    assert console.get("/console").status_code == 200, "nothing asks for a password"
    page = console.get("/account").text
    assert 'type="password"' not in page
    assert "Set a password" not in page + console.get("/console").text
    assert console.post("/account/password", data={"password": "a long password"}).status_code == 403
    assert "linkmgr_" in console.post("/account/key").text
    admins = app.test_client()
    admins.post(login_path(bob_as_admin(sql, bob, admin), admin))
    assert 'name="password"' not in admins.get("/console/administration/users/new").text
    new = {"username": "carol", "email": "carol@example.com", "password": "a long password"}
    refused_page = admins.post("/console/administration/users/new", data=new)
    assert (refused_page.status_code, "This service has no passwords." in refused_page.text) == (400, True)
    made = admins.post("/console/administration/users/new", data=new | {"password": ""}, follow_redirects=True)
    assert "/login/" in made.text


def test_without_passwords_no_page_speaks_of_one(having: With, provider: Provider) -> None:
    browser = having(passwords="0").test_client()
    provider.sign_in(browser)
    confirm(browser, provider)
    sentence = "This is the only way for you to sign in. Add a passkey first."
    assert sentence in send(browser, "/account/identity/disconnect")
    assert "password" not in seen(browser.get("/account/factors").text).lower()
    assert "password" not in seen(browser.get("/login/passkey").text).lower()


def test_an_invitation_says_how_to_get_an_account(having: With, alice: Client, app: Flask) -> None:
    invited = alice.post("/api/member/add", {"email": "erin@example.com", "role": "viewer"}).get_json()
    path = urlsplit(invited["url"]).path
    for allowed, is_welcome in (("on", True), ("example.com", True), ("example.org", False), ("off", False)):
        page = seen(having(new_accounts=allowed).test_client().get(path).text)
        assert ("choose \u201cSign in with Example SSO\u201d, which makes one" in page) == is_welcome, allowed
        assert ("ask an administrator for one" in page) != is_welcome
    assert "ask an administrator for one" in seen(app.test_client().get(path).text)


@pytest.mark.parametrize("features", [None, ("-signin",)])
def test_a_password_of_before_confirms_nothing_without_passwords(
    make_app: With, alice: Client, admin: Client, sql: Sql, features: tuple[str, ...] | None
) -> None:
    app = make_app(features, passwords="0")
    console = by_link(app, admin, alice)
    sql("UPDATE sessions SET created = created - interval '1 hour' RETURNING 1")
    for path in ("/account", "/console/keys/new", "/console/members/new"):
        assert 'type="password"' not in console.get(path).text
        assert console.get(path).status_code == 200
    status = console.post("/account/confirm", data={"current_password": PASSWORD}).status_code
    assert status == (404 if features else 400)
    answer = console.post("/account/key", data={"current_password": PASSWORD})
    assert (answer.status_code, "linkmgr_" in answer.text.replace("linkmgr_•", "")) == (400, False)


def bob_as_admin(sql: Sql, bob: Client, _admin: Client) -> Client:
    """Return an administrator who can make a sign-in link for the other one."""
    sql("UPDATE users SET admin = true WHERE username = 'bob' RETURNING 1")
    return bob


def test_a_user_with_no_way_to_sign_in_must_still_set_a_password(
    having: With, provider: Provider, admin: Client, alice: Client, sql: Sql
) -> None:
    sql("UPDATE users SET password_hash = '' WHERE username = 'alice' RETURNING 1")
    console = by_link(having(), admin, alice)
    assert console.get("/console").headers["Location"] == "/account"
    assert "Set a password first" in console.get("/account").text


# --- without a provider


def test_without_a_provider_the_sign_in_page_is_that_of_before(app: Flask, app_with: With, provider: Provider) -> None:
    pages = [served.test_client().get("/login").data for served in (app, app_with(oidc_name="Unused"))]
    pages.append(
        app_with(**{"oidc_issuer": provider.issuer, "features": None, "oidc_client_id": "x"})
        .test_client()
        .get("/login")
        .data
    )
    assert pages[0] == pages[1] != pages[2]
    assert b"/login/oidc" not in pages[0]
    assert app.test_client().get("/login/oidc").status_code == 410, "a sign-in link that does not exist"
    left_out = app_with(features=("-signin",), **provider.settings())
    assert left_out.test_client().get("/login").data == pages[0]
