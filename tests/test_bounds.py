"""The bounds of each table: in number or age, and in bytes. Expired rows are deleted while the service runs."""

from collections import Counter
from collections.abc import Callable

import pytest
from flask import Flask

from tests.conftest import ROOT, Client
from tests.support.factories import Sql
from tests.support.races import at_once
from tests.support.resources import STORED
from tests.support.targets import wait_until

SCHEMA = "schema.sql"
RATE = ("a row for each request or row of a bulk request", "linkmgr/core/settings.py", "bulk_rows: str")
PLAN = ("the number of the plan", SCHEMA, "PERFORM check_plan(")
QUARTERS = ("quarters 400 days; days by target and label", "linkmgr/visits/store.py", "DETAILED_DAYS = 400")
PARENT = "what it belongs to"
# The bound of each table in number or age, the file that enforces it, and text of that place.
BOUNDS = {kind.words.table: RATE for kind in STORED} | {
    "account_labels": QUARTERS,
    "account_targets": QUARTERS,
    "account_totals": QUARTERS,
    "aliases": (
        f"{PARENT}: links and bio pages; and a row for each deleted QR code",
        SCHEMA,
        "CHECK (num_nonnulls(link_id, bio_id, owner_id) = 1)",
    ),
    "api_keys": ("100", "linkmgr/features/scoped_keys/repository.py", "'api_keys', 100, 'keys_full'"),
    "binned_links": (
        "the number of the plan, 30 days",
        "linkmgr/repository/link_bin.py",
        "total - (limits ->> 'links')",
    ),
    "channel_items": (f"{PARENT}, at most once a channel", SCHEMA, "UNIQUE NULLS NOT DISTINCT (channel_id"),
    "conversions": ("1,000,000", "linkmgr/features/conversions/repository.py", "100, 1_000_000"),
    "deliveries": (
        "1000 bytes of its event each",
        "linkmgr/features/webhooks/outbox.py",
        "%(delivery_bytes)s * cardinality(webhooks)",
    ),
    "domains": PLAN,
    "events": (
        "100,000, 256 MiB and 30 days, of the audit trail 365 days",
        "linkmgr/features/webhooks/outbox.py",
        "oldest.bytes <= newest.bytes - %(max_bytes)s",
    ),
    "identities": ("one of each issuer that was set", SCHEMA, "UNIQUE (user_id, issuer)"),
    "factors": ("20", "linkmgr/features/signin/factors.py", "'factors', 20, 'factors_full'"),
    "idempotency_keys": (
        "20,000, 32 MiB and 24 hours",
        "linkmgr/core/web/idempotency_store.py",
        "bytes > %(max_bytes)s",
    ),
    "import_rows": (
        "waiting: 16 MiB an import and its file; failed: 10,000 an import, 16 MiB and 30 days",
        "linkmgr/features/imports/job.py",
        "import_rows.MAX_ERROR_BYTES - details",
    ),
    "imports": ("3 unfinished, 1000 that have ended", "linkmgr/features/imports/repository.py", "MAX_KEPT = 1000"),
    "jobs": ("one for 1000 deleted rows", SCHEMA, "row_number() OVER (PARTITION BY user_id) / 1000 AS batch"),
    "link_checks": (f"{PARENT}: a link", SCHEMA, "link_id bigint      PRIMARY KEY"),
    "links": PLAN,
    "logos": ("each counts as 4 KiB at least", SCHEMA, "HAVING sum(greatest(octet_length(image), 4 << 10)) > 32 << 20"),
    "mailed": ("60 days, what is read in a look", "linkmgr/features/mail/repository.py", '"sent", "60 days"'),
    "outbox": ("100,000", "linkmgr/features/webhooks/outbox.py", "kept=MAX_WAITING"),
    "missing_paths": (
        "1000 paths of a domain, 30 days",
        "linkmgr/features/missing_paths/repository.py",
        "KEPT_DAYS = 30\nMAX_PATHS = 1000",
    ),
    "overlay_answers": ("100,000 an overlay", "linkmgr/repository/overlay.py", "MAX_ANSWERS = 100_000"),
    "overlays": PLAN,
    "pixels": PLAN,
    "plans": ("administrators only", "linkmgr/console/admin_plans.py", "bp"),
    "kept_qrs": RATE,
    "public_statistics": (
        f"{PARENT}, once a link or campaign",
        SCHEMA,
        "UNIQUE NULLS NOT DISTINCT (user_id, link_id, campaign_id)",
    ),
    "rate_windows": (
        "an hour after the window",
        "linkmgr/repository/purge.py",
        'older_than("rate_windows", "until", "1 hour")',
    ),
    "reports": (
        "20 a link, 10,000 open, 90 days; blocks of administrators; a list of 100,000",
        "linkmgr/features/reports/repository.py",
        "MAX_OF_PERSON, MAX_OF_LINK, MAX_OPEN = 2, 20, 10_000",
    ),
    "members": (
        "500, and invitations 7 days",
        "linkmgr/features/members/repository.py",
        "'members', 500, 'members_full'",
    ),
    "service": ("1 row", SCHEMA, "INSERT INTO service"),
    "sessions": ("100 and 30 days", "linkmgr/core/web/session_store.py", "MAX_SESSIONS = 100"),
    "splash_pages": PLAN,
    "utm_templates": ("100", "linkmgr/features/utm/repository.py", "'utm_templates', 100, 'utm_full'"),
    "totals": (f"{PARENT}: a link or QR code", SCHEMA, "tracked_id bigint PRIMARY KEY,\n    clicks"),
    "tracked_rollups": ("quarters 400 days; 1000 labels", "linkmgr/visits/store.py", "MAX_LABELS = 1000"),
    "taken_clicks": (f"{PARENT}: a link", SCHEMA, "link_id bigint PRIMARY KEY,\n    total"),
    "usage_parts": ("32 parts of each table", SCHEMA, "pg_backend_pid() % 32"),
    "users": ("administrators only", "linkmgr/console/admin_users.py", "bp"),
    "visit_minutes": ("2 hours", "linkmgr/repository/purge.py", 'older_than("visit_minutes", "minute", "2 hours")'),
    "visit_months": ("four rows a month", "linkmgr/repository/purge.py", "WHERE month < this_month()"),
    "visit_spools": ("a file of a process", "linkmgr/visits/store.py", "DELETE FROM visit_spools"),
    "visitors": ("a row for each visitor with visits", "linkmgr/repository/purge.py", "def _forget_visitors"),
    "visits": ("the plan's clicks a month and retention", "linkmgr/repository/purge.py", "def _delete_visits"),
    "webhooks": ("20", "linkmgr/features/webhooks/repository.py", "'webhooks', 20, 'webhooks_full'"),
}
BODY = ("64 KiB each, as the body of a request", "linkmgr/core/web/request.py", "MAX_BODY = 64 * 1024")
LABELS = ("100 characters a label", "linkmgr/visits/dimensions.py", "MAX_LABEL = 100")
FIXED = ("numbers, times, digests and names that the service gives", SCHEMA, "")
ADMINISTRATORS = ("administrators only", SCHEMA, "")
# The same in bytes.
BYTES = {kind.words.table: BODY for kind in STORED} | {
    "account_labels": LABELS,
    "account_targets": FIXED,
    "account_totals": FIXED,
    "aliases": ("100 characters each", "linkmgr/core/fields/aliases.py", "MAX_ALIAS = 100"),
    "api_keys": BODY,
    "bios": ("64 KiB each", SCHEMA, "CONSTRAINT too_large CHECK (octet_length(links"),
    "binned_links": ("as links", SCHEMA, "CREATE TABLE binned_links (\n    LIKE links,"),
    "channel_items": FIXED,
    "conversions": (
        "50 and 100 characters, and 100 a label",
        "linkmgr/features/conversions/repository.py",
        "MAX_EVENT, MAX_ORDER = 50, 100",
    ),
    "deliveries": ("1000 characters of the response each", "linkmgr/features/webhooks/sender.py", "MAX_KEPT = 1000"),
    "events": ("256 MiB", "linkmgr/features/webhooks/outbox.py", "MAX_BYTES = 256 << 20"),
    "identities": ("255 characters of a claim", "linkmgr/features/signin/oidc.py", "MAX_TEXT = 255"),
    "factors": BODY,
    "idempotency_keys": ("32 MiB", "linkmgr/core/web/idempotency_store.py", "MAX_NUMBER, MAX_BYTES = 20_000, 32 << 20"),
    "import_rows": (
        "48 MiB waiting, 16 MiB failed",
        "linkmgr/features/imports/job.py",
        "MAX_STAGED = 16 << 20",
    ),
    "imports": (
        "a body each; 1 MiB while a service is read",
        "linkmgr/features/imports/repository.py",
        "cursor = CASE WHEN",
    ),
    "jobs": FIXED,
    "link_checks": ("255 characters of a title", "linkmgr/features/health/requests.py", "MAX_TITLE = 255"),
    "links": ("64 KiB each, 40 MiB a minute in bulk", "linkmgr/features/bulk/row_budget.py", "ROW_BYTES = 8 << 10"),
    "logos": ("32 MiB", SCHEMA, "> 32 << 20"),
    "mailed": FIXED,
    "outbox": ("names and URLs of a deleted row", SCHEMA, "'{id,alias,url,title,name,slug,code,type,host,tag"),
    "missing_paths": ("101 characters each", "linkmgr/core/fields/aliases.py", "MAX_ALIAS = 100"),
    "overlay_answers": ("16 KiB each", "linkmgr/repository/overlay.py", "MAX_ANSWER = 16 << 10"),
    "plans": ADMINISTRATORS,
    "kept_qrs": ("40 MiB a minute in bulk", "linkmgr/features/bulk/row_budget.py", "ROW_BYTES = 8 << 10"),
    "public_statistics": FIXED,
    "rate_windows": FIXED,
    "reports": ("500 characters", SCHEMA, "CHECK (length(text) <= 500)"),
    "members": BODY,
    "service": FIXED,
    "sessions": (
        "60 characters of a name, 4096 of an ID token",
        "linkmgr/console/login.py",
        "_MAX_NAME = 60",
    ),
    "totals": LABELS,
    "tracked_rollups": LABELS,
    "taken_clicks": FIXED,
    "usage_parts": FIXED,
    "users": ADMINISTRATORS,
    "visit_minutes": FIXED,
    "visit_months": FIXED,
    "visit_spools": FIXED,
    "visitors": FIXED,
    "visits": LABELS,
    "webhooks": BODY,
}
TABLES = """
    SELECT relname FROM pg_class
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
"""
EXPIRED = """
    WITH answer AS (
        INSERT INTO idempotency_keys (user_id, key, response, created)
        VALUES (%(owner)s, 'expired', 'x', now() - interval '25 hours')),
    window_ended AS (
        INSERT INTO rate_windows (bucket, count, until) VALUES ('expired', 1, now() - interval '2 hours')),
    failed AS (
        INSERT INTO imports (user_id, state, source, on_conflict, failed, finished)
        VALUES (%(owner)s, 'done', 'csv', 'skip', 1, now() - interval '31 days') RETURNING id),
    failed_row AS (
        INSERT INTO import_rows (user_id, import_id, number, place, file, name, lines, raw, code, message)
        SELECT %(owner)s, id, 1, 0, 'links', '', 1, '{}', 'invalid', 'wrong' FROM failed),
    draft AS (
        INSERT INTO imports (user_id, state, source, on_conflict, created)
        VALUES (%(owner)s, 'draft', 'csv', 'skip', now() - interval '2 days'))
    INSERT INTO events (user_id, type, data, created)
    VALUES (%(owner)s, 'link.created', '{}', now() - interval '31 days'),
           (0, 'audit.plan', '{}', now() - interval '366 days'),
           (0, 'audit.plan', '{"id": 7}', now() - interval '364 days') RETURNING number
"""
LEFT = """
    SELECT FROM idempotency_keys
     UNION ALL SELECT FROM rate_windows WHERE bucket = 'expired'
     UNION ALL SELECT FROM import_rows
     UNION ALL SELECT FROM imports WHERE state = 'draft'
     UNION ALL SELECT FROM events WHERE data = '{}'
"""


def test_each_table_has_a_bound(app: Flask, sql: Sql) -> None:
    assert {table["relname"] for table in sql(TABLES)} == BOUNDS.keys() == BYTES.keys()
    places = [*BOUNDS.values(), *BYTES.values()]
    assert [place for _, file, place in places if place not in (ROOT / file).read_text()] == []


@pytest.mark.slow
def test_expired_rows_are_deleted_while_the_service_runs(serve: Callable[..., str], alice: Client, sql: Sql) -> None:
    sql(EXPIRED, owner=alice.id)
    assert len(sql(LEFT)) == 6
    serve("--workers=1")
    wait_until(lambda: not sql(LEFT))
    assert len(sql("SELECT FROM events WHERE data ->> 'id' = '7'")) == 1


@pytest.mark.parametrize(
    ("path", "most", "code"),
    [("/api/key/add", 100, "keys_full"), ("/api/utm/add", 100, "utm_full"), ("/api/webhooks", 20, "webhooks_full")],
)
def test_of_concurrent_creates_only_the_last_row_is_stored(
    app: Flask, alice: Client, path: str, most: int, code: str
) -> None:
    body = {"name": "No. 1", "scopes": ["*"], "events": ["*"]}
    for _ in range(most - 1):
        alice.add(path, body)
    answers = at_once(16, lambda _: Client(app.test_client(), alice.key).post(path, body).get_json().get("code"))
    assert Counter(answers) == {None: 1, code: 15}
