"""Everything that a user owns, in batches in the order of the ids.

A batch is a statement of its own: an export of any size keeps no transaction open and little in memory. Rows that are
added meanwhile may be missing.
"""

from collections.abc import Callable, Iterator

from linkmgr.db.statements import Row, row, rows
from linkmgr.errors import AppError
from linkmgr.repository.url_records import targets
from linkmgr.settings import settings

BATCH = 500  # rows in memory at a time
Batch = Callable[[int, int], list[Row]]  # of a user, behind an id

_UNRELATED: Row = {"campaign": None, "pixels": [], "channel": []}


def require_feature(user_id: int) -> None:
    """Raise `plan_feature` unless the plan of the user includes exports."""
    plan = row(
        """
        SELECT admin OR (limits -> 'export' ->> 'enabled' = '0') IS NOT TRUE AS allowed
          FROM accounts
         WHERE id = %(user_id)s
        """,
        user_id=user_id,
    )
    if plan and not plan["allowed"]:
        raise AppError("plan_feature", detail="exports")


def batches(batch: Batch, user_id: int, after: int = 0) -> Iterator[list[Row]]:
    """Yield the batches of all rows of a user behind an id."""
    while records := batch(user_id, after):
        after = records[-1]["id"]
        yield records


def links(user_id: int, after: int) -> list[Row]:
    """Links with the members that a single read shows, their statistics, and the names of their channels."""
    records = rows(
        """
        SELECT l.id, alias, url, title AS metatitle, metadescription, metaimage, description, created AS date,
               CASE WHEN custom THEN alias ELSE '' END AS custom, plain, d.scheme || '://' || d.host AS domain,
               password_hash, type, expires AS expiry, locations, devices, languages, parameters, deeplink,
               CASE WHEN public THEN 'public' ELSE 'private' END AS status,
               coalesce(clicks, 0) AS clicks, coalesce(visitors, 0) AS uniqueclicks, imported_clicks,
               CASE WHEN num_nonnulls(campaign_id, splash_id, overlay_id, pixel_ids) > 0
                      OR EXISTS (SELECT FROM channel_items i WHERE i.user_id = l.user_id AND i.link_id = l.id)
                    THEN link_references(l.user_id, l.id) END AS related,
               ARRAY(SELECT name FROM channel_items i JOIN channels c ON c.user_id = i.user_id AND c.id = channel_id
                      WHERE i.user_id = l.user_id AND i.link_id = l.id
                      ORDER BY channel_id) AS channels
          FROM links l
          LEFT JOIN domains d ON d.id = l.domain_id
          LEFT JOIN totals t ON t.tracked_id = l.id
         WHERE l.user_id = %(user_id)s AND l.id > %(after)s
         ORDER BY l.id
         LIMIT %(limit)s
        """,
        user_id=user_id,
        after=after,
        limit=BATCH,
    )
    return [_with_members(link) for link in records]


def _with_members(link: Row) -> Row:
    related, base = link.pop("related") or _UNRELATED, link["domain"] or settings().base_url
    link |= {name: value for name, value in related.items() if name != "domain"}
    link["shorturl"] = f"{base}/{link['alias']}"
    link["domain"] = base
    link["haspassword"] = link["password_hash"] is not None
    link["geotarget"] = targets("location", link.pop("locations"))
    link["devicetarget"] = targets("device", link.pop("devices"))
    link["languagetarget"] = targets("language", link.pop("languages"))
    link["parameters"] = [{"name": name, "value": value} for name, value in link["parameters"]]
    return link


def codes(user_id: int, after: int) -> list[Row]:
    return rows(
        """
        SELECT id, code, %(base)s::text || '/qr/' || code AS link, type, data, name, background, foreground,
               CASE WHEN logo IS NULL THEN '' ELSE coalesce(logo_source, '') END AS logo, created AS date,
               coalesce(clicks, 0) AS scans, coalesce(visitors, 0) AS uniquescans,
               ARRAY(SELECT channel_id FROM channel_items i
                       JOIN channels c ON c.user_id = i.user_id AND c.id = channel_id
                      WHERE i.user_id = qrs.user_id AND i.qr_id = qrs.id
                      ORDER BY channel_id) AS channel
          FROM qrs
          LEFT JOIN totals ON tracked_id = id
         WHERE user_id = %(user_id)s AND id > %(after)s
         ORDER BY id
         LIMIT %(limit)s
        """,
        user_id=user_id,
        after=after,
        limit=BATCH,
        base=settings().base_url,
    )


def logos(user_id: int, after: int) -> list[Row]:
    """The images of the logos of QR codes, in base64."""
    return rows(
        """
        SELECT id, translate(encode(logo, 'base64'), chr(10), '') AS image
          FROM qrs
         WHERE user_id = %(user_id)s AND id > %(after)s AND logo IS NOT NULL
         ORDER BY id
         LIMIT 20
        """,
        user_id=user_id,
        after=after,
    )


def domain_logos(user_id: int, ids: list[int]) -> dict[int, str]:
    """The images of the logos of these domains, in base64."""
    records = rows(
        """
        SELECT id, translate(encode(logo, 'base64'), chr(10), '') AS image
          FROM domains
         WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[]) AND logo IS NOT NULL
        """,
        user_id=user_id,
        ids=ids,
    )
    return {record["id"]: record["image"] for record in records}
