from collections.abc import Callable
from typing import Any

import pytest

from linkmgr.core.database import statements
from linkmgr.schemas.plans import COUNTED, NUMBERS, SWITCHED
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
        assert set(plan) == {"id", "name", "free", "rate", "prices", "limits"}
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


def test_a_plan_is_added_and_changed(admin: Client, alice: Client) -> None:
    added = admin.post(
        "/api/plan/add", {"name": "Team", "prices": {"yearly": 49.99}, "limits": {"links": 7}}
    ).get_json()
    plan, path = added["data"], f"/api/plan/{added['id']}"
    assert (plan["free"], plan["rate"], plan["limits"]["links"], plan["limits"]["pixels"]["count"]) == (
        False,
        0,
        7,
        "0",
    )
    assert plan["prices"] == {"monthly": 0, "yearly": 49.99, "lifetime": 0}
    assert admin.get(path).get_json()["data"] == plan
    changes = {"rate": 77, "prices": {"monthly": 5}, "limits": {"geo": {"enabled": "0"}}}
    changed = admin.put(f"{path}/update", changes).get_json()["data"]
    assert changed == plan | {
        "rate": 77,
        "prices": plan["prices"] | {"monthly": 5},
        "limits": plan["limits"] | changes["limits"],
    }
    assert admin.put(f"{path}/update", changed).get_json() == {
        "error": 0, "message": "Plan has been updated successfully.", "data": changed, "record": changed
    }  # fmt: skip
    subscribe(admin, "Team", alice, type="lifetime")
    assert alice.get("/api/account").headers["X-RateLimit-Limit"] == "77"
    fixed = admin.put(f"{path}/update", {"free": True}).get_json()["warnings"]
    assert fixed == ["The member 'free' cannot be changed and was ignored."]
    free = admin.post("/api/plan/add", {"name": "Trial", "free": True, "prices": {}}).get_json()
    assert free["data"]["prices"] is None
    for method, url, body in (
        ("POST", "/api/plan/add", {"name": "Other", "free": True, "prices": {"monthly": 1}}),
        ("PUT", f"/api/plan/{free['id']}/update", {"prices": {"monthly": 1}}),
        ("PUT", f"{path}/update", {"name": ""}),
        ("PUT", f"{path}/update", {"limits": {"links": "7"}}),
        ("PUT", f"{path}/update", {"limits": {"x": 1}}),
        ("PUT", f"{path}/update", {"limits": [1]}),
        ("PUT", f"{path}/update", {"prices": {"monthly": -1}}),
        ("PUT", f"{path}/update", {"prices": {"monthly": True}}),
        ("PUT", f"{path}/update", {"rate": 1.5}),
    ):
        assert admin.call(method, url, body).get_json()["code"] == "invalid", body
    assert admin.put(f"{path}/update", {"name": "Pro"}).get_json()["code"] == "plan_name_taken"
    assert admin.get(path).get_json()["data"] == changed
