"""Scoped keys. tests/test_keys_scopes.py has the scopes, tests/test_keys_restricted.py the limits to rows."""

import re
import string
import zlib
from collections.abc import Callable

import pytest
from flask import Flask

from linkmgr.core import keys
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.keyring import Make, code

EVERYTHING = {"name": "All", "scopes": ["*"]}


def test_a_new_key_is_shown_once_and_stored_as_a_digest(alice: Client, sql: Sql) -> None:
    answer = alice.post("/api/key/add", {"name": "Shop", "scopes": ["links:read", "links:read", "stats:read"]})
    added = answer.get_json()
    assert set(added) == {"error", "id", "key", "data", "record"}
    assert re.fullmatch(keys.SCOPED_PATTERN, added["key"])
    assert answer.headers["Cache-Control"] == "no-store"
    stored = sql("SELECT digest, to_jsonb(k)::text AS text FROM api_keys k")[0]
    assert stored["digest"] == keys.digest(added["key"])
    assert added["key"][10:] not in stored["text"]
    answer = alice.get("/api/keys").get_json()
    listed, default = answer["data"], answer["default"]
    expected = {
        "id": added["id"], "name": "Shop", "prefix": added["key"][:8], "scopes": ["links:read", "stats:read"],
        "domains": [], "own_only": False, "expires": None, "allowed_ips": [], "last_used": None, "last_address": None,
        "previous_until": None, "made_by": "alice", "updated": listed["keys"][0]["created"],
    }  # fmt: skip
    created = listed["keys"][0].pop("created")
    assert listed["keys"] == [expected]
    assert alice.get(f"/api/key/{added['id']}").get_json()["data"] == expected | {"created": created}
    assert default.keys() == {"name", "prefix", "active", "created", "expires"}
    assert default["active"] is True


def test_a_mistyped_key_is_refused_without_being_looked_up(alice: Client, make_key: Make, sql: Sql) -> None:
    typed = make_key(alice)
    assert typed.key
    swapped = typed.key[:-8] + typed.key[-7] + typed.key[-8] + typed.key[-6:]
    for wrong in {swapped, typed.key + "0", typed.key[:-1], typed.key[:4], typed.key[:20] + "é" + typed.key[21:]} - {
        typed.key
    }:
        sql("UPDATE api_keys SET digest = %(digest)s RETURNING 1", digest=keys.digest(wrong))
        assert code(alice.get("/api/account", headers={"Authorization": f"Bearer {wrong}"})) == (401, "key_unknown")


def test_the_checksum_is_the_crc32_in_base_62() -> None:
    digits = string.digits + string.ascii_uppercase + string.ascii_lowercase
    for key in [keys.new_scoped_key() for _ in range(200)]:
        number = 0
        for digit in key[-6:]:
            number = number * 62 + digits.index(digit)
        assert number == zlib.crc32(key[4:-6].encode())


@pytest.mark.parametrize("in_redis", [False, True])
def test_all_keys_of_a_user_share_one_rate_limit(
    *, make_app: Callable[..., Flask], register: Callable[..., Client], make_key: Make, redis_url: str, in_redis: bool
) -> None:
    storage = {"rate_limit_storage": redis_url} if in_redis else {}
    alice = register("alice", via=make_app(rate_limit="5 per minute", **storage), plan="Free")
    other = make_key(alice)
    assert [client.get("/api/account").headers["X-RateLimit-Remaining"] for client in (alice, other)] == ["3", "2"]


def test_requests_with_an_unknown_key_count_for_the_ip_address(
    app_with: Callable[..., Flask], register: Callable[..., Client], make_key: Make
) -> None:
    alice = register("alice", via=app_with(rate_limit="5 per minute"), plan="Free")
    expired = make_key(alice)
    alice.put(f"/api/key/{expired.id}/update", {"expires": "2020-01-01 00:00:00"})
    unknown = Client(alice.http, keys.new_scoped_key())
    mistyped = Client(alice.http, "lmk_abc")
    answers = [client.get("/api/account") for client in (expired, unknown, mistyped)]
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["4", "3", "2"]
    assert [code(answer) for answer in answers] == [(401, "key_expired"), (401, "key_unknown"), (401, "key_unknown")]


def test_the_last_use_is_stored_to_the_minute(alice: Client, make_key: Make, sql: Sql) -> None:
    client = make_key(alice)
    for _ in range(3):
        client.get("/api/account")
    key = alice.get(f"/api/key/{client.id}").get_json()["data"]
    assert key["last_used"].endswith(":00")
    assert key["last_address"] == "127.0.0.1"
    sql("UPDATE api_keys SET last_used = last_used - interval '1 hour', last_address = '192.0.2.1' RETURNING 1")
    client.get("/api/account")
    assert alice.get(f"/api/key/{client.id}").get_json()["data"] == key


@pytest.mark.parametrize(
    ("networks", "address", "allowed"),
    [
        (["192.0.2.0/24"], "192.0.2.77", True),
        (["192.0.2.0/24"], "::ffff:192.0.2.77", True),
        (["192.0.2.0/24"], "192.0.3.1", False),
        (["192.0.2.7", "2001:db8::/32"], "2001:db8:1::9", True),
        (["2001:db8::/32"], "[2001:db8::1]:4711", True),
        (["2001:db8::/32"], "2001:db9::1", False),
        (["0.0.0.0/0"], "2001:db9::1", False),
        (["::ffff:192.0.2.7"], "192.0.2.7", True),
        (["::ffff:192.0.2.0/120"], "::ffff:192.0.2.7", True),
        (["::ffff:192.0.2.0/120"], "192.0.3.7", False),
        (["::ffff:0:0/95"], "192.0.2.7", False),
        (["0.0.0.0/0", "::/0"], "unknown", False),
    ],
)
def test_a_key_is_used_from_its_ip_addresses_only(
    *, app_with: Callable[..., Flask], alice: Client, make_key: Make, networks: list[str], address: str, allowed: bool
) -> None:
    key = make_key(alice, allowed_ips=networks).key
    behind = Client(app_with(trusted_proxies="1").test_client(), key)
    answer = behind.get("/api/account", headers={"X-Forwarded-For": address})
    assert code(answer) == ((200, "") if allowed else (403, "address_not_allowed"))


def test_an_update_with_a_past_time_ends_a_key(alice: Client, make_key: Make) -> None:
    client = make_key(alice)
    ended = alice.put(f"/api/key/{client.id}/update", {"expires": "2020-01-01 00:00:00"}).get_json()["data"]
    assert ended["expires"] == "2020-01-01 00:00:00"
    assert code(client.get("/api/account")) == (401, "key_expired")
    assert alice.put(f"/api/key/{client.id}/update", {"expires": ""}).get_json()["data"]["expires"] is None
    assert client.get("/api/account").status_code == 200


def test_a_key_expires_after_the_lifetime_of_all_keys(
    app_with: Callable[..., Flask], register: Callable[..., Client], make_key: Make, sql: Sql
) -> None:
    alice = register("alice", via=app_with(key_lifetime_days="30"))
    client = make_key(alice, expires="2099-01-01 00:00:00")
    assert client.get("/api/account").status_code == 200
    sql("UPDATE api_keys SET created = now() - interval '30 days' RETURNING 1")
    assert code(client.get("/api/account")) == (401, "key_expired")
    client.key = alice.post(f"/api/key/{client.id}/rotate", {}).get_json()["key"]
    assert client.get("/api/account").status_code == 200


def test_a_rotated_key_works_until_the_overlap_ends(alice: Client, make_key: Make, sql: Sql) -> None:
    old = make_key(alice)
    answer = alice.post(f"/api/key/{old.id}/rotate", {"overlap": 3600})
    rotated, read = answer.get_json(), alice.get(f"/api/key/{old.id}")
    new = Client(alice.http, rotated["key"])
    assert rotated["prefix"] == rotated["key"][:8]
    assert (rotated["record"], answer.headers["ETag"]) == (read.get_json()["record"], read.headers["ETag"])
    assert read.get_json()["data"]["previous_until"] == rotated["previous_until"]
    assert [client.get("/api/account").status_code for client in (old, new)] == [200, 200]
    sql("UPDATE api_keys SET previous_until = now() RETURNING 1")
    assert [client.get("/api/account").status_code for client in (old, new)] == [401, 200]
    assert alice.get(f"/api/key/{old.id}").get_json()["data"]["previous_until"] is None


def test_without_an_overlap_the_previous_key_stops_at_once(alice: Client, make_key: Make) -> None:
    old = make_key(alice)
    first = alice.post(f"/api/key/{old.id}/rotate", {"overlap": 60}).get_json()["key"]
    second = alice.post(f"/api/key/{old.id}/rotate", {}).get_json()
    assert second["previous_until"] is None
    answers = [Client(alice.http, key).get("/api/account").status_code for key in (old.key, first, second["key"])]
    assert answers == [401, 401, 200]


def test_a_key_cannot_be_limited_to_domains_of_others(alice: Client, bob: Client, sql: Sql) -> None:
    foreign = factories.domain(sql, bob.id)
    own = factories.domain(sql, alice.id)
    assert code(alice.post("/api/key/add", EVERYTHING | {"domains": [own, foreign]})) == (400, "domains_unknown")
    key_id = alice.add("/api/key/add", EVERYTHING | {"domains": [own]})
    assert code(alice.put(f"/api/key/{key_id}/update", {"domains": [foreign]})) == (400, "domains_unknown")
    sql("DELETE FROM domains RETURNING 1")
    record = alice.get(f"/api/key/{key_id}").get_json()["data"]
    assert record["domains"] == [own]
    assert alice.put(f"/api/key/{key_id}/update", record).status_code == 200


def test_a_new_key_must_expire_in_the_future(alice: Client) -> None:
    answer = alice.post("/api/key/add", EVERYTHING | {"expires": "2020-01-01 00:00:00"})
    message = "expires must be in the future. Send a later time, or none for a key that does not expire."
    assert answer.get_json()["message"] == message


@pytest.mark.parametrize("overlap", [-1, 7 * 86400 + 1, "60", 1.5])
def test_an_overlap_of_more_than_a_week_is_refused(alice: Client, make_key: Make, overlap: object) -> None:
    client = make_key(alice)
    assert code(alice.post(f"/api/key/{client.id}/rotate", {"overlap": overlap})) == (400, "invalid")
    assert client.get("/api/account").status_code == 200


def test_the_description_names_a_pattern_for_secret_scanners(app: Flask) -> None:
    document = app.test_client().get("/api/openapi.json").get_json()
    [section] = [tag for tag in document["tags"] if tag["name"] == "Keys"]
    [pattern] = re.findall(r"`(lmk_\S+)`", section["description"])
    found = re.findall(pattern, f"key = '{keys.new_scoped_key()}'")
    assert len(found) == 1
    assert keys.is_well_formed(found[0])


def test_a_user_has_at_most_100_keys(alice: Client, make_key: Make, sql: Sql) -> None:
    own = make_key(alice)
    sql(
        """
        INSERT INTO api_keys (user_id, name, prefix, digest, scopes)
        SELECT %(id)s, 'Old', 'lmk_', sha256(n::text::bytea), '{*}' FROM generate_series(3, 100) AS n RETURNING 1
        """,
        id=alice.id,
    )
    child = own.add("/api/key/add", EVERYTHING)
    for client in (alice, own):
        assert code(client.post("/api/key/add", EVERYTHING)) == (400, "keys_full")
    alice.delete(f"/api/key/{child}/delete")
    make_key(alice)
