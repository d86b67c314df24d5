"""A model-based test of restricted keys: after any calls, they changed and read nothing outside of their limits.

Two keys of one user call all operations: one has only its own rows, the other a domain. The rows that a key may not use
are computed from the tables, not by the views of schema.sql. After each call of a restricted key these rows are
unchanged, and no text of theirs is in the response.
"""

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from linkmgr.openapi.model import Access
from linkmgr.resources.kinds import KINDS
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.operations import KEYED, Call
from tests.support.worlds import Rows

pytestmark = pytest.mark.slow

Row = dict[str, Any]

CALLS = [call for call in KEYED if call.operation.access is Access.USER and "/key" not in call.path]
ACTORS = ("default", "own", "domain")
TABLES = {kind: factories.TABLES[kind] for kind in ("link", "qr", *(kind.path for kind in KINDS))}
DERIVED = {"usage_parts", "jobs", "totals", "aliases", "outbox", "events"}  # of the rows of other tables
TEXTS = ("name", "title", "url", "host", "message")
_numbers = count(1)

steps = st.lists(
    st.tuples(st.sampled_from(ACTORS), st.sampled_from(CALLS), st.integers(0, 2**20), st.integers(0, 2**20)),
    min_size=5,
    max_size=25,
)


class Keys:
    """A user with some rows, and the clients of three keys."""

    def __init__(self, owner: Client, sql: Sql, dump: Callable[[], Rows]) -> None:
        self.owner, self.sql, self.dump = owner, sql, dump
        for make in (*factories.ALL.values(), factories.domain):
            make(sql, owner.id)
        self.domain = max(row["id"] for row in self.rows("domains"))
        own = owner.post("/api/key/add", {"name": "Own", "scopes": ["*"], "own_only": True}).get_json()
        limited = owner.post("/api/key/add", {"name": "Domain", "scopes": ["*"], "domains": [self.domain]}).get_json()
        self.own_id = own["id"]
        self.dumped = dump()  # after the last call
        self.clients = {
            "default": owner,
            "own": Client(owner.http, own["key"], owner.id),
            "domain": Client(owner.http, limited["key"], owner.id),
        }

    def rows(self, table: str) -> list[Row]:
        return self.sql(f"SELECT * FROM {table} WHERE user_id = %(id)s ORDER BY id", id=self.owner.id)

    def pick(self, kind: str, number: int) -> int:
        ids = [row["id"] for row in self.rows(TABLES[kind])] if kind in TABLES else []
        return ids[number % len(ids)] if ids else 2**62

    def body(self, call: Call, number: int) -> Row | None:
        """Return the example of an operation with a new text, and references to any rows."""
        if call.example is None:
            return None
        text = f"text{next(_numbers)}x"
        body = {name: f"{text}" if name in ("name", "metatitle") else value for name, value in call.complete().items()}
        if "/url/" in call.path:
            references: list[Row] = [
                {"campaign": self.pick("campaign", number)},
                {"pixels": [self.pick("pixel", number)]},
                {"channel": [self.pick("channel", number)]},
                {"type": f"overlay-{self.pick('overlay', number)}"},
                {"type": self.pick("splash", number)},
                {"custom": text},
                {},
            ]
            hosts = [f"{row['scheme']}://{row['host']}" for row in self.rows("domains")]
            domain = [{"domain": host} for host in hosts] + [{}, {"domain": ""}]
            url = f"https://example.com/{text if number % 3 else 'same'}"
            body = {"url": url} | references[number % len(references)] | domain[number // 7 % len(domain)]
        return {
            name: value for name, value in body.items() if name not in ("logo", "alias", "slug", "email", "password")
        }

    # --- the rows that a key may not use

    def is_outside(self, actor: str, table: str, row: Row, links: set[int]) -> bool:
        if actor == "own":
            if "key_id" in row:
                return bool(row["key_id"] != self.own_id)
            return row.get("link_id") is None or row["link_id"] not in links
        if table == "links":
            return bool(row["domain_id"] != self.domain)
        return row.get("link_id") is None or row["link_id"] not in links

    def outside(self, actor: str) -> Rows:
        rows = {table: found for table, found in self.dumped.items() if table not in DERIVED}
        mine = [row for row in rows["links"] if not self.is_outside(actor, "links", row, set())]
        links = {row["id"] for row in mine}
        items = {  # of own bio pages, QR codes and channels
            (kind, row["id"]) for kind in ("bios", "qrs") for row in rows[kind] if row.get("key_id") == self.own_id
        }

        def is_item(row: Row) -> bool:
            return actor == "own" and (("bios", row.get("bio_id")) in items or ("qrs", row.get("qr_id")) in items)

        return {
            table: [row for row in found if self.is_outside(actor, table, row, links) and not is_item(row)]
            for table, found in rows.items()
        }

    def hidden_texts(self, actor: str, outside: Rows) -> set[str]:
        tables = TABLES.values() if actor == "own" else ("links", "bios", "qrs")
        rows = [row for table in tables for row in outside[table]]
        if actor == "domain":
            rows += [row for row in outside["domains"] if row["id"] != self.domain]
        texts = {row[name] for row in rows for name in TEXTS if isinstance(row.get(name), str)}
        return {text for text in texts if text.startswith(("text", "https://example.com/text", "go"))}

    def step(self, actor: str, call: Call, place: int, number: int) -> None:
        ids = [self.pick(kind, place + shift * 3) for shift, kind in enumerate(call.rows)]
        body = self.body(call, number)
        before = self.outside(actor) if actor != "default" else {}
        answer = self.clients[actor].call(call.method, call.path_of(ids), body)
        self.dumped = self.dump()
        if actor == "default":
            return
        after = self.outside(actor)
        assert after == before, f"{actor}: {call} {ids} {body}"
        sent = json.dumps(body)
        for text in self.hidden_texts(actor, before):
            assert text in sent or f'"{text}' not in answer.text, f"{actor}: {call} {ids} read {text}"


def test_limited_keys_change_and_read_nothing_outside_of_their_limits(
    register: Callable[..., Client], sql: Sql, dump: Callable[[], Rows]
) -> None:
    @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
    @example(
        [
            (actor, call, n, n)
            for n in (0, 8, 16, 23, 34)
            for call in CALLS
            for actor in ("own", "domain", "default")
            if call.method != "DELETE" and (n <= 8 or "/url/" in call.path)  # whose bodies differ by the number
        ]
    )
    @given(steps)
    def run(sequence: list[tuple[str, Call, int, int]]) -> None:
        keys = Keys(register(f"user{next(_numbers)}"), sql, dump)
        try:
            for step in sequence:
                keys.step(*step)
        finally:
            sql("DELETE FROM users WHERE id = %(id)s RETURNING 1", id=keys.owner.id)
            for table in ("channel_items", *TABLES.values()):
                sql(f"DELETE FROM {table} WHERE user_id = %(id)s RETURNING 1", id=keys.owner.id)

    run()
