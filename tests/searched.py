"""Links that are searched, and the jobs that make blocks of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from linkmgr.db.statements import Row
from linkmgr.repository import link_blocks
from tests.factories import Sql

if TYPE_CHECKING:
    from tests.conftest import Client


@dataclass
class Stock:
    sql: Sql
    run_jobs: Callable[[], None]

    def add(self, owner: "Client", *titles: str) -> list[int]:
        """Add links of a user, one for each title, and return their ids."""
        made = self.sql(
            """
            INSERT INTO links (user_id, alias, url, title)
            SELECT %(owner)s, 'Al' || nextval('target_ids'), 'https://example.com/p' || number, title
              FROM unnest(%(titles)s::text[]) WITH ORDINALITY AS titles (title, number)
            RETURNING id
            """,
            owner=owner.id,
            titles=list(titles),
        )
        return [link["id"] for link in made]

    def enqueue(self, owner: "Client") -> None:
        self.sql(
            """
            INSERT INTO jobs (kind, argument)
            VALUES ('links_added', jsonb_build_object('user_id', %(owner)s::bigint)), ('links_changed', '{}')
            RETURNING 1
            """,
            owner=owner.id,
        )

    def index(self, owner: "Client") -> None:
        """Make blocks of all links of a user, as if there were many, and of the changed links."""
        self.enqueue(owner)
        self.run_jobs()

    def blocks(self, owner: "Client") -> list[int]:
        """Return the last id of each block of a user."""
        rows = self.sql("SELECT last_id FROM link_blocks WHERE user_id = %(id)s ORDER BY last_id", id=owner.id)
        return [row["last_id"] for row in rows]

    def texts(self, owner: "Client") -> list[Row]:
        """Return the links of a user with what a search reads, in lower case."""
        return self.sql(
            "SELECT id, lower(concat_ws(chr(10), url, alias, title)) AS text FROM links WHERE user_id = %(id)s",
            id=owner.id,
        )


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make blocks of four links, and do not wait for transactions."""
    monkeypatch.setattr(link_blocks, "MAX_LINKS", 4)
    monkeypatch.setattr(link_blocks, "_WAIT_SECONDS", 0)


@pytest.fixture
def stock(sql: Sql, run_jobs: Callable[[], None]) -> Stock:
    return Stock(sql, run_jobs)


def found(client: "Client", q: str, limit: int = 4, order: str = "date") -> list[int]:
    """Return the ids on all pages of a search, and check them against its total."""
    ids: list[int] = []
    for page in range(1, 100):
        answer = client.get(f"/api/urls?q={quote(q)}&limit={limit}&page={page}&order={order}")
        assert answer.status_code == 200, answer.text
        data = answer.get_json()["data"]
        ids += [link["id"] for link in data["urls"]]
        if len(ids) >= data["result"]:
            assert len(ids) == data["result"]
            return ids
    raise AssertionError("pages without end")


def retitle(client: "Client", link_id: int, title: str) -> None:
    assert client.put(f"/api/url/{link_id}/update", {"metatitle": title}).status_code == 200
