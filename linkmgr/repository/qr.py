"""QR codes. Table `totals` counts their scans."""

from collections.abc import Callable
from typing import Unpack

import orjson
import psycopg2

from linkmgr.core.database.halves import failure, in_halves
from linkmgr.core.database.paging import NamedPaging, Page, named_page
from linkmgr.core.database.statements import Row, replica_row, row, rows, run, run_one
from linkmgr.core.database.tables import BATCH
from linkmgr.core.errors import AppError, existing, required
from linkmgr.core.fields.qr import new_code
from linkmgr.core.settings import settings
from linkmgr.visits import store


def index(user_id: int, **paging: Unpack[NamedPaging]) -> Page:
    codes = named_page(
        """
        SELECT id, code,
               coalesce((SELECT clicks FROM totals WHERE tracked_id = qrs.id), 0) AS scans, name,
               created AS date, updated
          FROM qrs
         WHERE user_id = %(user_id)s AND has_text(name, %(q)s)
        """,
        counted="qrs",
        user_id=user_id,
        **paging,
    )
    codes.rows[:] = [{"id": code.pop("id"), "link": link(code.pop("code"))} | code for code in codes.rows]
    return codes


def read_from_replica(user_id: int, qr_id: int, *, statistics: bool = True) -> Row:
    code = _read(replica_row, user_id, qr_id, statistics=statistics)
    return code if statistics else {name: code[name] for name in code if name != "statistics"}


def read(user_id: int, qr_id: int) -> Row:
    return _read(row, user_id, qr_id)


def _read(fetch: Callable[..., Row | None], user_id: int, qr_id: int, *, statistics: bool = True) -> Row:
    stored = fetch(
        """
        SELECT q.version::text, id, code, name, created AS date, updated, type, data, background,
               foreground,
               CASE WHEN logo_hash IS NULL THEN '' ELSE logo_source END AS logo, clicks, visitors,
               CASE WHEN %(statistics)s::boolean THEN top_labels END AS top_labels
          FROM qrs q
          LEFT JOIN totals t ON tracked_id = id
         WHERE user_id = %(user_id)s AND id = %(qr_id)s
        """,
        user_id=user_id,
        qr_id=qr_id,
        statistics=statistics,
    )
    return _to_record(existing(stored, "QR code"))


def link(code: str) -> str:
    return f"{settings().base_url}/qr/{code}"


def _to_record(code: Row) -> Row:
    statistics = store.statistics({name: code.pop(name) for name in store.TOTALS})
    first = {"version": code.pop("version"), "id": code.pop("id"), "link": link(code.pop("code"))}
    return first | {"scans": statistics["clicks"]} | code | {"statistics": statistics}


def batch(user_id: int, after: int) -> list[Row]:
    codes = rows(
        """
        SELECT id, code, name, created AS date, updated, type, data, background, foreground,
               CASE WHEN logo_hash IS NULL THEN '' ELSE logo_source END AS logo,
               coalesce(clicks, 0) AS scans, coalesce(visitors, 0) AS uniquescans,
               ARRAY(SELECT channel_id FROM channel_items i
                       JOIN channels c ON c.user_id = i.user_id AND c.id = channel_id
                      WHERE i.user_id = q.user_id AND i.qr_id = q.id
                      ORDER BY channel_id) AS channel
          FROM qrs q
          LEFT JOIN totals t ON tracked_id = id
         WHERE user_id = %(user_id)s AND id > %(after)s
         ORDER BY id
         LIMIT %(limit)s
        """,
        user_id=user_id,
        after=after,
        limit=BATCH,
    )
    return [code | {"link": link(code["code"])} for code in codes]


def _params(user_id: int, members: Row) -> Row:
    encoded = {"data": orjson.dumps(members["data"]).decode(), "user_id": user_id}
    return {"logo": None, "logo_source": None} | members | encoded


def add(user_id: int, members: Row) -> Row:
    """Store a QR code and return its record. `own_alias` must be in use if it is not None."""
    added = run(
        """
        WITH added AS (
            INSERT INTO qrs (user_id, code, type, data, name, background, foreground, logo_hash,
                             logo_source)
            SELECT %(user_id)s, %(code)s, %(type)s, %(data)s, %(name)s, %(background)s,
                   %(foreground)s, store_logo(%(user_id)s, %(logo)s), %(logo_source)s
             WHERE %(own_alias)s::text IS NULL
                OR (alias_at(NULL, %(own_alias)s)).domain_id = 0
            RETURNING *)
        SELECT version::text, id, code, name, created AS date, updated, type, data, background,
               foreground, CASE WHEN logo_hash IS NULL THEN '' ELSE logo_source END AS logo,
               NULL AS clicks, NULL AS visitors, NULL AS top_labels
          FROM added
         WHERE (type <> 'link' OR require_code_target(data))
           AND require_unblocked(user_id, to_jsonb(added))
        """,
        **_params(user_id, members),
    )
    return _to_record(required(added, "short_link_unknown"))


def update(user_id: int, qr_id: int, members: Row) -> Row:
    """Write the members that are not None, and return the record. An empty logo removes the logo. A
    name that is still `old_name` becomes `new_name`. `own_alias` must be in use if the data changes
    and it is not None."""
    updated = run(
        """
        WITH updated AS (
            UPDATE qrs
               SET data = %(data)s::json,
                   name = coalesce(%(name)s, CASE name WHEN %(old_name)s THEN %(new_name)s END,
                                   name),
                   background = coalesce(%(background)s, background),
                   foreground = coalesce(%(foreground)s, foreground),
                   logo_hash = CASE WHEN %(logo)s::bytea IS NULL THEN logo_hash
                                    ELSE store_logo(%(user_id)s, %(logo)s) END,
                   logo_source = nullif(coalesce(%(logo_source)s, logo_source), '')
             WHERE user_id = %(user_id)s AND id = %(qr_id)s
               AND (%(own_alias)s::text IS NULL OR data::text = %(data)s::json::text
                    OR (alias_at(NULL, %(own_alias)s)).domain_id = 0)
            RETURNING *)
        SELECT u.version::text, u.id, u.code, u.name, u.created AS date, u.updated, u.type, u.data,
               u.background, u.foreground,
               CASE WHEN u.logo_hash IS NULL THEN '' ELSE u.logo_source END AS logo, clicks,
               visitors, top_labels
          FROM updated u
          JOIN qrs before ON before.id = u.id
          LEFT JOIN totals t ON tracked_id = u.id
         WHERE (u.type <> 'link' OR require_code_target(u.data, before.data))
           AND require_unblocked(u.user_id, to_jsonb(u), to_jsonb(before))
        """,
        qr_id=qr_id,
        **_params(user_id, members),
    )
    if updated is None:
        read(user_id, qr_id)  # raises not_found
        raise AppError("short_link_unknown")
    return _to_record(updated)


def delete(user_id: int, qr_id: int) -> None:
    """Delete a QR code, or one in the bin, forever."""
    deleted = run(
        "DELETE FROM kept_qrs WHERE user_id = %(user_id)s AND id = %(qr_id)s RETURNING id",
        user_id=user_id,
        qr_id=qr_id,
    )
    existing(deleted, "QR code")


def image_source(host: str | None, code: str, *, with_logo: bool) -> Row:
    """Return the data that the image of a QR code is rendered from. `logo` is None unless
    `with_logo`: it is large and rarely needed."""
    source = row(
        """
        SELECT user_id, type, data, foreground, background, logo_hash,
               (SELECT image FROM logos
                 WHERE %(with_logo)s::boolean AND logos.user_id = qrs.user_id
                   AND hash = logo_hash) AS logo
          FROM qrs
         WHERE code = %(code)s AND EXISTS (SELECT FROM users WHERE users.id = user_id)
           AND user_id = coalesce((SELECT user_id FROM live_domains WHERE host = %(host)s::text),
                                  user_id)
        """,
        host=host,
        code=code,
        with_logo=with_logo,
    )
    return required(source, "image_missing")


def logos(user_id: int, after: int) -> list[Row]:
    return rows(
        """
        SELECT id, translate(encode(image, 'base64'), chr(10), '') AS image
          FROM qrs
          JOIN logos USING (user_id)
         WHERE user_id = %(user_id)s AND id > %(after)s AND hash = logo_hash
         ORDER BY id
         LIMIT 20
        """,
        user_id=user_id,
        after=after,
    )


def add_many(user_id: int, codes: list[Row], *, atomic: bool) -> list[Row]:
    """Store QR codes and return their results in the same order: `id` and `link`, or `code` and
    `message`. `logo` is the stored form of the image. With `atomic`, either all codes are stored or
    none."""
    return in_halves(codes, lambda some: _to_results(some, _insert_many(user_id, some, atomic)), atomic)


def _to_results(codes: list[Row], stored: Row) -> list[Row]:
    results: list[Row] = [{} for _ in codes]
    for number, code_id, code in stored["added"] or ():
        results[number - 1] = {"id": code_id, "link": link(code)}
    for number, refusal in stored["refused"] or ():
        results[number - 1] = failure(AppError(refusal))
    return results


def _insert_many(user_id: int, codes: list[Row], atomic: bool) -> Row:
    # In order, so that no two requests deadlock
    images = sorted({code["logo"] for code in codes if "logo" in code})
    numbers: dict[bytes, int] = {image: number for number, image in enumerate(images, 1)}
    members = [
        {name: value for name, value in code.items() if name != "logo"}
        | {"code": new_code(), "image": numbers.get(code.get("logo", b""))}
        for code in codes
    ]
    return run_one(
        """
        WITH checked AS MATERIALIZED (
            SELECT q.*, ordinality AS n,
                   CASE WHEN own_alias IS NOT NULL AND (alias_at(NULL, own_alias)).domain_id IS NULL
                               THEN 'short_link_unknown'
                        WHEN has_blocked_url(%(user_id)s, to_jsonb(q), NULL) THEN 'target_blocked'
                        WHEN type = 'link' THEN code_refusal(data #>> '{}') END AS refusal
              FROM ROWS FROM (json_to_recordset(%(codes)s::json) AS (
                   code text, type text, data json, name text, background text, foreground text,
                   own_alias text, logo_source text, image integer)) WITH ORDINALITY AS q),
        accepted AS MATERIALIZED (
            SELECT nextval('tracked_ids') AS id, c.*
              FROM (SELECT * FROM checked WHERE refusal IS NULL ORDER BY n) c
             WHERE NOT (%(atomic)s::boolean
                        AND EXISTS (SELECT FROM checked WHERE refusal IS NOT NULL))),
        logo AS MATERIALIZED (
            SELECT image, store_logo(%(user_id)s, (%(images)s::bytea[])[image]) AS hash
              FROM (SELECT DISTINCT image FROM accepted ORDER BY image) images),
        added AS (
            INSERT INTO qrs (id, user_id, code, type, data, name, background, foreground, logo_hash,
                             logo_source)
            SELECT id, %(user_id)s, code, type, data, name, background, foreground, hash,
                   logo_source
              FROM accepted
              LEFT JOIN logo USING (image)
             ORDER BY n)
        SELECT (SELECT json_agg(json_build_array(n, id, code)) FROM accepted) AS added,
               (SELECT json_agg(json_build_array(n, refusal)) FROM checked
                 WHERE refusal IS NOT NULL) AS refused
        """,
        user_id=user_id,
        codes=orjson.dumps(members).decode(),
        images=[psycopg2.Binary(image) for image in images],
        atomic=atomic,
    )
