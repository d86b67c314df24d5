from collections.abc import Callable

import pytest
from flask import Flask

from linkmgr.core.database import statements
from linkmgr.core.web import passwords, session_store
from tests.conftest import BASE_URL, Client
from tests.support.pages import PASSWORD


def stored_password(sql: Callable[..., list[statements.Row]], user_id: int) -> str:
    return str(sql("SELECT password_hash FROM users WHERE id = %(id)s", id=user_id)[0]["password_hash"])


@pytest.mark.parametrize(
    ("plan", "expires", "status"),
    [
        ("Free", "NULL", "free"),
        ("Pro", "NULL", "pro"),
        ("Pro", "now() + interval '1 minute'", "pro"),
        ("Pro", "now() - interval '1 second'", "free"),
        ("Free", "now() + interval '1 year'", "free"),
    ],
)
def test_the_status_follows_from_the_plan_and_the_clock(
    register: Callable[..., Client], sql: Callable[..., list[statements.Row]], plan: str, expires: str, status: str
) -> None:
    alice = register("alice", plan=plan)
    sql(f"UPDATE users SET expires = {expires} RETURNING 1")
    assert alice.get("/api/account").get_json()["data"]["status"] == status


def test_a_post_responds_like_a_get_whatever_its_body(alice: Client) -> None:
    read = alice.get("/api/account").get_json()
    assert alice.post("/api/account").get_json() == read
    assert alice.post("/api/account", {"email": "other@example.com"}).get_json() == read
    assert alice.get("/api/account").get_json() == read


def test_an_administrator_has_the_status_admin_on_any_plan(admin: Client) -> None:
    assert admin.get("/api/account").get_json()["data"]["status"] == "admin"


def test_an_update_changes_only_what_was_sent(alice: Client, sql: Callable[..., list[statements.Row]]) -> None:
    before = stored_password(sql, alice.id)
    answer = alice.put("/api/account/update", {"email": "new@example.org"})
    account = alice.get("/api/account").get_json()["data"]
    message = "Account has been successfully updated."
    assert answer.get_json() == {"error": 0, "message": message, "data": account, "record": account}
    assert account["email"] == "new@example.org"
    assert stored_password(sql, alice.id) == before

    assert alice.put("/api/account/update", {"password": "12345"}).status_code == 200
    assert passwords.matches("12345", stored_password(sql, alice.id))
    assert not passwords.matches(PASSWORD, stored_password(sql, alice.id))
    assert alice.get("/api/account").get_json()["data"]["email"] == "new@example.org"


def test_a_new_password_ends_the_sessions_and_a_new_email_does_not(app: Flask, alice: Client) -> None:
    with app.app_context():
        session_store.add_session(alice.id, session=b"digest", asks_code=True)
        alice.put("/api/account/update", {"email": "new@example.org"})
        session = session_store.find_session(b"digest")
        assert session
        assert (session["user_id"], session["admin"], session["by_link"]) == (alice.id, False, False)
        alice.put("/api/account/update", {"password": "another one"})
        assert session_store.find_session(b"digest") is None


def test_the_default_domain_is_one_of_the_account_and_of_links_that_ask_for_it(alice: Client, bob: Client) -> None:
    domain = {"domain": "https://go.example.com"}
    row_id = alice.add("/api/domain/add", domain)
    assert alice.get("/api/account").get_json()["data"]["domain"] is None
    changed = alice.put("/api/account/update", {"domain": "go.example.com"}).get_json()
    assert changed["data"] == alice.get("/api/account").get_json()["data"]
    assert changed["data"]["domain"] == domain["domain"]
    link = alice.post("/api/url/add", {"url": "https://example.com"}).get_json()
    assert link["shorturl"].startswith(f"{BASE_URL}/")
    assert "https://go.example.com" in link["warnings"][0]
    for members, place in (({"domain": "default"}, domain["domain"]), ({"domain": ""}, BASE_URL)):
        link = alice.post("/api/url/add", {"url": "https://example.com/a", **members}).get_json()
        assert (link["shorturl"].rpartition("/")[0], link.get("warnings")) == (place, None)
    urls = [{"url": "https://example.com/b", "domain": "default"}, *({"url": f"https://example.com/{n}"} for n in "cd")]
    bulk = alice.post("/api/urls/bulk", {"urls": urls}).get_json()
    places = [link["shorturl"].rpartition("/")[0] for link in bulk["results"]]
    assert (places, len(bulk["warnings"])) == ([domain["domain"], BASE_URL, BASE_URL], 1)
    assert bob.put("/api/account/update", domain).get_json()["code"] == "domain_unknown"

    assert alice.put("/api/account/update", {"domain": ""}).get_json()["data"]["domain"] is None
    assert alice.put("/api/account/update", {"domain": "default"}).status_code == 400
    link = alice.post("/api/url/add", {"url": "https://example.com/e", "domain": "default"}).get_json()
    assert link["shorturl"].startswith(f"{BASE_URL}/")
    alice.put("/api/account/update", domain)
    linked = [link["id"] for link in alice.get("/api/urls").get_json()["data"]["urls"]]
    alice.post("/api/urls/bulk/delete", {"ids": linked})
    assert alice.delete(f"/api/domain/{row_id}/delete").status_code == 200
    assert alice.get("/api/account").get_json()["data"]["domain"] is None
