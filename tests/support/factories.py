"""Insert rows of a user directly, for tests that do not depend on how they are created. `sql` is the fixture."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from typing import Any

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.member import first_examples
from linkmgr.core.fields.resource import Stored
from linkmgr.features.members.schema import MEMBERS
from linkmgr.features.scoped_keys.schema import KEYS
from linkmgr.features.webhooks.schema import WEBHOOKS
from linkmgr.schemas.links import LINKS
from linkmgr.schemas.qr import QR_CODES
from linkmgr.visits import store as visits
from tests.support.resources import STORED

Sql = Callable[..., list[Row]]
Make = Callable[[Sql, int], int]

RESOURCES: tuple[Stored, ...] = (LINKS, QR_CODES, *STORED, KEYS, MEMBERS, WEBHOOKS)  # of users

_numbers = count(1)


def row(sql: Sql, table: str, **columns: Any) -> int:
    """Add a row with these columns, and return its id."""
    values = ", ".join(f"%({name})s" for name in columns)
    return int(sql(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values}) RETURNING id", **columns)[0]["id"])


def _usual(stored: Stored) -> Make:
    """Return the factory of a resource whose members are its columns."""
    return lambda sql, user_id: row(
        sql, stored.words.table, user_id=user_id, **first_examples(stored.resource.creates(), 0)
    )


def domain(sql: Sql, user_id: int) -> int:
    return row(sql, "domains", user_id=user_id, scheme="https", host=f"go{next(_numbers)}.example.com")


def plan(sql: Sql) -> int:
    """Add a plan with the limits of Business, which has every feature."""
    copied = "INSERT INTO plans (name, free, limits) SELECT %(name)s, free, limits FROM plans WHERE name = 'Business'"
    return int(sql(f"{copied} RETURNING id", name=f"Plan {next(_numbers)}")[0]["id"])


def splash(sql: Sql, user_id: int) -> int:
    return row(sql, "splash_pages", user_id=user_id, name="Welcome")


def overlay(sql: Sql, user_id: int) -> int:
    return row(sql, "overlays", user_id=user_id, type="newsletter", name="News")


def answer(sql: Sql, user_id: int) -> int:
    """Add an answer to the user's newest overlay."""
    [newest] = sql("SELECT max(id) AS id FROM overlays WHERE user_id = %(user_id)s", user_id=user_id)
    sent = '{"email": "visitor@example.com"}'
    return row(sql, "overlay_answers", user_id=user_id, overlay_id=newest["id"], answer=sent)


def missing_path(
    sql: Sql, user_id: int, domain_id: int, path: str = "/sumer", *, days: int = 0, visits: int = 1
) -> None:
    """Add the visits of a path that a domain does not have, some days ago."""
    sql(
        """
        INSERT INTO missing_paths (user_id, domain_id, day, path, visits)
        SELECT %(user_id)s, %(domain_id)s,
               (now() AT TIME ZONE 'UTC' - make_interval(days => %(days)s))::date, %(path)s, %(visits)s
        RETURNING visits
        """,
        user_id=user_id,
        domain_id=domain_id,
        path=path,
        days=days,
        visits=visits,
    )


def pixel(sql: Sql, user_id: int) -> int:
    return row(sql, "pixels", user_id=user_id, type="bing", name="Shop", tag="1")


def link(sql: Sql, user_id: int, *, url: str = "https://example.com/page", title: str = "") -> int:
    return row(sql, "links", user_id=user_id, alias=f"link{next(_numbers)}", url=url, title=title, metatitle=title)


def page_title(sql: Sql, link_id: int, title: str) -> None:
    """Store the title of the page of a link, as a check does."""
    added = (
        "INSERT INTO link_checks (link_id, user_id, title) SELECT id, user_id, %(title)s FROM links WHERE id = %(id)s"
    )
    sql(f"{added} RETURNING 1", id=link_id, title=title)


def bio(sql: Sql, user_id: int, *, title: str = "About me") -> int:
    return row(sql, "bios", user_id=user_id, alias=f"bio{next(_numbers)}", name=title)


def qr(sql: Sql, user_id: int, *, name: str = "Poster") -> int:
    colors = {"background": "rgb(255,255,255)", "foreground": "rgb(0,0,0)"}
    members = {"code": f"code{next(_numbers)}", "type": "text", "data": '"hello"', "name": name}
    return row(sql, "qrs", user_id=user_id, **members, **colors)


def visit(sql: Sql, tracked_id: int) -> None:
    """Store a visit of now."""
    sql(
        visits.ADD,
        **visits.parameters(f"visit-{next(_numbers)}", 0, 1, json.dumps([_visit(sql, tracked_id)])),
    )


def _visit(sql: Sql, tracked_id: int) -> dict[str, Any]:
    owner = sql(
        "SELECT user_id FROM links WHERE id = %(id)s UNION ALL SELECT user_id FROM qrs WHERE id = %(id)s", id=tracked_id
    )[0]
    visit = {"tracked_id": tracked_id, "at": time.time(), "visitor": "", "country": "Germany", "referrer": "t.co",
             "browser": "Firefox", "os": "Linux", "device": "desktop", "city": "Berlin", "language": "German",
             "kind": "click", "bot": False}  # fmt: skip
    return owner | visit


def assign(sql: Sql, campaign_id: int, ids: list[int]) -> None:
    sql("UPDATE links SET campaign = %(to)s WHERE id = ANY(%(ids)s) RETURNING 1", to=campaign_id, ids=ids)


def campaign(sql: Sql, user_id: int) -> int:
    return row(sql, "campaigns", user_id=user_id, name=f"Campaign {next(_numbers)}", public=True)


def channel(sql: Sql, user_id: int) -> int:
    return row(sql, "channels", user_id=user_id, name=f"Channel {next(_numbers)}", color="#fff")


def conversion(sql: Sql, user_id: int, **members: Any) -> int:
    """Add a conversion of a visit of a link, by default of the last one."""
    [own] = sql("SELECT max(id) AS id FROM links WHERE user_id = %(id)s", id=user_id)
    target = members.pop("link", None) or own["id"] or link(sql, user_id)
    of_link = {"tracked_id": target, "click": datetime.now(UTC)}
    number = next(_numbers)
    sale = {
        "event": "sale",
        "order_id": f"A-{number}",
        "value": 29.9,
        "currency": "EUR",
        "source": "key",
        "labels": "{}",
    }
    return row(sql, "conversions", user_id=user_id, **(of_link | sale | members))


def key(sql: Sql, user_id: int) -> int:
    """Add a key with all limits. It is restricted to the domains of the user, if there are any."""
    [domains] = sql("SELECT array_agg(id) AS ids FROM domains WHERE user_id = %(id)s", id=user_id)
    limits = {"scopes": "{links:read}", "allowed_ips": "{192.0.2.0/24}", "domains": domains["ids"]}
    digest = f"key{next(_numbers)}".encode()
    return row(sql, "api_keys", user_id=user_id, name="Shop", prefix="lmk_Ab3d", digest=digest, **limits)


def member(sql: Sql, user_id: int, *, role: str = "viewer", member_id: int | None = None) -> int:
    """Add a member, or an invitation."""
    number = next(_numbers)
    joined = datetime.now(UTC).isoformat() if member_id else None
    columns = {"email": f"erin{number}@example.com", "role": role, "member_id": member_id, "joined": joined}
    sql("UPDATE users SET has_events = true, has_activity = true WHERE id = %(id)s RETURNING 1", id=user_id)
    return row(sql, "members", user_id=user_id, digest=None if member_id else f"token{number}".encode(), **columns)


def public_page(sql: Sql, user_id: int, **subject: int) -> None:
    """Add the page of the statistics of a link or a campaign."""
    [(column, row_id)] = subject.items()
    statement = (
        f"INSERT INTO public_statistics (user_id, {column}, token, period, tables) VALUES (%(user_id)s, %(id)s, "
    )
    sql(f"{statement} '{next(_numbers):0>43}', '28d', '{{os}}') RETURNING token", user_id=user_id, id=row_id)


def change(sql: Sql, user_id: int) -> int:
    """Add a change to the activity."""
    actor = json.dumps({"actor": {"user": user_id, "name": "alice", "key": None}, "changes": {"title": ["", "Sale"]}})
    row = "INSERT INTO events (user_id, type, data, extra, created) VALUES (-%(id)s::bigint, 'link.updated'"
    stored = f'{row}, \'{{"id": 17, "name": "Sale"}}\', %(extra)s, now()) RETURNING number'
    return int(sql(stored, id=user_id, extra=actor)[0]["number"])


def report(sql: Sql, link_id: int) -> int:
    return row(sql, "reports", kind="report", link_id=link_id, reason="spam", text="Unwanted", host="example.com")


def block(sql: Sql, user_id: int) -> int:
    return row(sql, "reports", kind="host", host=f"evil{next(_numbers)}.example", decided_by=user_id)


def an_import(sql: Sql, user_id: int) -> int:
    times = {"finished": datetime.now(UTC)}
    import_id = row(sql, "imports", user_id=user_id, state="paused", source="shlink", on_conflict="skip", **times)
    sql(
        """
        INSERT INTO import_rows (user_id, import_id, number, place, file, name, lines, raw, code, message)
        VALUES (%(user_id)s, %(id)s, 1, 0, 'links', '', 1, '{"URL": "ftp://example.com"}', 'invalid',
                'url must be a URL.')
        RETURNING 1
        """,
        user_id=user_id,
        id=import_id,
    )
    return import_id


def webhook(sql: Sql, user_id: int) -> int:
    """Add a webhook of this service, which subscribes to nothing that a test does."""
    sql("UPDATE users SET has_events = true WHERE id = %(id)s RETURNING 1", id=user_id)
    members = {"name": "Hook", "url": "http://127.0.0.1:5000/hooks", "events": "{import.finished}"}
    return row(sql, "webhooks", user_id=user_id, secret_ciphertext="", **members)


def delivery(sql: Sql, user_id: int) -> int:
    """Add a failed delivery to the user's newest webhook, or to a new one."""
    newest = sql("SELECT max(id) AS id FROM webhooks WHERE user_id = %(user_id)s", user_id=user_id)[0]["id"]
    [event] = sql(
        """
        INSERT INTO events (user_id, type, data, created) VALUES (%(user_id)s, 'link.created', '{"id": 1}', now())
        RETURNING number
        """,
        user_id=user_id,
    )
    return row(sql, "deliveries", webhook_id=newest or webhook(sql, user_id), number=event["number"], state="failed")


ITEMS: dict[str, Make] = {"links": link, "bio": bio, "qr": qr}  # by their types on channels
ALL: dict[str, Make] = {stored.words.path: _usual(stored) for stored in STORED} | {
    "link": link,
    "bio": bio,
    "qr": qr,
    "domain": domain,
    "splash": splash,
    "overlay": overlay,
    "pixel": pixel,
    "campaign": campaign,
    "channel": channel,
    "conversion": conversion,
    "key": key,
    "member": member,
    "webhook": webhook,
    "delivery": delivery,
    "import": an_import,
    "block": block,
}
# The tables of resources, by the names in paths. Links are `link` in other paths.
TABLES = {stored.words.path: stored.words.table for stored in RESOURCES}
TABLES["link"] = TABLES["url"]


def of(stored: Stored) -> Make:
    return ALL["link" if stored is LINKS else stored.words.path]


PLAIN = {"brandname": "", "brandlogo": "", "brandcolor": ""}
