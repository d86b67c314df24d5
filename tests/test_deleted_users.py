"""Deleting a user takes effect immediately for everything the user owned. Background jobs delete the rows."""

from collections.abc import Callable

import psycopg2
import pytest
from flask import Flask

from linkmgr.repository import overlay as overlays
from tests.conftest import Client
from tests.support import factories
from tests.support.batches import BATCH, MANY, STATISTICS, VISITS
from tests.support.brands import fetch
from tests.support.factories import Sql
from tests.support.keyring import Make, code
from tests.support.pages import PASSWORD
from tests.support.repeated import under
from tests.support.transactions import Costs

Connection = psycopg2.extensions.connection
HOST = "go.example.org"


@pytest.fixture
def carol(register: Callable[..., Client], sql: Sql) -> Client:
    """A user with one row of each kind, under names that other users may take."""
    made = register("carol")
    made.add("/api/domain/add", {"domain": f"https://{HOST}", "redirectroot": "https://example.com/root"})
    campaign = made.post("/api/campaign/add", {"name": "Sale", "slug": "sale", "public": True}).get_json()["id"]
    url = {"url": "https://example.com/", "campaign": campaign}
    made.add("/api/url/add", url | {"custom": "mine"})
    made.add("/api/url/add", url | {"custom": "branded", "domain": HOST})
    made.add("/api/bio/add", {"name": "Carol", "alias": "carol"})
    for make in factories.ALL.values():
        make(sql, made.id)
    factories.answer(sql, made.id)
    return made


def public(carol: Client, sql: Sql) -> list[tuple[str, str]]:
    """Return every public path of the user's data and its host."""
    ours = "127.0.0.1:5000"
    [code] = sql("SELECT code FROM qrs WHERE user_id = %(id)s", id=carol.id)
    [listed] = sql("SELECT id FROM campaigns WHERE slug = 'sale'")
    paths = ["/mine", "/mine/qr", "/carol", "/r/sale", f"/q/{code['code']}", f"/qr/{code['code']}"]
    paths.append(f"/u/carol/sale-{listed['id']}")
    return [(path, ours) for path in paths] + [("/branded", HOST)]


def test_a_deleted_users_public_paths_stop_working_at_once(
    app: Flask, admin: Client, carol: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    things = public(carol, sql)
    assert {fetch(app, path, host).status_code for path, host in things} <= {200, 302}
    assert admin.delete(f"/api/user/{carol.id}/delete").status_code == 200
    assert len(sql("SELECT FROM links")) > 0, "the request deleted the links"
    assert carol.get("/api/account").status_code == 401
    sign_in = app.test_client().post("/login", data={"email": "carol@example.com", "password": PASSWORD})
    assert sign_in.status_code == 401
    for path, host in things:
        assert fetch(app, path, host).status_code == 404, path
    assert "example.com/root" not in fetch(app, "/", HOST).headers.get("Location", "")
    run_jobs()
    owned = sql(
        """
        SELECT attrelid::regclass::text AS name FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
         WHERE attname = 'user_id' AND relkind = 'r' AND relnamespace = 'public'::regnamespace
        """
    )
    assert len(owned) > 10
    for table in owned:
        assert sql(f"SELECT FROM {table['name']} WHERE user_id = %(id)s", id=carol.id) == [], table
    assert sql("SELECT FROM jobs") == []


@pytest.mark.parametrize("limited", [False, True])
def test_the_names_of_a_deleted_user_are_free_at_once(
    *,
    app: Flask,
    admin: Client,
    alice: Client,
    carol: Client,
    make_restricted: Make,
    run_jobs: Callable[[], None],
    limited: bool,
) -> None:
    client = make_restricted(alice, own_only=True) if limited else alice
    url = {"url": "https://example.com/new"}
    adds = {
        "url": url | {"custom": "carol"},
        "bio": {"name": "Alice", "alias": "mine"},
        "domain": {"domain": f"https://{HOST}"},
        "campaign": {"name": "Sale", "slug": "sale"},
    }
    clients = dict.fromkeys(adds, alice) | {"url": client}  # a restricted key adds links only
    for word, body in adds.items():
        assert code(clients[word].post(f"/api/{word}/add", body))[0] == 400, "the name of an existing user was accepted"
    link = client.add("/api/url/add", url | {"custom": "own"})
    admin.delete(f"/api/user/{carol.id}/delete")
    user = {"username": "carol", "email": "carol@example.com", "password": PASSWORD}
    assert admin.post("/api/user/add", user).status_code == 200
    for word, body in adds.items():
        assert clients[word].post(f"/api/{word}/add", body).status_code == 200, word
    moved = {"domain": HOST, "custom": "branded"}
    assert client.put(f"/api/url/{link}/update", moved).status_code == 200
    run_jobs()
    assert fetch(app, "/branded", HOST).headers["Location"] == "https://example.com/new"
    assert fetch(app, "/carol").headers["Location"] == "https://example.com/new"
    assert alice.get("/api/urls").get_json()["data"]["result"] == 2


@pytest.mark.parametrize("atomic", [False, True])
def test_a_bulk_request_under_a_key_takes_the_names_of_a_deleted_user(
    admin: Client, alice: Client, carol: Client, *, atomic: bool
) -> None:
    admin.delete(f"/api/user/{carol.id}/delete")
    urls = [{"url": f"https://example.com/{alias}", "custom": alias} for alias in ("mine", "carol", "other")]
    answer = alice.post("/api/urls/bulk", {"urls": urls, "atomic": atomic}, **under())
    assert answer.get_json().get("created") == 3, answer.text


def test_updates_take_the_names_of_a_deleted_user_too(admin: Client, alice: Client, carol: Client) -> None:
    alice.add("/api/domain/add", {"domain": "https://alice.example.org"})
    link = alice.add("/api/url/add", {"url": "https://example.com/", "custom": "mine", "domain": "alice.example.org"})
    bio = alice.add("/api/bio/add", {"name": "Alice", "alias": "alice"})
    campaign = alice.post("/api/campaign/add", {"name": "Sale"}).get_json()["id"]
    changes = {
        f"/api/url/{link}/update": {"domain": "http://127.0.0.1:5000"},
        f"/api/bio/{bio}/update": {"alias": "carol"},
        f"/api/campaign/{campaign}/update": {"name": "Sale", "slug": "sale"},
    }
    for path, sent in changes.items():
        assert alice.put(path, sent).status_code == 400
    admin.delete(f"/api/user/{carol.id}/delete")
    for path, sent in changes.items():
        answer = alice.put(path, sent)
        assert answer.status_code == 200, answer.text


def test_a_deleted_users_overlay_takes_no_answers(app: Flask, admin: Client, carol: Client, sql: Sql) -> None:
    [overlay] = sql("SELECT id FROM overlays")
    admin.delete(f"/api/user/{carol.id}/delete")
    with app.app_context():
        assert overlays.form(carol.id, overlay["id"]) is None


def test_a_user_with_many_links_is_deleted_at_once_and_the_links_in_batches(
    *,
    admin: Client,
    alice: Client,
    links: list[int],
    sql: Sql,
    one_batch: Callable[[], bool],
    run_jobs: Callable[[], None],
    costs: Costs,
) -> None:
    sql(VISITS, id=links[0], many=100)
    spent = costs(lambda: admin.delete(f"/api/user/{alice.id}/delete"))
    assert max(cost.rows for cost in spent) < 100
    assert len(sql("SELECT FROM links")) == MANY
    for _ in range(3):
        assert one_batch()
    assert 0 < len(sql("SELECT FROM links")) < MANY, "a batch is a part of the links"
    spent = costs(run_jobs)
    assert max(cost.rows for cost in spent) < BATCH
    assert sql("SELECT FROM links") == []
    assert sql("SELECT FROM aliases") == []
    assert sql(STATISTICS) == []
    assert sql("SELECT FROM jobs") == []
