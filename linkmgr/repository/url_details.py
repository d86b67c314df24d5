"""A link with its statistics, and every member of its body in the form in which it is sent."""

from collections.abc import Callable
from typing import Any

from linkmgr.db.statements import Row, replica_row, row
from linkmgr.errors import not_found
from linkmgr.repository import visits
from linkmgr.settings import settings

# `related` is None for the many links that refer to no other rows.
_LINK = """
    SELECT l.version::text, l.id, alias, url AS longurl, title, description, locations AS location,
           devices AS device, expires AS expiry, created AS date, imported_clicks, url,
           t.clicks, t.visitors, t.counted, t.top_labels,
           CASE WHEN custom THEN alias ELSE '' END AS custom, password_hash IS NOT NULL AS haspassword, type,
           languages, parameters, title AS metatitle, metadescription, metaimage, deeplink,
           CASE WHEN public THEN 'public' ELSE 'private' END AS status,
           CASE WHEN num_nonnulls(domain_id, campaign_id, splash_id, overlay_id, pixel_ids) > 0
                  OR EXISTS (SELECT FROM channel_items i WHERE i.user_id = l.user_id AND i.link_id = l.id)
                THEN link_references(l.user_id, l.id) END AS related
      FROM links l
      LEFT JOIN totals t ON t.tracked_id = l.id
     WHERE l.user_id = %(user_id)s AND l.id = %(link_id)s
"""
_UNRELATED: Row = {"domain": None, "campaign": None, "pixels": [], "channel": []}


def read(user_id: int, link_id: int) -> Row:
    """Return the link. Its statistics are the member `data`."""
    return _read(replica_row, user_id, link_id)


def read_current(user_id: int, link_id: int) -> Row:
    """Return the link as the last write left it, which a replica may not have yet."""
    return _read(row, user_id, link_id)


def _read(fetch: Callable[..., Row | None], user_id: int, link_id: int) -> Row:
    link = fetch(_LINK, user_id=user_id, link_id=link_id)
    if link is None:
        raise not_found("link")
    data = visits.statistics(fetch, link_id, {name: link.pop(name) for name in visits.TOTALS})
    related = link.pop("related") or _UNRELATED
    return _with_members(link | related | {"data": data})


def _with_members(link: Row) -> Row:
    domain = link["domain"] or settings().base_url
    return link | {
        "shorturl": f"{domain}/{link['alias']}",
        "domain": domain,
        "geotarget": targets("location", link["location"]),
        "devicetarget": targets("device", link["device"]),
        "languagetarget": targets("language", link.pop("languages")),
        "parameters": [{"name": name, "value": value} for name, value in link["parameters"]],
    }


def targets(selector: str, urls: dict[str, str]) -> list[dict[str, Any]]:
    return [{selector: label, "link": url} for label, url in urls.items()]
