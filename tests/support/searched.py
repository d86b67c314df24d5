"""Links that are searched."""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from linkmgr.core.database.statements import Row
from tests.support.factories import Sql

if TYPE_CHECKING:
    from tests.conftest import Client


@dataclass
class Stock:
    sql: Sql

    def add(self, owner: "Client", *titles: str) -> list[int]:
        """Add links of a user, one for each title, and return their ids."""
        made = self.sql(
            """
            INSERT INTO links (user_id, alias, url, title, metatitle)
            SELECT %(owner)s, 'Al' || nextval('tracked_ids'), 'https://example.com/p' || number, title, title
              FROM unnest(%(titles)s::text[]) WITH ORDINALITY AS titles (title, number)
            RETURNING id
            """,
            owner=owner.id,
            titles=list(titles),
        )
        return [link["id"] for link in made]

    def index(self) -> None:
        """Move the entries of all links into the index, as jobs do."""
        self.sql("SELECT gin_clean_pending_list('links_search')")

    def texts(self, owner: "Client") -> list[Row]:
        """Return the links of a user with what a search reads, in lower case."""
        return self.sql(
            "SELECT id, lower(concat_ws(chr(10), url, alias, title)) AS text FROM links WHERE user_id = %(id)s",
            id=owner.id,
        )


@pytest.fixture
def stock(sql: Sql) -> Stock:
    return Stock(sql)


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
