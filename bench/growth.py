"""python -m bench.growth: the bytes that links and visits take, by table and index.

The visits are stored as the service stores them, and the tables are vacuumed after each day, as
autovacuum does on an installation.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from random import Random
from time import time
from typing import Any

import orjson
import psycopg2

from bench import data
from bench.servers import postgres
from linkmgr import create_app
from linkmgr.core.database import migrations
from linkmgr.repository import users
from linkmgr.visits import store
from linkmgr.visits.counting import Visit
from linkmgr.visits.dimensions import UNKNOWN

LINKS, VISITS, DAYS = 5_000, 100_000, 25
_BATCH = 500
_PERSONS = 20_000
_BOTS, _WITH_CITY, _DIRECT, _WITH_UTM = 0.05, 0.4, 0.5, 0.1  # parts of the visits
_NOTED = 0.5  # least number of bytes of a printed row
_AGENTS = [
    ("Mobile Safari", "iOS", "phone"), ("Chrome Mobile", "Android", "phone"), ("Chrome", "Windows", "desktop"),
    ("Safari", "Mac OS X", "desktop"), ("Edge", "Windows", "desktop"), ("Firefox", "Windows", "desktop"),
    ("Chrome", "Mac OS X", "desktop"), ("Samsung Internet", "Android", "phone"), ("Firefox", "Linux", "desktop"),
    ("Mobile Safari", "iOS", "tablet"), ("Facebook", "iOS", "phone"), ("Opera", "Windows", "desktop"),
]  # fmt: skip
_LANGUAGES = ["English", "German", "French", "Spanish", "Portuguese", "Japanese", "Polish", "Dutch", UNKNOWN]
HEAD = """
| Table or index | Rows | Bytes per link | Bytes per visit |
|---|--:|--:|--:|"""

# All partitions of `visits` together.
_SIZES = """
    SELECT coalesce(parent.relname, c.relname) AS name, sum(greatest(c.reltuples, 0))::bigint AS rows,
           sum(CASE c.relkind WHEN 'i' THEN pg_relation_size(c.oid) ELSE pg_table_size(c.oid) END)::bigint AS size
      FROM pg_class c
      LEFT JOIN pg_inherits ON inhrelid = c.oid
      LEFT JOIN pg_class parent ON parent.oid = inhparent
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'i')
     GROUP BY 1
"""


class Sizes(dict[str, tuple[int, int]]):
    """Bytes and rows by the name of a table or index."""

    def added(self, earlier: "Sizes", name: str) -> int:
        return self[name][0] - earlier.get(name, (0, 0))[0]


def _sizes(cursor: Any) -> Sizes:
    cursor.execute("VACUUM ANALYZE")
    cursor.execute(_SIZES)
    return Sizes({name: (size, rows) for name, rows, size in cursor.fetchall()})


def _frequent(random: Random, number: int) -> int:
    """Return a number below another one: the n-th occurs 1/n times as often as the first."""
    return int((number + 1) ** random.random()) - 1


def _visit(random: Random, user_id: int, link: int, at: float) -> Visit:
    is_bot = random.random() < _BOTS
    browser, system, device = _AGENTS[_frequent(random, len(_AGENTS))]
    country = _frequent(random, 150)
    has_utm = random.random() < _WITH_UTM
    return Visit(
        tracked_id=link,
        user_id=user_id,
        at=at,
        visitor=f"{random.randrange(_PERSONS) * 2**32 + link:014x}",
        country=f"Country {country}",
        referrer="Direct, email and other"
        if random.random() < _DIRECT
        else f"site{_frequent(random, 1000)}.example.com",
        browser=f"bot{_frequent(random, 20)}" if is_bot else browser,
        os=UNKNOWN if is_bot else system,
        social=None,
        bot=is_bot,
        device=UNKNOWN if is_bot else device,
        city=f"City {country}-{_frequent(random, 30)}" if random.random() < _WITH_CITY else UNKNOWN,
        language=_LANGUAGES[_frequent(random, len(_LANGUAGES))],
        utm_source=f"newsletter-{_frequent(random, 10)}" if has_utm else UNKNOWN,
        utm_medium="email" if has_utm else UNKNOWN,
        utm_campaign=f"campaign-{_frequent(random, 10)}" if has_utm else UNKNOWN,
    )


def _batches(user_id: int, links: list[int]) -> Iterator[list[Visit]]:
    random, now = Random(1), time()  # noqa: S311 - reproducible
    for start in range(0, VISITS, _BATCH):
        yield [
            _visit(random, user_id, random.choice(links), now - DAYS * 86400 * (1 - number / VISITS))
            for number in range(start, start + _BATCH)
        ]


def _store(cursor: Any, user_id: int, links: list[int]) -> None:
    per_day = VISITS // _BATCH // DAYS
    for number, visits in enumerate(_batches(user_id, links)):
        batch = orjson.dumps([asdict(visit) for visit in visits]).decode()
        store.create_partitions_for(batch)
        store.add("growth", number, number + 1, batch)
        if number % per_day == 0:
            cursor.execute("VACUUM ANALYZE")


def measure(dsn: str) -> dict[str, dict[str, float]]:
    """Fill an empty database. Return the bytes per link and per visit by table and index."""
    app = create_app(**data.settings(dsn))
    with app.app_context(), closing(psycopg2.connect(dsn)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        migrations.upgrade(create=True)
        user_id = users.next_id()
        data.insert_unlimited(cursor, user_id)
        empty = _sizes(cursor)
        data.insert_links(cursor, user_id, LINKS)
        with_links = _sizes(cursor)
        cursor.execute("SELECT id FROM links ORDER BY id")
        _store(cursor, user_id, [link for (link,) in cursor.fetchall()])
        with_visits = _sizes(cursor)
    print(HEAD)
    growth: dict[str, dict[str, float]] = {}
    for name in sorted(with_visits, key=lambda name: -with_visits.added(empty, name)):
        per_link = with_links.added(empty, name) / LINKS
        per_visit = with_visits.added(with_links, name) / VISITS
        if max(per_link, per_visit) >= _NOTED:
            growth[name] = {"link": round(per_link, 1), "visit": round(per_visit, 1)}
            print(f"| {name} | {with_visits[name][1]:,} | {per_link:.0f} | {per_visit:.1f} |")
    totals = {kind: round(sum(bytes_of[kind] for bytes_of in growth.values())) for kind in ("link", "visit")}
    print(f"| all | | {totals['link']} | {totals['visit']} |", flush=True)
    return growth | {"all": {kind: float(total) for kind, total in totals.items()}}


if __name__ == "__main__":
    with postgres() as (dsn, _):
        measure(dsn)
