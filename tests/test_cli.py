"""The command line: users, keys and plans. Every error is one sentence and a non-zero exit status."""

import json
import re
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result
from flask import Flask
from flask.cli import ScriptInfo

from linkmgr.__main__ import main
from tests.conftest import BASE_URL, Client
from tests.support.pages import PASSWORD

Flaskline = Callable[..., Result]


@pytest.fixture
def flask(app: Flask) -> Flaskline:
    return lambda *arguments: app.test_cli_runner().invoke(args=arguments)


@pytest.fixture
def plan(flask: Flaskline) -> Callable[..., str]:
    """Add a plan and return its id."""

    def add(*options: str) -> str:
        return str(re.findall(r"\d+", flask("plans", "add", "Tiny", *options).output)[-1])

    return add


def stored(flask: Flaskline, plan_id: str) -> dict[str, object]:
    plans = [json.loads(line) for line in flask("plans", "list").output.splitlines()]
    return next(each for each in plans if each["id"] == int(plan_id))


def refused(result: Result, sentence: str) -> None:
    assert result.exit_code != 0
    assert sentence in result.output
    assert re.search(r"[^.]\.\Z", result.output.rstrip())
    assert "Traceback" not in result.output


def test_the_first_administrator_is_created_and_uses_the_key(app: Flask, flask: Flaskline) -> None:
    added = flask("users", "add", "root", "root@example.com", "--admin")
    assert added.exit_code == 0
    assert re.fullmatch(r"root has been registered\. Password: \S{43}\n", added.output)
    key = flask("users", "key", "root")
    assert re.fullmatch(r"linkmgr_\S{43}\n", key.output)
    assert Client(app.test_client(), key.output.strip()).get("/api/users").status_code == 200


def test_a_user_can_be_added_on_a_premium_plan(flask: Flaskline, plan: Callable[..., str], admin: Client) -> None:
    plan_id = plan("--monthly", "5")
    assert flask("users", "add", "carol", "carol@example.com", "--plan", plan_id).exit_code == 0
    [carol] = admin.get("/api/users?email=carol").get_json()["data"]
    assert (carol["status"], carol["planid"]) == ("pro", int(plan_id))


def test_a_rotated_key_replaces_the_old_one(flask: Flaskline, alice: Client) -> None:
    new = flask("users", "key", "ALICE", "--rotate").output.strip()
    assert new != alice.key
    assert alice.get("/api/account").status_code == 401
    assert Client(alice.http, new).get("/api/account").status_code == 200


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["users", "add", "alice", "other@example.com"], "This username is already in use."),
        (["users", "add", "other", "ALICE@example.com"], "This e-mail address is already in use."),
        (["users", "add", "a b", "other@example.com"], "username must be"),
        (["users", "add", "other", "o@example.com", "--plan", "1"], "no premium plan with id 1: see 'plans list'."),
        (["users", "add", "other", "o@example.com", "--plan", "9" * 30], "is not in the range 1<=x<=92233720368547758"),
        (["users", "add", "other", "o@example.com", "--plan", "gold"], "'gold' is not a valid integer range."),
        (["users", "key", "nobody"], "There is no user named 'nobody'. 'users list' prints all names."),
        (["users", "delete", "nobody"], "There is no user named 'nobody'. 'users list' prints all names."),
        (["users", "key", "\udcff"], "An argument or the standard input is not UTF-8."),
        (["plans", "add", "Pro"], "A plan with this name already exists. Choose another name."),
        (["plans", "add", ""], "name must not be empty."),
        (["plans", "add", "Gratis", "--free", "--monthly", "5"], "A free plan has no prices."),
        (["plans", "edit", "999999", "--monthly", "5"], "There is no plan with this id."),
        (["plans", "edit", "1"], "Nothing to change: use at least one option."),
        (["plans", "edit", "1", "--monthly", "cheap"], "monthly must be a price such as 5 or 49.99."),
        (["plans", "edit", "9" * 30], "is not in the range 1<=x<=9223372036854775807."),
    ],
)
def test_an_error_is_one_sentence(flask: Flaskline, alice: Client, arguments: list[str], sentence: str) -> None:
    refused(flask(*arguments), sentence)


def test_the_package_runs_the_same_commands_with_its_own_help(app: Flask, flask: Flaskline) -> None:
    assert "Administer linkmgr" in CliRunner().invoke(main, ["--help"]).output
    plans = CliRunner().invoke(main, ["plans", "list"], obj=ScriptInfo(create_app=lambda: app))
    assert plans.output == flask("plans", "list").output


def test_a_key_of_another_secret_is_one_sentence(make_app: Callable[..., Flask], alice: Client) -> None:
    runner = make_app(secret_key="another" * 5).test_cli_runner()
    refused(runner.invoke(args=["users", "key", "alice"]), "The API key was encrypted with another secret")
    assert runner.invoke(args=["users", "key", "alice", "--rotate"]).exit_code == 0


def test_an_unavailable_database_is_one_sentence(make_app: Callable[..., Flask]) -> None:
    runner = make_app(database_url="postgresql://127.0.0.1:1/none").test_cli_runner()
    for command in (["users", "key", "alice"], ["database", "check"]):
        refused(runner.invoke(args=command), "The database cannot be used: connection")


def test_a_plan_starts_without_limits(flask: Flaskline, plan: Callable[..., str]) -> None:
    found = stored(flask, plan("--monthly", "5", "--yearly", "49.99", "--rate", "60"))
    assert found["prices"] == {"monthly": 5, "yearly": 49.99, "lifetime": 0}
    assert (found["name"], found["free"]) == ("Tiny", False)
    limits = found["limits"]
    assert isinstance(limits, dict)
    assert (limits["links"], limits["pixels"], limits["api"]) == (0, {"enabled": "1", "count": "0"}, {"enabled": "1"})


def test_an_edit_changes_only_the_given_options(flask: Flaskline, plan: Callable[..., str]) -> None:
    plan_id = plan("--monthly", "5")
    before = stored(flask, plan_id)
    changes = ["--name", "Small", "--yearly", "50", "--limits", '{"pixels": {"enabled": "1", "count": "2"}}']
    assert flask("plans", "edit", plan_id, *changes).output == f"Plan {plan_id} has been changed.\n"
    after = stored(flask, plan_id)
    assert isinstance(before["limits"], dict)
    assert after == before | {
        "name": "Small",
        "prices": {"monthly": 5, "yearly": 50, "lifetime": 0},
        "limits": before["limits"] | {"pixels": {"enabled": "1", "count": "2"}},
    }


def test_a_free_plan_gets_no_prices(flask: Flaskline, plan: Callable[..., str]) -> None:
    plan_id = plan("--free")
    before = stored(flask, plan_id)
    refused(flask("plans", "edit", plan_id, "--name", "Other", "--monthly", "5"), "A free plan has no prices.")
    assert stored(flask, plan_id) == before


@pytest.mark.parametrize(
    "limits",
    [
        "no json",
        "[]",
        "[" * 100_000,
        '{"links": null}',
        '{"links": "5"}',
        '{"links": -1}',
        '{"links": 2147483648}',
        '{"links": NaN}',
        '{"pixels": {"enabled": "1"}}',
        '{"pixels": {"enabled": "1", "count": 5}}',
        '{"pixels": {"enabled": "1", "count": ""}}',
        '{"pixels": {"enabled": "1", "count": "9999999999"}}',
        '{"pixels": {"enabled": true, "count": "5"}}',
        '{"pixels": null}',
        '{"pixels": []}',
        '{"api": {"enabled": "1", "count": "5"}}',
        '{"rockets": {"enabled": "1"}}',
    ],
)
def test_invalid_limits_are_rejected(flask: Flaskline, plan: Callable[..., str], limits: str) -> None:
    plan_id = plan()
    before = stored(flask, plan_id)
    refused(flask("plans", "edit", plan_id, "--limits", limits), "")
    refused(flask("plans", "add", "Other", "--limits", limits), "")
    assert stored(flask, plan_id) == before


@pytest.mark.parametrize(
    ("option", "value"),
    [("--monthly", "nan"), ("--yearly", "inf"), ("--lifetime", "-1"), ("--monthly", "1e9"), ("--rate", "9999999999"),
     ("--rate", "-1"), ("--yearly", "five")],
)  # fmt: skip
def test_invalid_numbers_of_a_plan_are_rejected(
    flask: Flaskline, plan: Callable[..., str], option: str, value: str
) -> None:
    plan_id = plan()
    before = stored(flask, plan_id)
    result = flask("plans", "edit", plan_id, f"{option}={value}")
    refused(result, f"Error: {option[2:]} must be a ")
    assert stored(flask, plan_id) == before


def test_a_plans_own_rate_can_be_set_and_removed(
    flask: Flaskline, plan: Callable[..., str], register: Callable[..., Client]
) -> None:
    plan_id = plan("--rate", "60")
    carol = register("carol", plan="Tiny")
    assert carol.get("/api/account").headers["X-RateLimit-Limit"] == "60"
    assert flask("plans", "edit", plan_id, "--rate", "0").exit_code == 0
    assert carol.get("/api/account").headers["X-RateLimit-Limit"] == "1000000"


def test_a_login_link_signs_in_once(app: Flask, flask: Flaskline, alice: Client) -> None:
    printed = flask("users", "login", "Alice")
    assert re.fullmatch(rf"{BASE_URL}/login/\S{{43}}\n", printed.stdout)
    browser, path = app.test_client(), printed.stdout.strip().removeprefix(BASE_URL)
    assert browser.post(path).status_code == 303
    assert "alice@example.com" in browser.get("/account").text
    assert app.test_client().post(path).status_code == 410


def test_all_users_are_listed_without_their_keys(flask: Flaskline, admin: Client, alice: Client) -> None:
    lines = flask("users", "list").stdout.splitlines()
    assert [line.split()[:5] for line in lines] == [
        ["id", "name", "e-mail", "status", "plan"],
        [str(alice.id), "alice", "alice@example.com", "pro", "Business"],
        [str(admin.id), "admin", "admin@example.com", "admin", "Business"],
    ]
    assert "linkmgr_" not in "".join(lines)


@pytest.mark.parametrize("typed", [True, False])
def test_a_new_password_ends_the_sessions_of_the_user(app: Flask, alice: Client, typed: bool) -> None:
    browser = app.test_client()
    browser.post("/login", data={"email": "alice@example.com", "password": PASSWORD})
    options, entered = ([], "another horse\nanother horse\n") if typed else (["--password-stdin"], "another horse\n")
    changed = app.test_cli_runner().invoke(args=["users", "password", "alice", *options], input=entered)
    assert changed.stdout.endswith("has been changed. All browsers of this user are signed out.\n")
    assert "another horse" not in changed.output
    assert browser.get("/account").status_code == 303
    statuses = [
        app.test_client().post("/login", data={"email": "alice@example.com", "password": password}).status_code
        for password in (PASSWORD, "another horse")
    ]
    assert statuses == [401, 303]


def test_a_password_that_the_api_rejects_is_rejected(app: Flask, alice: Client) -> None:
    result = app.test_cli_runner().invoke(args=["users", "password", "alice", "--password-stdin"], input="1234\n")
    refused(result, "password must be 5 to 1024 characters.")
    signed_in = app.test_client().post("/login", data={"email": "alice@example.com", "password": PASSWORD})
    assert signed_in.status_code == 303


def test_a_user_is_deleted_after_confirmation(app: Flask, flask: Flaskline, admin: Client, alice: Client) -> None:
    alice.add("/api/url/add", {"url": "https://example.com/"})
    kept = app.test_cli_runner().invoke(args=["users", "delete", "alice"], input="n\n")
    assert kept.exit_code == 1
    assert "Delete alice, 1 link and everything else that this user owns? [y/N]" in kept.stdout
    assert alice.get("/api/account").status_code == 200
    deleted = app.test_cli_runner().invoke(args=["users", "delete", "alice"], input="y\n")
    assert deleted.stdout.endswith("alice has been deleted.\n")
    assert alice.get("/api/account").status_code == 401


def test_yes_deletes_a_user_without_a_question_but_not_the_last_administrator(
    flask: Flaskline, admin: Client, alice: Client
) -> None:
    assert flask("users", "delete", "alice", "--yes").output == "alice has been deleted.\n"
    assert alice.get("/api/account").status_code == 401
    refused(flask("users", "delete", "admin", "--yes"), "You cannot delete the last administrator.")
    assert admin.get("/api/account").status_code == 200
