import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask import Flask

from linkmgr.core import keys
from linkmgr.core.database import statements
from linkmgr.core.web import passwords
from linkmgr.repository import users
from tests.conftest import BASE_URL, Client

Sql = Callable[..., list[statements.Row]]
NEW = {"username": "carol", "email": "carol@example.com", "password": "12345"}


def premium(admin: Client) -> int:
    return next(int(plan["id"]) for plan in admin.get("/api/plans").get_json()["data"] if not plan["free"])


def test_a_new_user_can_call_the_api_with_the_key_in_the_record(admin: Client, sql: Sql) -> None:
    answer = admin.post("/api/user/add", NEW).get_json()
    user_id = answer["data"]["id"]
    assert (answer["error"], answer["message"]) == (0, "User has been registered.")
    assert answer["data"].items() >= {"id": user_id, "email": "carol@example.com", "username": "carol"}.items()
    record = admin.get(f"/api/user/{user_id}").get_json()["data"]
    carol = Client(admin.http, record["apikey"])
    assert carol.get("/api/account").get_json()["data"]["username"] == "carol"
    assert carol.get("/api/users").status_code == 403
    stored = sql("SELECT password_hash FROM users WHERE id = %(id)s", id=user_id)[0]["password_hash"]
    assert passwords.matches("12345", stored)


def test_a_user_may_start_on_a_premium_plan_with_an_end(admin: Client) -> None:
    planid = premium(admin)
    body = NEW | {"planid": planid, "expiration": "2098-01-01 00:00:00"}
    user_id = admin.post("/api/user/add", body).get_json()["data"]["id"]
    record = admin.get(f"/api/user/{user_id}").get_json()["data"]
    apikey, registered = record.pop("apikey"), record.pop("registered")
    assert record.pop("updated") == registered
    assert apikey.startswith("linkmgr_")
    assert len(registered) == len("2026-11-20 12:00:00")
    assert record == {
        "id": user_id,
        "email": "carol@example.com",
        "username": "carol",
        "avatar": f"{BASE_URL}/avatar/carol.png",
        "status": "pro",
        "expires": "2098-01-01 00:00:00",
        "planid": planid,
        "admin": False,
        "suspended": "no",
    }


def test_a_status_that_the_user_does_not_get_causes_a_warning(admin: Client) -> None:
    ignored = ["The member 'status' cannot be set and was ignored."]
    past = "expiration is in the past, so the user has the free plan."
    ended = {"planid": premium(admin), "expiration": "2001-01-01 00:00:00"}
    cases: list[tuple[dict[str, Any], list[str] | None]] = [
        ({"status": "admin"}, ignored),
        ({"status": "pro"}, ignored),
        ({"status": "free"}, None),
        ({"status": "pro", "planid": premium(admin)}, None),
        (ended | {"status": "free"}, [past]),
        (ended | {"status": "pro"}, [past, *ignored]),
    ]
    for number, (members, warnings) in enumerate(cases):
        user = NEW | {"username": f"carol{number}", "email": f"carol{number}@example.com"} | members
        answer = admin.post("/api/user/add", user)
        assert (answer.status_code, answer.get_json().get("warnings")) == (200, warnings)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"username": "ALICE"}, "This username is already in use."),
        ({"email": "Alice@Example.com"}, "This e-mail address is already in use."),
        ({"planid": 10**30}, "planid must be the id of a premium plan."),
        ({"planid": -1}, "planid must be the id of a premium plan."),
        ({"planid": "Free"}, "planid must be the id of a premium plan."),
    ],
)
def test_a_user_who_cannot_be_stored_is_rejected(
    admin: Client, alice: Client, sql: Sql, changed: dict[str, Any], message: str
) -> None:
    if changed.get("planid") == "Free":
        changed = {"planid": sql("SELECT id FROM plans WHERE free")[0]["id"]}
    answer = admin.post("/api/user/add", NEW | changed)
    assert (answer.status_code, answer.get_json()["message"]) == (400, message)
    assert sql("SELECT username FROM users ORDER BY id") == [{"username": "admin"}, {"username": "alice"}]
    assert alice.get("/api/account").status_code == 200


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["bob", "alice", "admin"]),
        ("?filter=&email=", ["bob", "alice", "admin"]),
        ("?filter=admin", ["admin"]),
        ("?filter=free", ["bob"]),
        ("?filter=pro", ["alice"]),
        ("?email=ALICE@", ["alice"]),
        ("?email=example.com", ["bob", "alice", "admin"]),
        ("?email=%25", []),
        ("?email=a_ice", []),
        ("?email=bob&filter=pro", []),
    ],
)
def test_users_are_filtered_by_status_and_searched_by_any_part_of_the_email(
    admin: Client, register: Callable[..., Client], query: str, found: list[str]
) -> None:
    register("alice", plan="Pro")
    register("bob", plan="Free")
    users = admin.get(f"/api/users{query}").get_json()["data"]
    assert [user["username"] for user in users] == found
    assert all(set(user) == set(users[0]) for user in users)


@pytest.mark.parametrize("query", ["?filter=root", "?email=%00", f"?email={'x' * 256}"])
def test_an_invalid_search_is_rejected(admin: Client, query: str) -> None:
    assert admin.get(f"/api/users{query}").status_code == 400


def test_administrators_cannot_delete_themselves(admin: Client) -> None:
    answer = admin.delete(f"/api/user/{admin.id}/delete")
    assert answer.status_code == 400
    assert answer.get_json()["message"] == "You cannot delete your own account. Ask another administrator."


def test_two_administrators_who_delete_each_other_at_once_leave_one(
    app: Flask, register: Callable[..., Client], sql: Sql
) -> None:
    """The loser gets an invalid key or a refusal from the statement. Never do both deletes succeed."""
    for attempt in range(10):
        pair = [register(f"admin{attempt}{side}", admin=True, via=app) for side in "ab"]
        both = threading.Barrier(2)

        def delete(index: int, pair: list[Client] = pair, both: threading.Barrier = both) -> int:
            caller = Client(app.test_client(), pair[index].key)
            both.wait()
            return caller.delete(f"/api/user/{pair[1 - index].id}/delete").status_code

        with ThreadPoolExecutor(2) as pool:
            answers = Counter(pool.map(delete, range(2)))
        assert answers[200] == 1
        assert sql("SELECT count(*) AS n FROM users WHERE admin") == [{"n": 1}]
        sql("DELETE FROM users RETURNING 1")


def test_the_login_link_uses_the_base_url_and_not_the_host_header(admin: Client, alice: Client) -> None:
    answer = admin.get(f"/api/user/login/{alice.id}", headers={"Host": "localhost:8080"}).get_json()
    assert set(answer) == {"error", "url"}
    assert answer["url"].startswith(f"{BASE_URL}/login/")
    assert len(answer["url"].rsplit("/", 1)[1]) == 43  # 256 bits
    assert admin.get("/api/user/login/1000000").status_code == 404


def add_many(app: Flask, number: int) -> None:
    """Add users with keys that can be decrypted."""
    with app.app_context():
        for _ in range(number):
            user_id = users.next_id()
            name = f"many-{user_id}"
            users.add(
                user_id,
                username=name,
                email=f"{name}@example.com",
                password_hash="",
                **keys.new_key(user_id),
            )


def test_a_list_of_many_users_is_never_complete_in_memory(
    app: Flask, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(users, "BATCH_SIZE", 50)
    peaks = []
    for more in (100, 400):
        add_many(app, more)
        tracemalloc.start()
        answer = admin.http.get("/api/users", headers={"Authorization": f"Bearer {admin.key}"}, buffered=False)
        length = sum(map(len, answer.response))
        peaks.append((tracemalloc.get_traced_memory()[1], length))
        tracemalloc.stop()
    (little, short), (much, long) = peaks
    assert long > 4 * short
    assert much < 1.5 * little


def test_users_of_several_chunks_are_listed_once_each_newest_first(
    app: Flask, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(users, "BATCH_SIZE", 7)
    add_many(app, 20)
    listed = [user["id"] for user in admin.get("/api/users").get_json()["data"]]
    assert listed == sorted(set(listed), reverse=True)
    assert len(listed) == 21
    assert len(admin.get("/api/users?email=MANY").get_json()["data"]) == 20
    assert admin.get("/api/users?email=nobody").get_json() == {"error": 0, "data": []}
