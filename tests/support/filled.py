"""An account after three months of use, for checks and pictures of the console: 300 links with every state and kind of
name, 61,000 visits, an experiment with a result, QR codes, groups, a bio page, and imports with failed rows."""

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import pytest
from flask import Flask

from linkmgr.core.database.statements import Row
from linkmgr.features.conversions import repository as conversions
from linkmgr.visits import demo
from tests.support import factories
from tests.support.factories import Sql
from tests.support.visited import Store, Visited

if TYPE_CHECKING:
    from tests.conftest import Client

LINKS, TIMES = 300, 13  # links, and visits of a day as a multiple of the demonstration data
TRIED = 600  # visits of the experiment
HOSTS = ("go.lumen.example", "xn--bcker-gra.example")  # bäcker.example
LONG = ("Everything about our spring sale, with all products, prices and shops " * 4)[:255]
RIGHT_TO_LEFT, EMOJI = (
    "عرض الربيع الكبير على جميع المنتجات في متاجرنا",
    "🎉🍞 Party bread and forty other ideas for a party",
)
CAMPAIGNS = ("Spring sale of garden furniture", "Newsletter", LONG, RIGHT_TO_LEFT, EMOJI, "Trade fair in Nuremberg",
             "Posters", "Podcast")  # fmt: skip
CHANNELS = ("Print", "Instagram", "Partners and affiliates in Austria", EMOJI, RIGHT_TO_LEFT, LONG)
CODES = ("Poster in the shop window of Nuremberg", "Menu", LONG, RIGHT_TO_LEFT, EMOJI, "Business card")


class Filled(NamedTuple):
    client: "Client"
    ids: dict[str, int]  # of an example of each kind, by its name


def _link(n: int, domains: list[int], campaigns: list[int]) -> Row:
    """Return the columns of a link. Every kind of title meets every state, because the numbers of both have no common
    divisor."""
    now = datetime.now(UTC)
    titles = ("", LONG, EMOJI, RIGHT_TO_LEFT, f"Spring newsletter of week {n}, second edition", f"Product {n}")
    states: tuple[Row, ...] = (
        {"expiry": now - timedelta(days=2)},
        {"starts": now + timedelta(days=9)},
        {"maxclicks": 1},
        {"blocked": now - timedelta(days=1)},
        {"status": "private"},
        {"password_hash": "x"},
        {"imported_clicks": 37 * n},
    )
    site = "xn--bcker-gra.example" if n % 17 == 0 else "shop.lumen.example"
    of_state = states[n % 7] if n % 31 < 7 else {}
    members = {
        "alias": f"link-{n}",
        "url": f"https://{site}/garden-and-terrace/furniture/{n}?utm_source=newsletter&edition={n}",
        "title": titles[n % 6],
        "metatitle": titles[n % 6],
        "created": now - timedelta(days=100 - n / 4),
        "campaign": campaigns[n % 5 % len(campaigns)] if n % 3 else None,
        "domain_id": domains[n % 2] if n % 4 == 1 else None,
        "status": "public",
    }
    members |= dict.fromkeys(("expiry", "starts", "maxclicks", "blocked", "password_hash", "imported_clicks"))
    return members | of_state


def _links(sql: Sql, user_id: int, domains: list[int], campaigns: list[int]) -> list[int]:
    rows = [_link(n, domains, campaigns) for n in range(1, LINKS)]
    columns = ", ".join(rows[0])
    added = sql(
        f"""
        INSERT INTO links (user_id, {columns})
        SELECT %(user_id)s, {columns} FROM json_populate_recordset(NULL::links, %(rows)s) RETURNING id
        """,
        user_id=user_id,
        rows=json.dumps(rows, default=str),
    )
    return [link["id"] for link in added]


def _experiment(client: "Client", store: Store, groups: Row) -> int:
    variants = [{"name": name, "url": f"https://shop.lumen.example/{name[:4]}", "weight": 1} for name in _VARIANTS]
    rule = {"when": {"country": ["Austria"], "device": ["phone"]}, "url": "https://at.lumen.example/spring"}
    link = client.add(
        "/api/url/add",
        {"url": "https://shop.lumen.example/spring", "custom": "spring", "title": "Spring: which button sells?",
         "variants": variants, "rules": [rule], **groups},
    )  # fmt: skip
    now = datetime.now(UTC)
    store(Visited(link, now - timedelta(hours=n), b"buyer %d" % n, variant=_VARIANTS[n % 2]) for n in range(TRIED))
    return link


_VARIANTS = ("Blue button", "Green button")


def _convert(app: Flask, link: int) -> None:
    """Let 10 % of the visitors of the first variant buy something, and 50 % of those of the second."""
    buyers = [n for n in range(TRIED) if n % 4 == 1 or n % 20 == 0]
    sale = {"link": link, "event": "sale", "value": 49.9, "currency": "EUR", "source": "key", "problem": ""}
    sent = [sale | {"visitors": [(b"buyer %d" % n).hex()], "order_id": f"A-{n}"} for n in buyers]
    with app.app_context():
        conversions.add(None, sent)


_CHECKS = """
    INSERT INTO link_checks (link_id, user_id, checked, state, reason, target, title, due)
    SELECT id, user_id, now() - interval '3 hours', CASE WHEN id %% 13 = 4 THEN 'broken' ELSE 'ok' END,
           CASE WHEN id %% 13 = 4 THEN 'status 404' ELSE '' END, url,
           CASE WHEN id %% 4 < 2 THEN 'Garden and terrace: the furniture page of Lumen' ELSE '' END,
           now() + interval '1 day'
      FROM links WHERE user_id = %(user_id)s
        ON CONFLICT DO NOTHING
    RETURNING link_id, state
"""
_ITEMS = """
    INSERT INTO channel_items (user_id, channel_id, link_id)
    SELECT user_id, channel, links.id
      FROM links, unnest(%(channels)s::bigint[]) WITH ORDINALITY AS channels (channel, n)
     WHERE user_id = %(user_id)s AND links.id %% 6 = n - 1
        ON CONFLICT DO NOTHING
    RETURNING 1
"""
_FAILED = """
    INSERT INTO import_rows (user_id, import_id, number, place, file, name, lines, raw, code, message)
    SELECT %(user_id)s, %(id)s, 3 * n, 0, 'links', '', 1, json_build_object('URL', 'htp://shop.lumen.example/' || n),
           'invalid', 'url must be a URL that begins with http:// or https://.'
      FROM generate_series(1, 12) n
    RETURNING 1
"""


def _import(sql: Sql, user_id: int) -> int:
    counts = {"found": 312, "rows_read": 312, "made": 291, "skipped": 9, "failed": 12}
    made = {"state": "done", "source": "csv", "name": "links of the old service.csv", "finished": datetime.now(UTC)}
    import_id = factories.row(sql, "imports", user_id=user_id, **counts, **made)
    sql(_FAILED, user_id=user_id, id=import_id)
    return import_id


@pytest.fixture
def filled(*, app: Flask, alice: "Client", sql: Sql, store: Store, monkeypatch: pytest.MonkeyPatch) -> Filled:
    """The account of alice."""
    owner = alice.id
    checked = {"checked": datetime.now(UTC), "scheme": "https"}
    domains = [factories.row(sql, "domains", user_id=owner, host=host, **checked) for host in HOSTS]
    campaigns = [factories.row(sql, "campaigns", user_id=owner, name=name, public=True) for name in CAMPAIGNS]
    channels = [factories.row(sql, "channels", user_id=owner, name=name, color="#f97316") for name in CHANNELS]
    _links(sql, owner, domains, campaigns)
    link = _experiment(alice, store, {"campaign": campaigns[0], "channel": channels[:2]})
    states = {row["state"]: row["link_id"] for row in sql(_CHECKS, user_id=owner)}
    sql(_ITEMS, user_id=owner, channels=channels)
    codes = [factories.qr(sql, owner, name=name) for name in CODES]
    assert alice.delete(f"/api/qr/{factories.qr(sql, owner, name=CODES[0])}/delete").status_code == 200
    alice.add(
        "/api/bio/add", {"name": "Lumen", "alias": "lumen", "links": [{"title": EMOJI, "url": "https://lumen.example"}]}
    )
    monkeypatch.setattr(demo, "_PER_WEEKDAY", tuple(TIMES * number for number in demo._PER_WEEKDAY))
    monkeypatch.setattr(demo, "_BATCH", 1000)
    with app.app_context():
        demo.add(owner)
    _convert(app, link)
    return Filled(alice, {"link": link, "broken": states["broken"], "campaign": campaigns[0], "channel": channels[0],
                          "qr": codes[0], "import": _import(sql, owner)})  # fmt: skip
