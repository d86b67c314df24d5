"""Insert rows of a user directly, for tests that do not depend on how they are created. `sql` is the fixture."""

import json
import time
from collections.abc import Callable
from itertools import count

from linkmgr.db.statements import Row
from linkmgr.repository import visits

Sql = Callable[..., list[Row]]
Make = Callable[[Sql, int], int]

_numbers = count(1)


def _id(added: list[Row]) -> int:
    return int(added[0]["id"])


def domain(sql: Sql, user_id: int) -> int:
    return _id(
        sql(
            "INSERT INTO domains (user_id, scheme, host) VALUES (%(user_id)s, 'https', %(host)s) RETURNING id",
            user_id=user_id,
            host=f"go{next(_numbers)}.example.com",
        )
    )


def splash(sql: Sql, user_id: int) -> int:
    return _id(
        sql("INSERT INTO splash_pages (user_id, name) VALUES (%(user_id)s, 'Welcome') RETURNING id", user_id=user_id)
    )


def overlay(sql: Sql, user_id: int) -> int:
    return _id(
        sql(
            "INSERT INTO overlays (user_id, type, name) VALUES (%(user_id)s, 'newsletter', 'News') RETURNING id",
            user_id=user_id,
        )
    )


def answer(sql: Sql, user_id: int) -> int:
    """Add an answer to the user's newest overlay."""
    return _id(
        sql(
            """
            INSERT INTO overlay_answers (user_id, overlay_id, answer)
            SELECT user_id, max(id), '{"email": "visitor@example.com"}' FROM overlays WHERE user_id = %(user_id)s
             GROUP BY user_id
            RETURNING id
            """,
            user_id=user_id,
        )
    )


def pixel(sql: Sql, user_id: int) -> int:
    return _id(
        sql(
            "INSERT INTO pixels (user_id, type, name, tag) VALUES (%(user_id)s, 'bing', 'Shop', '1') RETURNING id",
            user_id=user_id,
        )
    )


def link(sql: Sql, user_id: int, *, url: str = "https://example.com/page", title: str = "") -> int:
    return _id(
        sql(
            """
            INSERT INTO links (user_id, alias, url, title) VALUES (%(user_id)s, %(alias)s, %(url)s, %(title)s)
            RETURNING id
            """,
            user_id=user_id,
            alias=f"link{next(_numbers)}",
            url=url,
            title=title,
        )
    )


def bio(sql: Sql, user_id: int, *, title: str = "About me") -> int:
    return _id(
        sql(
            "INSERT INTO bios (user_id, alias, name) VALUES (%(user_id)s, %(alias)s, %(title)s) RETURNING id",
            user_id=user_id,
            alias=f"bio{next(_numbers)}",
            title=title,
        )
    )


def qr(sql: Sql, user_id: int, *, name: str = "Poster") -> int:
    return _id(
        sql(
            """
            INSERT INTO qrs (user_id, code, type, data, name, background, foreground)
            VALUES (%(user_id)s, %(code)s, 'text', '"hello"', %(name)s, 'rgb(255,255,255)', 'rgb(0,0,0)')
            RETURNING id
            """,
            user_id=user_id,
            code=f"code{next(_numbers)}",
            name=name,
        )
    )


def visit(sql: Sql, tracked_id: int) -> None:
    """Store a visit of now."""
    sql(
        visits.ADD,
        spool=f"visit-{next(_numbers)}",
        start=0,
        stop=1,
        visits=json.dumps(
            [
                sql("SELECT user_id FROM links WHERE id = %(id)s UNION ALL SELECT user_id FROM qrs WHERE id = %(id)s",
                    id=tracked_id)[0]
                | {"tracked_id": tracked_id, "at": time.time(), "visitor": "", "country": "Germany", "referrer": "t.co",
                   "browser": "Firefox", "os": "Linux", "device": "desktop", "city": "Berlin", "language": "German",
                   "bot": False}
            ]
        ),
        max_labels=visits.MAX_LABELS,
        other=visits.OTHER,
    )  # fmt: skip


def campaign(sql: Sql, user_id: int) -> int:
    return _id(
        sql(
            "INSERT INTO campaigns (user_id, name, public) VALUES (%(user_id)s, %(name)s, true) RETURNING id",
            user_id=user_id,
            name=f"Campaign {next(_numbers)}",
        )
    )


def channel(sql: Sql, user_id: int) -> int:
    return _id(
        sql(
            "INSERT INTO channels (user_id, name, color) VALUES (%(user_id)s, %(name)s, '#fff') RETURNING id",
            user_id=user_id,
            name=f"Channel {next(_numbers)}",
        )
    )


def key(sql: Sql, user_id: int) -> int:
    return _id(
        sql(
            """
            INSERT INTO api_keys (user_id, name, prefix, digest, scopes, domains, allowed_ips)
            VALUES (%(user_id)s, 'Shop', 'lmk_Ab3d', %(digest)s, '{links:read}', '{17}', '{192.0.2.0/24}') RETURNING id
            """,
            user_id=user_id,
            digest=f"key{next(_numbers)}".encode(),
        )
    )


def an_import(sql: Sql, user_id: int) -> int:
    return _id(
        sql(
            """
            WITH added AS (
                INSERT INTO imports (user_id, state, source, on_conflict, finished)
                VALUES (%(user_id)s, 'paused', 'shlink', 'skip', now()) RETURNING id, user_id)
            INSERT INTO import_rows (user_id, import_id, number, place, kind, name, lines, raw, code, message)
            SELECT user_id, id, 1, 0, 'links', '', 1, '{"URL": "ftp://example.com"}', 'invalid', 'url must be a URL.'
              FROM added
            RETURNING import_id AS id
            """,
            user_id=user_id,
        )
    )


def webhook(sql: Sql, user_id: int) -> int:
    """Add a webhook of this service, which subscribes to nothing that a test does."""
    return _id(
        sql(
            """
            INSERT INTO webhooks (user_id, name, url, events, secret_ciphertext)
            VALUES (%(user_id)s, 'Hook', 'http://127.0.0.1:5000/hooks', '{import.finished}', '') RETURNING id
            """,
            user_id=user_id,
        )
    )


def delivery(sql: Sql, user_id: int) -> int:
    """Add a failed delivery to the user's newest webhook, or to a new one."""
    newest = sql("SELECT max(id) AS id FROM webhooks WHERE user_id = %(user_id)s", user_id=user_id)[0]["id"]
    return _id(
        sql(
            """
            WITH event AS (
                INSERT INTO events (user_id, type, data, created)
                VALUES (%(user_id)s, 'link.created', '{"id": 1}', now())
                RETURNING number)
            INSERT INTO deliveries (webhook_id, number, state)
            SELECT %(webhook_id)s, number, 'failed' FROM event
            RETURNING id
            """,
            user_id=user_id,
            webhook_id=newest or webhook(sql, user_id),
        )
    )


ITEMS: dict[str, Make] = {"links": link, "bio": bio, "qr": qr}  # by their types on channels
ALL: dict[str, Make] = {
    "link": link,
    "bio": bio,
    "qr": qr,
    "domain": domain,
    "splash": splash,
    "overlay": overlay,
    "pixel": pixel,
    "campaign": campaign,
    "channel": channel,
    "key": key,
    "webhook": webhook,
    "delivery": delivery,
    "import": an_import,
}


PLAIN = {"brandname": "", "brandlogo": "", "brandcolor": ""}
