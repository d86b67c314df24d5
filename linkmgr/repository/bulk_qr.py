"""QR codes of a bulk request, stored by one statement."""

import orjson
import psycopg2

from linkmgr.db.statements import Row, run
from linkmgr.errors import AppError
from linkmgr.fields.colors import readable
from linkmgr.fields.qr import new_code
from linkmgr.repository.bulk import failure, in_halves
from linkmgr.settings import settings


def add(user_id: int, codes: list[Row], *, atomic: bool) -> list[Row]:
    """Store QR codes and return their results in the same order: `id` and `link`, or `code` and `message`. `logo` is
    the stored form of the image. With `atomic`, either all codes are stored or none."""
    return in_halves(codes, lambda some: _to_results(some, _insert(user_id, some, atomic)), atomic)


def _to_results(codes: list[Row], stored: Row) -> list[Row]:
    results: list[Row] = [{} for _ in codes]
    for number, code_id, link in stored["added"] or ():
        results[number - 1] = {"id": code_id, "link": link}
    for number, code in stored["refused"] or ():
        colors = codes[number - 1]["foreground"], codes[number - 1]["background"]
        results[number - 1] = failure(AppError(code, color=readable(*colors), background=readable(*colors[::-1])))
    return results


def _insert(user_id: int, codes: list[Row], atomic: bool) -> Row:
    images = list({code["logo"] for code in codes if "logo" in code})
    numbers: dict[bytes, int] = {image: number for number, image in enumerate(images, 1)}
    members = [
        {name: value for name, value in code.items() if name != "logo"}
        | {"code": new_code(), "image": numbers.get(code.get("logo", b""))}
        for code in codes
    ]
    stored = run(
        """
        WITH checked AS MATERIALIZED (
            SELECT q.*,
                   CASE WHEN contrast(foreground, background) < 3 THEN 'colours_too_close'
                        WHEN own_alias IS NOT NULL AND NOT EXISTS (
                             SELECT FROM aliases WHERE alias = own_alias AND domain_id = 0) THEN 'short_link_unknown'
                        WHEN type = 'link' AND EXISTS (
                             SELECT FROM live_domains d
                              WHERE host = host_of(data #>> '{}')
                                AND NOT EXISTS (SELECT FROM aliases a
                                                 WHERE a.domain_id = d.id
                                                   AND a.alias = substring(data #>> '{}' FROM
                                                           '^' || d.scheme || '://[^/:?#]+/([A-Za-z0-9_-]+)/?$')))
                             THEN 'link_branded' END AS refusal
              FROM ROWS FROM (json_to_recordset(%(codes)s::json) AS (
                   code text, type text, data json, name text, background text, foreground text, own_alias text,
                   logo_source text, image integer)) WITH ORDINALITY
                   AS q (code, type, data, name, background, foreground, own_alias, logo_source, image, n)),
        accepted AS MATERIALIZED (
            SELECT nextval('tracked_ids') AS id, c.*
              FROM (SELECT * FROM checked WHERE refusal IS NULL ORDER BY n) c
             WHERE NOT (%(atomic)s::boolean AND EXISTS (SELECT FROM checked WHERE refusal IS NOT NULL))),
        added AS (
            INSERT INTO qrs (id, user_id, code, type, data, name, background, foreground, logo, logo_source)
            SELECT id, %(user_id)s, code, type, data, name, background, foreground, (%(images)s::bytea[])[image],
                   logo_source
              FROM accepted
             ORDER BY n)
        SELECT (SELECT json_agg(json_build_array(n, id, %(base)s::text || '/qr/' || code)) FROM accepted) AS added,
               (SELECT json_agg(json_build_array(n, refusal)) FROM checked WHERE refusal IS NOT NULL) AS refused
        """,
        user_id=user_id,
        codes=orjson.dumps(members).decode(),
        images=[psycopg2.Binary(image) for image in images],
        atomic=atomic,
        base=settings().base_url,
    )
    assert stored
    return stored
