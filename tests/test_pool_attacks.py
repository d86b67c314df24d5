"""One user's slow readers and uploads leave threads for others, and passwords take turns, without nginx."""

import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlencode

import pytest
from argon2 import PasswordHasher

from linkmgr.core.web import passwords
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.raw_http import BOUND, many, seconds_for

pytestmark = pytest.mark.services
CLIENTS = 8  # twice the threads of the worker
PASSWORDS = 96  # within the limit of an IP address


class User:
    """A user with a long list of failed rows and a link with a password."""

    def __init__(self, base: str, client: Client, sql: Sql, hasher: PasswordHasher, rows: int) -> None:
        self.base, self.client = base, client
        self.import_id = factories.an_import(sql, client.id)
        sql(
            """
            INSERT INTO import_rows (user_id, import_id, number, place, file, name, lines, raw, code, message)
            SELECT %(user_id)s, %(id)s, n, 0, 'links', '', 1, json_build_object('URL', repeat('x', 100000)), 'invalid',
                   ''
              FROM generate_series(2, %(rows)s) n
            RETURNING 1
            """,
            user_id=client.id,
            id=self.import_id,
            rows=rows,
        )
        link = factories.link(sql, client.id)
        [row] = sql(
            "UPDATE links SET password_hash = %(hash)s WHERE id = %(id)s RETURNING alias",
            hash=hasher.hash("open sesame"),
            id=link,
        )
        self.alias = row["alias"]

    def head(self, method: str, path: str, *lines: str) -> bytes:
        text = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {self.client.key}", *lines]
        return "\r\n".join([*text, "", ""]).encode()

    def ask(self, method: str, path: str, body: bytes | None = None) -> int:
        request = urllib.request.Request(f"{self.base}{path}", body, method=method)
        request.add_header("Authorization", f"Bearer {self.client.key}")
        with urllib.request.urlopen(request, timeout=BOUND) as answer:
            answer.read()
            return int(answer.status)

    def errors(self) -> bytes:
        return self.head("GET", f"/api/imports/{self.import_id}/errors", "Accept: application/json")

    def upload(self) -> bytes:
        return self.head("POST", "/api/imports?dry_run=1", "Content-Type: text/csv", "Content-Length: 9000000") + b"x"

    def unlock(self) -> bytes:
        form = urlencode({"password": "open sesame"})
        framing = f"Content-Length: {len(form)}", "Content-Type: application/x-www-form-urlencoded"
        return self.head("POST", f"/{self.alias}", *framing) + form.encode()


ATTACKS: dict[str, Callable[[User], bytes]] = {
    "slow readers of failed rows": User.errors,
    "slow uploads": User.upload,
    "correct passwords of a link": User.unlock,
}


@pytest.fixture
def attacker(unlimited: str, alice: Client, sql: Sql) -> User:
    memory, passes, lanes = passwords.MAX_COSTS
    hasher = PasswordHasher(memory_cost=memory, time_cost=passes, parallelism=lanes)
    return User(unlimited, alice, sql, hasher, rows=200)


@pytest.fixture
def victim(unlimited: str, bob: Client, sql: Sql) -> User:
    return User(unlimited, bob, sql, PasswordHasher(time_cost=1, memory_cost=8, parallelism=1), rows=3)


@contextmanager
def attacking(attacker: User, names: list[str]) -> Iterator[None]:
    with ExitStack() as stack:
        for name in names:
            number = PASSWORDS if ATTACKS[name] is User.unlock else CLIENTS
            stack.enter_context(many(attacker.base, ATTACKS[name](attacker), number, receive_buffer=4096))
        time.sleep(0.5)  # so that each has a thread, or was refused
        yield


@pytest.mark.parametrize("names", [*([name] for name in ATTACKS), [*ATTACKS]], ids=" and ".join)
def test_others_are_served_while_a_user_holds_what_takes_long(attacker: User, victim: User, names: list[str]) -> None:
    row = b"Long URL\nhttps://example.com/1\n" + b"\n" * (100 << 10)
    with attacking(attacker, names):
        for _ in range(3):
            assert seconds_for(f"{attacker.base}/healthz") < BOUND
            assert victim.ask("GET", f"/api/imports/{victim.import_id}/errors") == 200
            assert victim.ask("GET", "/api/urls/export") == 200
            assert victim.ask("POST", "/api/imports?dry_run=1", row) == 200
