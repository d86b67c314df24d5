from collections.abc import Callable
from typing import Any

import pytest

from linkmgr.db import statements
from linkmgr.resources.plans import COUNTED, NUMBERS, SWITCHED
from tests.conftest import Client

Sql = Callable[..., list[statements.Row]]
IN_THE_PAST = "expiration is in the past, so the user has the free plan."


def plan_ids(admin: Client) -> dict[str, int]:
    return {plan["name"]: plan["id"] for plan in admin.get("/api/plans").get_json()["data"]}


def subscribe(admin: Client, plan: str, user: Client, **body: Any) -> None:
    answer = admin.put(f"/api/plan/{plan_ids(admin)[plan]}/user/{user.id}", body)
    assert answer.get_json() == {"error": 0, "message": "User has been subscribed to this plan."}


def test_a_fresh_install_brings_three_plans_of_the_documented_shape(admin: Client) -> None:
    plans = admin.get("/api/plans").get_json()["data"]
    assert [(plan["name"], plan["free"]) for plan in plans] == [("Free", True), ("Pro", False), ("Business", False)]
    for plan in plans:
        assert set(plan) == {"id", "name", "free", "prices", "limits"}
        limits = plan["limits"]
        assert set(limits) == {*NUMBERS, *COUNTED, *SWITCHED}
        assert all(isinstance(limits[name], int) for name in NUMBERS)
        assert all(set(limits[name]) == {"enabled", "count"} for name in COUNTED)
        assert all(set(limits[name]) == {"enabled"} for name in SWITCHED)
        assert {limits[name]["enabled"] for name in (*COUNTED, *SWITCHED)} <= {"0", "1"}
        assert all(limits[name]["count"].isdigit() for name in COUNTED)
    assert plans[0]["prices"] is None
    assert plans[1]["prices"] == {"monthly": 9, "yearly": 90, "lifetime": 270}


@pytest.mark.parametrize(
    ("type_", "expires"),
    [("monthly", "now() + interval '1 month'"), ("yearly", "now() + interval '1 year'"), ("lifetime", "NULL")],
)
def test_without_an_expiration_the_type_sets_it_by_the_calendar(
    admin: Client, alice: Client, sql: Sql, type_: str, expires: str
) -> None:
    subscribe(admin, "Pro", alice, type=type_)
    near = sql(
        f"""
        SELECT expires IS NOT DISTINCT FROM {expires} OR abs(extract(epoch FROM expires - ({expires}))) < 5 AS near
          FROM users
         WHERE id = %(id)s
        """,
        id=alice.id,
    )
    assert near == [{"near": True}]
    account = admin.get(f"/api/user/{alice.id}").get_json()["data"]
    assert (account["status"], account["planid"]) == ("pro", plan_ids(admin)["Pro"])


@pytest.mark.parametrize("type_", ["monthly", "yearly", "lifetime"])
def test_an_expiration_that_was_sent_takes_precedence(admin: Client, alice: Client, type_: str) -> None:
    subscribe(admin, "Pro", alice, type=type_, expiration="2098-02-28 23:59:59")
    assert alice.get("/api/account").get_json()["data"]["expires"] == "2098-02-28 23:59:59"
    past = {"type": type_, "expiration": "2001-01-01 00:00:00"}
    answer = admin.put(f"/api/plan/{plan_ids(admin)['Pro']}/user/{alice.id}", past)
    assert (answer.status_code, answer.get_json()["warnings"]) == (200, [IN_THE_PAST])
    assert alice.get("/api/account").get_json()["data"]["status"] == "free"


def test_a_free_plan_clears_the_expiration(admin: Client, alice: Client) -> None:
    subscribe(admin, "Pro", alice, type="monthly")
    subscribe(admin, "Free", alice, type="monthly", expiration="2098-01-01 00:00:00")
    account = admin.get(f"/api/user/{alice.id}").get_json()["data"]
    assert (account["status"], account["planid"], account["expires"]) == ("free", plan_ids(admin)["Free"], None)


def test_when_a_plan_has_expired_the_record_shows_the_free_one(admin: Client, alice: Client, sql: Sql) -> None:
    subscribe(admin, "Pro", alice, type="monthly")
    sql("UPDATE users SET expires = now() WHERE id = %(id)s RETURNING 1", id=alice.id)
    assert admin.get(f"/api/user/{alice.id}").get_json()["data"]["planid"] == plan_ids(admin)["Free"]
