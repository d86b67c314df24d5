"""The pages of administrators: the service, users and plans."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.core.settings import settings
from linkmgr.schemas.plans import COUNTED, NUMBERS, SWITCHED, UNLIMITED
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import PASSWORD, console_rules, fields, get, message, signed_in, words
from tests.support.visited import Store, Visited

ROOT = "/console/administration"
CAROL = {"username": "carol", "email": "carol@example.com", "current_password": PASSWORD}


@pytest.fixture
def browser(app: Flask, admin: Client) -> FlaskClient:
    """A browser of the administrator."""
    return signed_in(app, "admin@example.com")


def test_other_users_reach_no_page_of_administrators(app: Flask, admin: Client, alice: Client, sql: Sql) -> None:
    alices = signed_in(app)
    assert "administration" not in get(alices, "/console")
    before = sql("SELECT * FROM users"), sql("SELECT * FROM plans ORDER BY id")
    rules = [(method, rule) for method, rule in console_rules(app) if rule.startswith(ROOT)]
    assert len(rules) >= 14
    for method, rule in rules:
        answer = alices.open(re.sub("<id:[a-z_]+>", str(alice.id), rule), method=method, data={"name": "alice"})
        assert answer.status_code == 403, rule
        assert "Only administrators can open this page." in answer.text
    assert (sql("SELECT * FROM users"), sql("SELECT * FROM plans ORDER BY id")) == before
    assert sql("SELECT 1 FROM sessions WHERE is_link") == []


@pytest.mark.usefixtures("admin")
def test_the_state_of_the_service_is_shown_without_secrets(
    make_app: Callable[..., Flask], tmp_path: Path, alice: Client, sql: Sql, store: Store
) -> None:
    # A folder without visits of other tests
    app = make_app(data_dir=str(tmp_path), respect_dnt="1", private_networks="10.0.0.0/8,fd00::/8")
    browser = signed_in(app, "admin@example.com")
    link_id = factories.link(sql, alice.id)
    store([Visited(link_id, datetime.now(UTC))])
    sql("INSERT INTO jobs (task, argument, attempts, due) VALUES ('unknown', '{}', 5, 'infinity') RETURNING id")
    page = words(get(browser, ROOT))
    sql("DELETE FROM jobs RETURNING id")
    assert "1 visit in the last 30 minutes" in page
    figures = dict(re.findall(r"<dt>([^<]+)</dt><dd[^>]*>([^<]*)</dd>", page))
    assert (figures["Users"], figures["Links"], figures["Visits waiting"]) == ("2", "1", "0")
    assert (figures["Jobs waiting"], figures["Jobs that fail"]) == ("1", "1")
    assert "the oldest since just now" in page
    assert re.fullmatch(r"[0-9.]+ [KMG]iB", figures["Database"])
    with app.app_context():
        assert settings().database_url not in page
        assert settings().base_url in page
    assert re.search(r"LINKMGR_DATABASE_URL</code></th><td><bdi>set<", page)
    assert re.search(r'LINKMGR_METRICS_TOKEN</code></th><td><bdi class="muted">not set<', page)
    assert re.search(r"LINKMGR_RESPECT_DNT</code></th><td><bdi>1<", page)
    networks = page.split("LINKMGR_PRIVATE_NETWORKS</code>")[1].split("</tr>")[0]
    assert "<bdi>10.0.0.0/8, fd00::/8</bdi>" in networks
    assert "Networks that webhooks, imports and checks" in networks
    assert "Default" not in networks
    assert "Default: 30 per minute." in page
    assert "Change them in /etc/linkmgr/environment" in page


def test_users_are_found_by_a_part_of_their_name_or_address(
    browser: FlaskClient, admin: Client, register: Callable[..., Client]
) -> None:
    for number in range(26):
        register(f"user{number}")
    answer = browser.get(f"{ROOT}/users")
    assert "1 to 25 of 27" in answer.text
    assert "connect-src 'self'" in answer.headers["Content-Security-Policy"], "the list follows what one types"
    assert "26 to 27 of 27" in get(browser, f"{ROOT}/users?page=2")
    found = get(browser, f"{ROOT}/users?q=SER7@example")
    assert re.findall(r'class="short" href="[^"]+">([^<]+)<', found) == ["user7"]
    assert "No user has this text" in get(browser, f"{ROOT}/users?q=nobody")


def test_a_user_is_created_and_let_in_with_a_link_to_set_a_password(app: Flask, browser: FlaskClient, sql: Sql) -> None:
    page = browser.post(f"{ROOT}/users/new", data=CAROL)
    assert "User created." in page.text
    [link] = re.findall(r'id="login-link">([^<]+)<', page.text)
    assert page.headers["Cache-Control"] == "no-store"
    assert link not in get(browser, f"{ROOT}/users")
    token = link.rsplit("/", 1)[1]
    carols = app.test_client()
    assert carols.post(f"/login/{token}").headers["Location"].endswith("/console")
    assert carols.get("/console").headers["Location"] == "/account"
    sql("UPDATE sessions SET created = now() - interval '2 days' WHERE by_link RETURNING 1")
    assert carols.get("/console/links").headers["Location"] == "/account"
    assert "Set a password first" in get(carols, "/account")
    for password in ("", "nothing"):
        assert app.test_client().post("/login", data={"email": "carol", "password": password}).status_code == 401
    answer = carols.post("/account/password", data={"password": "correct horse"})
    assert answer.headers["Location"] == "/console"
    assert carols.get("/console").status_code == 200
    assert carols.post("/account/password", data={"password": "another horse"}).status_code == 400
    signed_in(app, "carol@example.com")


def test_a_user_who_is_created_with_a_password_gets_no_link(app: Flask, browser: FlaskClient) -> None:
    answer = browser.post(f"{ROOT}/users/new", data=CAROL | {"password": "correct horse"})
    assert answer.status_code == 303
    assert "login-link" not in get(browser, answer.headers["Location"])
    signed_in(app, "carol@example.com", "correct horse")


def test_what_was_typed_of_a_new_user_survives_a_refusal(browser: FlaskClient, sql: Sql) -> None:
    [plan] = sql("SELECT id FROM plans WHERE name = 'Pro'")
    typed = CAROL | {
        "password": "correct horse",
        "planid": str(plan["id"]),
        "expiration": "2030-01-01T00:00",
        "admin": "1",
    }
    for wrong in ({"current_password": "wrong"}, {"username": "a b"}, {"username": "admin"}):
        page = browser.post(f"{ROOT}/users/new", data=typed | wrong)
        assert page.status_code == 400
        kept = {name: values[0] for name, values in fields(page.text).items()}
        assert kept == typed | wrong | {"current_password": ""}


def test_an_unattended_browser_of_an_administrator_grants_no_access(
    browser: FlaskClient, admin: Client, alice: Client, sql: Sql
) -> None:
    sql("UPDATE users SET admin = true WHERE id = %(id)s RETURNING id", id=alice.id)
    own = browser.post(f"{ROOT}/users/{admin.id}/login", data={"current_password": PASSWORD})
    assert own.status_code == 403
    assert "sign-in link for yourself" in own.text
    assert "Create sign-in link" not in get(browser, f"{ROOT}/users/{admin.id}")
    for password in ("", "wrong"):
        refused = browser.post(f"{ROOT}/users/{alice.id}/login", data={"current_password": password})
        assert message(refused.text, "current_password") == "Your current password is wrong."
        assert browser.post(f"{ROOT}/users/new", data=CAROL | {"current_password": password}).status_code == 400
    assert sql("SELECT 1 FROM sessions WHERE is_link UNION ALL SELECT 1 FROM users WHERE username = 'carol'") == []
    page = browser.post(f"{ROOT}/users/{alice.id}/login", data={"current_password": PASSWORD})
    assert "/login/" in page.text


def test_the_plan_of_a_user_is_changed(browser: FlaskClient, alice: Client, sql: Sql) -> None:
    plans = {row["name"]: row["id"] for row in sql("SELECT id, name FROM plans")}
    path = f"{ROOT}/users/{alice.id}"
    assert re.findall('value="([^"]*)" selected>Choose a', get(browser, path)) == ["", ""]
    for form, shown in (
        (
            {"plan": plans["Pro"], "type": "monthly", "expiration": "2030-05-06T07:08"},
            "Expires on May 6, 2030, 07:08 UTC",
        ),
        ({"plan": plans["Free"], "type": "lifetime", "expiration": ""}, "Plan: Free"),
    ):
        assert browser.post(f"{path}/plan", data=form).status_code == 303
        assert shown in get(browser, path)
    assert browser.post(f"{path}/plan", data=form | {"expiration": "2001-01-01T00:00:00"}).status_code == 303
    assert "expiration is in the past, so the user has the free plan." in get(browser, path)


def test_a_user_is_deleted_only_after_the_name_was_typed(
    browser: FlaskClient, admin: Client, alice: Client, sql: Sql
) -> None:
    factories.link(sql, alice.id)
    path = f"{ROOT}/users/{alice.id}/delete"
    assert "all links and everything else" in words(get(browser, path))
    answer = browser.post(path, data={"typed": "Alice"})
    assert (answer.status_code, message(answer.text, "typed")) == (400, "Type alice to delete this user.")
    assert browser.post(path, data={"typed": "alice"}).status_code == 303
    assert [row["username"] for row in sql("SELECT username FROM users")] == ["admin"]
    assert "User deleted." in get(browser, f"{ROOT}/users")
    answer = browser.post(f"{ROOT}/users/{admin.id}/delete", data={"typed": "admin"})
    assert (answer.status_code, message(answer.text, "typed")) == (
        400,
        "You cannot delete your own account. Ask another administrator.",
    )


@pytest.mark.parametrize("path", ["", "/delete"])
def test_a_user_who_does_not_exist_is_a_404(browser: FlaskClient, path: str) -> None:
    assert browser.get(f"{ROOT}/users/{2**62}{path}").status_code == 404
    assert browser.post(f"{ROOT}/users/{2**62}/login").status_code == 404
    assert browser.post(f"{ROOT}/users/{2**62}/plan", data={"plan": "1", "type": "monthly"}).status_code == 404


def as_form(limits: dict[str, Any]) -> dict[str, str]:
    form = {name: str(limits[name]) for name in NUMBERS}
    form |= {f"{name}.enabled": "1" for name in (*COUNTED, *SWITCHED) if limits[name]["enabled"] == "1"}
    return form | {f"{name}.count": limits[name]["count"] for name in COUNTED}


@pytest.fixture
def plans(sql: Sql) -> Any:
    """Remove the plans that a test adds, and undo its changes."""
    before = sql("SELECT id, name, monthly::text, rate, limits FROM plans ORDER BY id")
    yield before
    sql("DELETE FROM plans WHERE id <> ALL (%(ids)s::bigint[]) RETURNING id", ids=[row["id"] for row in before])
    for row in before:
        limits = json.dumps(row["limits"])
        sql(
            "UPDATE plans SET rate = %(rate)s, limits = %(limits)s WHERE id = %(id)s RETURNING id",
            **row | {"limits": limits},
        )


def test_users_without_a_plan_count_under_the_free_one(browser: FlaskClient, alice: Client, sql: Sql) -> None:
    sql("UPDATE users SET plan_id = NULL RETURNING id")
    page = words(get(browser, f"{ROOT}/plans"))
    assert re.search(r"<bdi>Free</bdi>.*?2 users", page)
    assert "status 429, whose message names the limit" in page
    assert "the default of the service, 1000000 per minute, which the setting LINKMGR_RATE_LIMIT changes" in page


def test_a_plan_is_created_and_changed(browser: FlaskClient, sql: Sql, plans: Any) -> None:
    limits = UNLIMITED | {"links": 5, "pixels": {"enabled": "1", "count": "7"}, "alias": {"enabled": "0"}}
    form = {"name": "Team <b>", "monthly": "4.50", "rate": "1000000"} | as_form(limits)
    assert browser.post(f"{ROOT}/plans/new", data=form).status_code == 303
    page = get(browser, f"{ROOT}/plans")
    assert "Plan created." in page
    assert "Team &lt;b&gt;" in page
    [row] = sql("SELECT * FROM plans WHERE name = 'Team <b>'")
    assert (float(row["monthly"]), float(row["yearly"]), row["rate"], row["free"]) == (4.5, 0, 1_000_000, False)
    assert row["limits"] == limits
    path = f"{ROOT}/plans/{row['id']}/edit"
    assert 'value="4.5"' in get(browser, path)
    changed = {"name": "Crew", "rate": ""} | as_form(limits | {"links": 0})
    assert browser.post(path, data=changed).status_code == 303
    [row] = sql("SELECT * FROM plans WHERE name = 'Crew'")
    assert (float(row["monthly"]), row["rate"], row["limits"]["links"]) == (0, None, 0)


REFUSED: list[tuple[str, dict[str, str], str, str]] = [  # the path and typed text, the field and its message
    ("users/new", {"username": "ALICE"}, "username", "already in use"),
    ("users/new", {"email": "alice@example.com"}, "email", "already in use"),
    ("users/new", {"planid": "99"}, "planid", "Plan must be the id of a premium plan."),
    ("users/new", {"planid": "9" * 5000}, "planid", "Plan must be an integer."),
    ("users/{}/plan", {"plan": "99"}, "plan", "New plan must be one of the plans."),
    ("users/{}/plan", {"plan": "9" * 5000}, "plan", "New plan must be one of the plans."),
    ("users/{}/plan", {"type": "weekly"}, "type", "Duration must be one of monthly, yearly, lifetime."),
    ("plans/new", {"name": ""}, "name", "Name is required."),
    ("plans/new", {"name": "Pro"}, "name", "A plan with this name already exists."),
    ("plans/new", {"monthly": "1,5"}, "monthly", "Price per month must be a price such as"),
    ("plans/new", {"rate": "many"}, "rate", "API requests per minute must be a number"),
    ("plans/new", {"retention": "9" * 5000}, "retention", "Retention in days must be an integer"),
    ("plans/new", {"pixels.count": "x"}, "pixels", "Pixels count must be"),
    ("plans/new", {"free": "1", "yearly": "5"}, "free", "A free plan has no prices."),
]


@pytest.mark.parametrize(("path", "typed", "field", "text"), REFUSED)
def test_a_refused_form_changes_nothing_and_has_the_message_beside_the_field(
    *, browser: FlaskClient, alice: Client, sql: Sql, path: str, typed: dict[str, str], field: str, text: str
) -> None:
    [pro] = sql("SELECT id FROM plans WHERE name = 'Pro'")
    form = {
        "users/new": CAROL,
        "users/{}/plan": {"plan": str(pro["id"]), "type": "monthly", "expiration": ""},
        "plans/new": {"name": "Team"} | as_form(UNLIMITED),
    }[path]
    before = sql("SELECT * FROM users ORDER BY id"), sql("SELECT * FROM plans ORDER BY id")
    answer = browser.post(f"{ROOT}/{path.format(alice.id)}", data=form | typed)
    assert answer.status_code == 400
    assert text in message(answer.text, field)
    if path == "users/{}/plan":
        selected = [] if field == "type" else ["monthly"]
        assert re.findall(r'value="(\w+ly)" selected', answer.text) == selected
    assert (sql("SELECT * FROM users ORDER BY id"), sql("SELECT * FROM plans ORDER BY id")) == before


def test_an_unchanged_form_changes_no_plan(browser: FlaskClient, sql: Sql, plans: Any) -> None:
    before = sql("SELECT * FROM plans ORDER BY id")
    for row in before:
        form = {name: str(row[name]) for name in ("name", "monthly", "yearly", "lifetime")} | as_form(row["limits"])
        form["rate"] = str(row["rate"] or "")
        assert browser.post(f"{ROOT}/plans/{row['id']}/edit", data=form).status_code == 303
    assert sql("SELECT * FROM plans ORDER BY id") == before
    assert browser.get(f"{ROOT}/plans/99/edit").status_code == 404
