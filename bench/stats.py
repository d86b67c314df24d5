"""Statistics of ten million visits of one link, in an account with 100,000 links.

SQL makes the visits and their rollups, because the service would take an hour to store them.
"""

import statistics
import time
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection
from typing import Any

import psycopg2

from bench import data
from bench.servers import gunicorn

LINKS, VISITS, DAYS = 100_000, 10_000_000, 390
BATCH = 1_000_000
ROUNDS = 30
REQUESTS = {
    "one link, 30 days by day": "/api/stats?ids={link}&by=time:day",
    "one link, 30 days by day and country": "/api/stats?ids={link}&by=time:day,country",
    "one link, 12 months by month and country": "/api/stats?ids={link}&by=time:month,country&period=12mo",
    "account, 30 days by day": "/api/stats?by=time:day",
    "account, 12 months by month and country": "/api/stats?by=time:month,country&period=12mo",
    "account, the same in New York": "/api/stats?by=time:month,country&period=12mo&timezone=America/New_York",
}
HEAD = f"""
| Request, with {VISITS:,} visits of one link | Time relative to a single read |
|---|--:|"""

_PARTITIONS = "SELECT create_partition(now() - make_interval(days => n)) FROM generate_series(0, %(days)s) n"
_VISITS = """
    INSERT INTO visits (tracked_id, at, visitor, country, referrer, browser, os)
    SELECT %(link)s, now() - random() * make_interval(days => %(days)s),
           sha256(int4send((random() * 1e6)::int)),
           'Country ' || floor(150 ^ random()), floor(2000 ^ random()) || '.example',
           'Browser ' || floor(40 ^ random()), 'System ' || floor(20 ^ random())
      FROM generate_series(1, %(batch)s)
"""
# As linkmgr/visits/store.py does it, but for all visits at once. Rows are stored in the order of
# time there too.
_COUNTED = """
    CREATE TEMPORARY TABLE counted AS
    SELECT * FROM (
    SELECT tracked_id, unit, start AS at, bot, count(*) AS visits,
           CASE GROUPING(country, city, referrer, browser, os, device, language, kind)
                WHEN 127 THEN 'country' WHEN 191 THEN 'city' WHEN 223 THEN 'referrer' WHEN 239
                  THEN 'browser'
                WHEN 247 THEN 'os' WHEN 251 THEN 'device' WHEN 253 THEN 'language' WHEN 254
                  THEN 'kind'
                ELSE '' END AS dimension,
           coalesce(country, city, referrer, browser, os, device, language, kind, '') AS label
      FROM visits,
           LATERAL (VALUES ('quarter', date_bin('15 minutes', at, 'epoch')),
                           ('day', date_trunc('day', at, 'UTC')),
                           ('all', '-infinity')) AS units (unit, start)
     WHERE tracked_id = %(link)s
     GROUP BY tracked_id, unit, start, bot, GROUPING SETS (
           (), (country), (city), (referrer), (browser), (os), (device), (language), (kind))) labels
     WHERE label <> 'Unknown'
"""
_TRACKED = """
    INSERT INTO tracked_rollups (tracked_id, unit, bot, at, visits, labels)
    SELECT tracked_id, unit, bot, at, max(visits),
           jsonb_object_agg(dimension, labels) FILTER (WHERE dimension <> '')
      FROM (SELECT tracked_id, unit, bot, at, dimension, sum(visits) AS visits,
                   jsonb_object_agg(label, visits) AS labels
              FROM counted
             GROUP BY tracked_id, unit, bot, at, dimension) per_dimension
     GROUP BY tracked_id, unit, bot, at
     ORDER BY at
"""
_ACCOUNTS = """
    SELECT add_account_sums(day_sums(sums))
      FROM (SELECT array_agg(ROW(user_id, tracked_id, bot, at, dimension, label, visits)::visit_sum) AS sums
              FROM counted, (SELECT user_id FROM links WHERE id = %(link)s) owner
             WHERE unit = 'quarter'
             GROUP BY date_trunc('day', at, 'UTC')
             ORDER BY date_trunc('day', at, 'UTC')) days
"""


def _make(dsn: str) -> data.Data:
    rows = data.make(dsn, links=LINKS, visits=1000)
    with closing(psycopg2.connect(dsn)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("SET synchronous_commit = off; SET work_mem = '256MB'")
        cursor.execute("TRUNCATE visits, tracked_rollups, account_totals, account_targets, account_labels")
        cursor.execute("ALTER TABLE visits DISABLE TRIGGER USER")
        values: dict[str, Any] = {"link": rows.link, "days": DAYS, "batch": min(BATCH, VISITS)}
        cursor.execute(_PARTITIONS, values)
        for _ in range(VISITS // values["batch"]):
            cursor.execute(_VISITS, values)
        cursor.execute("ALTER TABLE visits ENABLE TRIGGER USER")
        for statement in (_COUNTED, _TRACKED, _ACCOUNTS):
            cursor.execute(statement, values)
        cursor.execute("VACUUM ANALYZE")
    return rows


def _seconds(connection: HTTPConnection, path: str, key: dict[str, str]) -> float:
    started = time.perf_counter()
    connection.request("GET", path, headers=key)
    response = connection.getresponse()
    response.read()
    if response.status != HTTPStatus.OK:
        raise SystemExit(f"{path}: {response.status}")
    return time.perf_counter() - started


def measure(dsn: str) -> dict[str, float]:
    """Return the times of requests for statistics, relative to that of a single read."""
    print(f"Creating {VISITS:,} visits ...", flush=True)
    started = time.monotonic()
    rows = _make(dsn)
    print(f"Created in {time.monotonic() - started:.0f} seconds.")
    key = {"Authorization": f"Bearer {rows.key}"}
    print(HEAD)
    ratios = {}
    with (
        gunicorn("app:app", **data.settings(dsn)) as (base, _),
        closing(HTTPConnection(base[7:])) as connection,
    ):
        for name, path in REQUESTS.items():
            paths = f"/api/url/{rows.link}", path.format(link=rows.link)
            times = [[_seconds(connection, url, key) for url in paths] for _ in range(ROUNDS)]
            single, measured = map(statistics.median, zip(*times, strict=True))
            ratios[name] = round(measured / single, 2)
            print(f"| {name} | {ratios[name]:.2f} |", flush=True)
    return ratios
