"""If-Match: an update or delete of a row that has changed since it was read is refused."""

from typing import Any

import psycopg2
import pytest
from flask import Flask

from linkmgr.core.database import tables
from linkmgr.core.web.operation import routes
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql, pixel
from tests.support.operations import KEYED, Call
from tests.support.races import at_once
from tests.support.repeated import is_replayed, rows, under
from tests.support.stage import Stage

PAGE = "https://example.com/page"
MANY = "/api/urls/bulk"  # changes many rows, so it has no version
ITEMS = "/assign/"  # in the path of what changes a channel's items, not its row
CHANGES = [call for call in KEYED if call.method in ("PUT", "DELETE") and call.path != MANY and ITEMS not in call.path]
TABLES = factories.TABLES | {"conversion": "conversions", "import": "imports", "user": "users", "plan": "plans"}
over_changes = pytest.mark.parametrize("call", CHANGES, ids=str)


def version(sql: Sql, table: str, row_id: int) -> str:
    [row] = sql(f"SELECT version FROM {table} WHERE id = %(id)s", id=row_id)
    return str(row["version"])


def version_of(stage: Stage, sql: Sql, call: Call) -> str:
    kind = call.rows[-1] if call.rows else "link" if call.operation.row_id else "user"
    return version(sql, TABLES[kind], stage.ids[kind])


def matching(tags: str, **headers: str) -> dict[str, Any]:
    return {"headers": {"If-Match": tags} | headers}


def test_two_restores_of_a_dump_never_give_the_same_version(
    alice: Client, sql: Sql, raw: psycopg2.extensions.connection
) -> None:
    pixel(sql, alice.id)
    versions = set()
    with raw.cursor() as cursor:
        for _ in range(2):  # as if the row was changed in one restored database, and then in another
            cursor.execute("BEGIN; UPDATE pixels SET name = 'Changed' RETURNING version")
            versions.add(cursor.fetchone())
            cursor.execute("ROLLBACK")
    assert len(versions) == 2


def test_the_route_of_every_update_and_delete_names_the_row_that_it_changes(app: Flask) -> None:
    changes = [
        route
        for route in routes(app)
        if route.method in ("PUT", "DELETE") and route.path != MANY and ITEMS not in route.path
    ]
    assert len(changes) == len(CHANGES)
    for route in changes:
        has_id = len(route.arguments) == 1 and "user_id" not in route.arguments
        assert route.operation.row in ({*tables.TABLES, "plans"} if has_id else {"users"}), route
        assert ("_id" in route.path) != (route.operation.row_id is not None) or not has_id, route
    assert {route.method for route in routes(app) if route.operation.row} == {"PUT", "DELETE"}


def test_a_row_that_has_changed_is_412_and_stays_as_it_is(stage: Stage, sql: Sql) -> None:
    before = rows(sql)
    for call in CHANGES:
        client, path, body = stage.caller(call), stage.path(call), stage.bodies(call)[-1]
        current = version_of(stage, sql, call)
        for tags in (f'"{int(current) - 1}-abc"', f'W/"{int(current) - 1}-abc"', '"abc", "def"', f'"{current}"', '""'):
            answer = client.call(call.method, path, body, **matching(tags))
            assert (answer.status_code, answer.get_json()["code"]) == (412, "changed_meanwhile"), call
    assert rows(sql) == before


@over_changes
def test_the_current_version_is_changed(stage: Stage, sql: Sql, call: Call) -> None:
    client, path, body = stage.caller(call), stage.path(call), stage.bodies(call)[-1]
    """Also with a weak ETag, which a proxy that compresses a response makes of ours."""
    tags = f'"1-a", W/"{version_of(stage, sql, call)}-abc"'
    before = rows(sql)
    assert client.call(call.method, path, body, **matching(tags)).status_code == 200
    assert rows(sql) != before


def test_any_version_is_changed_with_an_asterisk(alice: Client, sql: Sql) -> None:
    assert alice.delete(f"/api/pixel/{pixel(sql, alice.id)}/delete", **matching("*")).status_code == 200


@pytest.mark.parametrize("tags", ["*", '"1-a"'])
def test_a_missing_row_is_404(stage: Stage, tags: str) -> None:
    for call in CHANGES:
        if call.rows:
            path, body = stage.path(call, **{call.rows[-1]: 2**40}), stage.bodies(call)[-1]
            assert stage.caller(call).call(call.method, path, body, **matching(tags)).status_code == 404, call


@pytest.mark.parametrize("tags", ["", "abc", '"abc', '"a" "b"', '*, "a"', 'w/"a"', '"a",', "é", '"a"; "b"'])
def test_a_malformed_header_is_400_and_changes_nothing(alice: Client, sql: Sql, tags: str) -> None:
    pixel_id = pixel(sql, alice.id)
    answer = alice.delete(f"/api/pixel/{pixel_id}/delete", **matching(tags))
    assert (answer.status_code, answer.get_json()["code"]) == (400, "etag_invalid")
    assert len(sql("SELECT FROM pixels")) == 1


def test_get_and_post_ignore_it(alice: Client) -> None:
    assert alice.get("/api/account", **matching('"1-a"')).status_code == 200
    assert alice.post("/api/channel/add", {"name": "n"}, **matching("x")).status_code == 200


def test_a_link_in_the_bin_is_deleted_only_in_the_version_that_it_has(alice: Client) -> None:
    path = f"/api/url/{alice.add('/api/url/add', {'url': PAGE})}"
    old = alice.get(path).headers["ETag"]
    new = alice.put(f"{path}/update", {"title": "New"}).headers["ETag"]
    for query, etag, status in (("?bin=1", old, 412), ("?bin=1", new, 200), ("", old, 412), ("", new, 200)):
        assert alice.delete(f"{path}/delete{query}", **matching(etag)).status_code == status


@pytest.mark.parametrize("headers", [{}, under()["headers"]])
def test_the_version_is_checked_before_the_body(alice: Client, sql: Sql, headers: dict[str, str]) -> None:
    path = f"/api/pixel/{pixel(sql, alice.id)}/update"
    for _ in range(2):
        assert alice.put(path, {"tag": ""}, **matching('"1-a"', **headers)).get_json()["code"] == "changed_meanwhile"


def test_exactly_one_of_20_concurrent_updates_of_a_version_wins(alice: Client, sql: Sql) -> None:
    pixel_id = pixel(sql, alice.id)
    tags = f'"{version(sql, "pixels", pixel_id)}-a"'

    def update(number: int) -> int:
        changes = {"tag": f"t{number}"}
        return alice.put(f"/api/pixel/{pixel_id}/update", changes, **matching(tags)).status_code

    assert sorted(at_once(20, update)) == [200] + [412] * 19


def test_shortening_the_url_of_a_link_again_leaves_its_version(alice: Client) -> None:
    link_id = alice.add("/api/url/add", {"url": PAGE})
    etag = alice.get(f"/api/url/{link_id}").headers["ETag"]
    assert alice.add("/api/url/add", {"url": PAGE}) == link_id
    assert alice.post("/api/urls/bulk", {"urls": [{"url": PAGE}]}).get_json()["results"][0]["id"] == link_id
    assert alice.get(f"/api/url/{link_id}").headers["ETag"] == etag
    assert alice.put(f"/api/url/{link_id}/update", {"metatitle": "x"}, **matching(etag)).status_code == 200


UPDATES = [call for call in CHANGES if call.path.endswith("/update") and call.rows]


@pytest.mark.parametrize("call", UPDATES, ids=str)
def test_an_update_that_changes_nothing_leaves_the_version(stage: Stage, sql: Sql, call: Call) -> None:
    client, path, body = stage.caller(call), stage.path(call), dict(stage.bodies(call)[-1] or {})
    body.pop("password", None)  # gets a new hash
    before = version_of(stage, sql, call)
    assert client.call(call.method, path, body).status_code == 200
    changed = version_of(stage, sql, call)
    assert changed != before
    assert client.call(call.method, path, body).status_code == 200
    assert version_of(stage, sql, call) == changed


@pytest.mark.parametrize("many", [False, True])
def test_other_pixels_are_another_version_of_a_link(alice: Client, sql: Sql, many: bool) -> None:
    link_id = alice.add("/api/url/add", {"url": PAGE})
    first, second = pixel(sql, alice.id), pixel(sql, alice.id)

    def update(*pixels: int) -> str:
        changes = {"pixels": list(pixels)}
        if many:
            assert alice.put("/api/urls/bulk", {"ids": [link_id], "data": changes}).status_code == 200
        else:
            assert alice.put(f"/api/url/{link_id}/update", changes).status_code == 200
        return version(sql, "links", link_id)

    versions = [update(first), update(first, second), update(second, first), update()]
    assert versions[1] == versions[2]
    assert len(set(versions)) == 3


def test_checks_deliveries_and_uses_leave_the_versions_of_their_rows(alice: Client, sql: Sql, stage: Stage) -> None:
    kinds = {"domains": "domain", "webhooks": "webhook", "api_keys": "key"}
    ids = {table: stage.ids[kind] for table, kind in kinds.items()}
    before = {table: version(sql, table, row_id) for table, row_id in ids.items()}
    sql("UPDATE domains SET checked = now(), problem = 'none' RETURNING 1")
    sql("UPDATE webhooks SET failures = 3, paused_until = now() RETURNING 1")
    sql("UPDATE api_keys SET last_used = now(), last_address = '192.0.2.1' RETURNING 1")
    assert {table: version(sql, table, row_id) for table, row_id in ids.items()} == before


def test_a_repeated_update_is_replayed_and_a_refused_one_is_checked_again(alice: Client, sql: Sql) -> None:
    pixel_id = pixel(sql, alice.id)
    path, changes = f"/api/pixel/{pixel_id}/update", {"tag": "new"}

    def update(key: str, row_version: str) -> Any:
        return alice.put(path, changes, **under(key, **{"If-Match": f'"{row_version}-a"'}))

    old = version(sql, "pixels", pixel_id)
    assert update("key-1", old).status_code == 200
    assert is_replayed(update("key-1", old))
    assert update("key-2", old).status_code == 412
    assert update("key-2", version(sql, "pixels", pixel_id)).status_code == 200
