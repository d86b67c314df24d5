"""How long the delete of a row takes that many others depend on, and how long until these are gone."""

import statistics
import time
from contextlib import closing
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import psycopg2

from bench.data import Data

FEW = 1_000
TURNS = 3

_LINKS = """
    INSERT INTO links (user_id, alias, url)
    SELECT %(owner)s, 'delete-' || %(parent)s || '-' || n, 'https://example.com/' FROM generate_series(1, %(rows)s) n
"""
_VISITS = """
    INSERT INTO visits (target_id, at, visitor, country, referrer, browser, os)
    SELECT %(parent)s, now() - random() * interval '20 days', sha256(int4send(n)), 'Peru', '', 'Firefox', 'Linux'
      FROM generate_series(1, %(rows)s) n;
    INSERT INTO visitors SELECT %(parent)s, sha256(int4send(n)) FROM generate_series(1, %(rows)s) n;
    INSERT INTO totals VALUES (%(parent)s, %(rows)s, %(rows)s);
"""
_REFER = """
    UPDATE links SET {} WHERE id = ANY (ARRAY(SELECT id FROM links WHERE user_id = %(user_id)s LIMIT %(rows)s))
"""


class Case(NamedTuple):
    rows: int
    path: str
    parent: str  # makes it
    dependants: str  # makes them


CASES = {
    "a link with 1,000,000 visits": Case(
        1_000_000,
        "url",
        "INSERT INTO links (user_id, alias, url) VALUES (%(user_id)s, 'delete-' || %(turn)s, '') RETURNING id",
        _VISITS,
    ),
    "a user with 150,000 links": Case(
        150_000,
        "user",
        """
        INSERT INTO users (username, email, password_hash, key_digest, key_ciphertext, plan_id)
        SELECT 'delete-' || %(turn)s, 'delete-' || %(turn)s, '', %(turn)s::bytea, '', id FROM plans WHERE name = 'Pro'
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
        "INSERT INTO campaigns (user_id, name, public) VALUES (%(user_id)s, 'delete-' || %(turn)s, true) RETURNING id",
        _REFER.format("campaign_id = %(parent)s"),
    ),
}


def _seconds(base: str, made: Data, case: Case, rows: int, turn: str) -> tuple[float, float]:
    """Seconds of the delete, and until all dependants are gone."""
    with closing(psycopg2.connect(made.dsn)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("SET statement_timeout = 0; UPDATE users SET admin = true WHERE username = 'bench' RETURNING id")
        values: dict[str, Any] = {"user_id": cursor.fetchall()[0][0], "rows": rows, "turn": turn}
        cursor.execute(case.parent, values)
        values["parent"] = cursor.fetchall()[0][0]
        cursor.execute(case.dependants, values)
        cursor.execute("ANALYZE; CHECKPOINT")
        headers = {"Authorization": f"Bearer {made.key}"}
        with urlopen(Request(f"{base}/api/account", headers=headers)):  # what comes first pays for the checkpoint
            pass
        began = time.monotonic()
        delete = Request(f"{base}/api/{case.path}/{values['parent']}/delete", method="DELETE", headers=headers)
        with urlopen(delete):
            deleted = time.monotonic() - began
        while True:
            cursor.execute("SELECT count(*) FROM jobs")
            if cursor.fetchall() == [(0,)]:
                return deleted, time.monotonic() - began
            time.sleep(0.1)


def compare(base: str, made: Data, *, times: int = 1, turns: int = TURNS) -> dict[str, float]:
    """How many times as long each takes as with 1,000, in alternating turns."""
    ratios = {}
    for name, case in CASES.items():
        few, many = [], []
        for turn in range(turns):
            few.append(_seconds(base, made, case, FEW, f"few-{turn}")[0])
            many.append(_seconds(base, made, case, case.rows * times, f"many-{turn}"))
        seconds, gone = (statistics.median(values) for values in zip(*many, strict=True))
        ratios[name] = round(seconds / statistics.median(few), 2)
        print(f"{name:34}{ratios[name]:8.2f}  {seconds * 1000:7.1f} ms, all gone after {gone:.0f} s", flush=True)
    return ratios
