"""Measure the delete of a row with many dependent rows, and the background job that deletes or
clears them."""

import statistics
import time
from contextlib import closing
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import psycopg2

from bench.data import Data

FEW = 1_000
ROUNDS = 3
HEAD = f"""
| Delete | Time relative to {FEW:,} dependent rows | Time | All dependent rows deleted or cleared after |
|---|--:|--:|--:|"""

_LINKS = """
    INSERT INTO links (user_id, alias, url)
    SELECT %(owner)s, 'delete-' || %(parent)s || '-' || n, 'https://example.com/'
      FROM generate_series(1, %(rows)s) n
"""
_VISITS = """
    INSERT INTO visits (tracked_id, at, visitor, country, referrer, browser, os)
    SELECT %(parent)s, now() - random() * interval '20 days', sha256(int4send(n)), 'Peru', '',
           'Firefox', 'Linux'
      FROM generate_series(1, %(rows)s) n;
    INSERT INTO visitors SELECT %(parent)s, sha256(int4send(n)), current_date
      FROM generate_series(1, %(rows)s) n;
    INSERT INTO totals VALUES (%(parent)s, %(rows)s, %(rows)s);
"""
_REFER = """
    UPDATE links SET {}
     WHERE id = ANY (ARRAY(SELECT id FROM links WHERE user_id = %(user_id)s LIMIT %(rows)s))
"""


class Case(NamedTuple):
    rows: int
    path: str
    parent: str  # SQL that creates the row
    dependants: str  # SQL that creates the dependent rows


CASES = {
    "a link with 1,000,000 visits": Case(
        1_000_000,
        "url",
        "INSERT INTO links (user_id, alias, url) VALUES (%(user_id)s, 'delete-' || %(round)s, '') "
        "RETURNING id",
        _VISITS,
    ),
    "a user with 150,000 links": Case(
        150_000,
        "user",
        """
        INSERT INTO users (username, email, password_hash, key_digest, key_ciphertext, plan_id)
        SELECT 'delete-' || %(round)s, 'delete-' || %(round)s, '', %(round)s::bytea, '', id
          FROM plans
         WHERE name = 'Pro'
        RETURNING id
        """,
        _LINKS.replace("%(owner)s", "%(parent)s"),
    ),
    "a splash page with 100,000 links": Case(
        100_000,
        "splash",
        "INSERT INTO splash_pages (user_id, name) VALUES (%(user_id)s, 'delete') RETURNING id",
        _REFER.format("type = 'splash', splash_id = %(parent)s"),
    ),
    "a campaign with 200,000 links": Case(
        200_000,
        "campaign",
        "INSERT INTO campaigns (user_id, name, public) VALUES (%(user_id)s, 'delete-' || "
        "%(round)s, true) RETURNING id",
        _REFER.format("campaign = %(parent)s"),
    ),
}


def _seconds(base: str, data: Data, case: Case, rows: int, name: str) -> tuple[float, float]:
    """Return the seconds until the response, and until no job is left."""
    with closing(psycopg2.connect(data.dsn)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("SET statement_timeout = 0")
        cursor.execute(
            "UPDATE users SET admin = true WHERE id = (SELECT user_id FROM links WHERE id = %s) RETURNING id",
            [data.link],
        )
        values: dict[str, Any] = {"user_id": cursor.fetchall()[0][0], "rows": rows, "round": name}
        cursor.execute(case.parent, values)
        values["parent"] = cursor.fetchall()[0][0]
        cursor.execute(case.dependants, values)
        cursor.execute("ANALYZE; CHECKPOINT")
        headers = {"Authorization": f"Bearer {data.key}"}
        # The first request after a checkpoint is slower
        with urlopen(Request(f"{base}/api/account", headers=headers)):
            pass
        began = time.monotonic()
        delete = Request(
            f"{base}/api/{case.path}/{values['parent']}/delete", method="DELETE", headers=headers
        )
        with urlopen(delete):
            deleted = time.monotonic() - began
        while True:
            cursor.execute("SELECT count(*) FROM jobs")
            if cursor.fetchall() == [(0,)]:
                return deleted, time.monotonic() - began
            time.sleep(0.1)


def compare(base: str, data: Data) -> dict[str, float]:
    """Measure few and many dependent rows alternately, and return the ratio of the response times
    by case."""
    print(HEAD)
    ratios = {}
    for name, case in CASES.items():
        few, many = [], []
        for number in range(ROUNDS):
            few.append(_seconds(base, data, case, FEW, f"few-{number}")[0])
            many.append(_seconds(base, data, case, case.rows, f"many-{number}"))
        response, done = (statistics.median(values) for values in zip(*many, strict=True))
        ratios[name] = round(response / statistics.median(few), 2)
        print(f"| {name} | {ratios[name]:.2f} | {response * 1000:.1f} ms | {done:.0f} s |", flush=True)
    return ratios
