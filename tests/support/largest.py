"""The longest rows that a user can store, and more of them than a page of a list has room for."""

import json

from linkmgr.core.database.statements import Row
from tests.support.factories import Sql

ROWS = 990  # with those of the world, fewer than the largest `limit`
_PAIRS = 10_000  # the most rows of statistics
_WIDE = "\U0001f600"  # four bytes
_NAME, _TEXT, _LONG = f"rpad(n::text, 255, '{_WIDE}')", f"repeat('{_WIDE}', 255)", f"repeat('{_WIDE}', 1000)"
_URL, _ALIAS = "'https://example.com/' || rpad(n || '-', 2028, 'x')", "rpad(n || '-', 100, 'x')"
_LABELS = ("country", "referrer", "browser", "os", "device", "city", "language", "utm_medium", "variant", "kind")
_LABEL = f"rpad(n::text, 100, '{_WIDE}')"
# By table: columns besides `user_id`, and their values. The parameters are the parents of the rows.
_RESOURCES = {
    "links": ("alias, url, title, description", f"{_ALIAS}, {_URL}, {_TEXT}, {_LONG}"),
    "bios": ("alias, name, bio, links", f"'bio-' || n, {_NAME}, {_LONG} || {_LONG}, %(links)s::json"),
    "domains": (
        "scheme, host, redirectroot, redirect404, brandname, brandlogo, problem",
        f"'https', n || repeat('.' || repeat('x', 60), 3), {_URL}, {_URL}, repeat('{_WIDE}', 60), {_URL}, {_TEXT}",
    ),
    "splash_pages": ("name, title, message, link", f"{_NAME}, {_TEXT}, {_LONG} || {_LONG}, {_URL}"),
    "overlays": ("type, name, message, link", f"'message', {_NAME}, {_LONG} || {_LONG}, {_URL}"),
    "overlay_answers": ("overlay_id, answer", "%(overlay)s, json_build_object('email', repeat('x', 16000))"),
    "pixels": ("type, name, tag", f"'bing', {_NAME}, {_ALIAS}"),
    "qrs": (
        "code, type, data, name, background, foreground",
        f"'code-' || n, 'text', to_json(repeat('x', 2000)), {_NAME}, 'rgb(255,255,255)', 'rgb(0,0,0)'",
    ),
    "campaigns": ("name, slug, public", f"{_NAME}, rpad(n || '-', 50, 'x'), true"),
    "channels": ("name, description, color", f"{_NAME}, {_LONG}, '#ffffff'"),
    "imports": ("state, source, name, message, finished", f"'done', 'csv', {_TEXT}, {_LONG}, now()"),
    "events": ("type, data, created", "'link.created', json_build_object('id', n, 'url', repeat('x', 18900)), now()"),
    "import_rows": (
        "import_id, number, place, file, name, lines, raw, code, message",
        "%(import)s, 1 + n, 0, 'links', '', 1, json_build_object('URL', repeat('x', 15000)), 'invalid', ''",
    ),
}
_OTHERS = (
    """
    INSERT INTO binned_links
    SELECT binned.*
      FROM links l,
           jsonb_populate_record(NULL::binned_links, to_jsonb(l) || jsonb_build_object(
               'id', nextval('tracked_ids'), 'alias', 'bin-' || id, 'binned', now(), 'channel_ids', '{}'::text)) binned
     WHERE l.user_id = %(user_id)s
    """,
    f"""
    INSERT INTO link_checks (link_id, user_id, checked, state, reason, target, title)
    SELECT id, user_id, now(), 'broken', 'status', repeat('x', 2048), {_TEXT}
      FROM links
     WHERE user_id = %(user_id)s
        ON CONFLICT DO NOTHING
    """,
    """
    INSERT INTO channel_items (user_id, channel_id, link_id)
    SELECT user_id, %(channel)s, id FROM links WHERE user_id = %(user_id)s
        ON CONFLICT DO NOTHING
    """,
    """
    INSERT INTO deliveries (webhook_id, number, state, response)
    SELECT %(webhook)s, number, 'failed', repeat(chr(1), 1000) FROM events WHERE user_id = %(user_id)s
    """,
    f"""
    INSERT INTO missing_paths (user_id, domain_id, day, path, visits)
    SELECT %(user_id)s, %(domain)s, (now() AT TIME ZONE 'UTC')::date - n %% 30,
           rpad((n / 30)::text, 100, '{_WIDE}'), 123456789
      FROM generate_series(30, 30 * {ROWS}) n
    """,
    f"""
    INSERT INTO reports (kind, link_id, host, reason, text)
    SELECT 'report', id, 'example.com', 'spam', repeat('{_WIDE}', 500)
      FROM links, generate_series(1, 5)
     WHERE user_id = %(user_id)s
    """,
    f"""
    INSERT INTO visits (tracked_id, at, visitor, utm_source, utm_campaign, {", ".join(_LABELS)})
    SELECT tracked_id, now() - n * interval '1 microsecond', '', {_LABEL}, {", ".join([_LABEL] * 11)}
      FROM (VALUES (%(link)s::bigint, {_PAIRS}), (%(qr)s, {ROWS})) tracked (tracked_id, number),
           generate_series(1, number) n
    """,
)


def fill(sql: Sql, user_id: int, parents: Row) -> None:
    """Store them. `parents` has a row of each kind that others belong to, by its name in paths."""
    links = json.dumps([{"title": _WIDE * 255, "url": f"https://example.com/{'x' * 500}"}] * 40, ensure_ascii=False)
    values = {"user_id": user_id, "links": links} | parents
    sql("SELECT create_partition(now())")
    for table, (columns, row) in _RESOURCES.items():
        sql(
            f"INSERT INTO {table} (user_id, {columns}) SELECT %(user_id)s, {row} FROM generate_series(1, {ROWS}) n",
            **values,
        )
    for statement in _OTHERS:
        sql(statement, **values)
