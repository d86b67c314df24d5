"""Rows for the pages of the console that list channels, splash pages, overlays, pixels, domains and webhooks."""

from collections.abc import Callable

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql

NAMES = ("A name of 255 characters " + "x" * 230, "عرض الصيف الكبير على جميع المنتجات", "🎉🍞 Party bread")


def fill_plain(alice: Client, sql: Sql) -> dict[str, str]:
    """Add three rows of each, with long names, emoji and other scripts. Return the paths of their pages by name."""
    for name in NAMES:
        channel = alice.add("/api/channel/add", {"name": name, "color": "#f97316", "description": f"About {name}"})
        alice.add("/api/pixel/add", {"name": name, "type": "gtmpixel", "tag": "GTM-" + "X" * (name.count("x") // 3)})
        page = {
            "name": name,
            "title": name,
            "message": f"{name}\nWelcome",
            "link": "https://example.com/",
            "counter": 9,
        }
        splash = alice.add("/api/splash/add", page)
        poll = {"name": name, "type": "poll", "message": f"{name}?\nYes\nNo", "color": "#fff", "background": "#14532d"}
        overlay = alice.add("/api/overlay/add", poll)
        domain = alice.add(
            "/api/domain/add",
            {
                "domain": f"https://{'a-long-name.' * (name.count('x') // 24)}go{channel}.example.net",
                "brandname": name[:60],
            },
        )
    link = factories.link(sql, alice.id, url="https://example.com/" + "long/" * 60, title=NAMES[0])
    for kind, row in (("links", link), ("bio", factories.bio(sql, alice.id)), ("qr", factories.qr(sql, alice.id))):
        alice.post(f"/api/channel/{channel}/assign/{kind}/{row}")
    alice.put(f"/api/channel/{channel}/update", {"starred": True})
    for text in ('{"choice": "Yes"}', '{"name": "Robin", "email": "robin@example.com", "message": "Hello\\nyou"}'):
        sql(
            "UPDATE overlay_answers SET answer = %(text)s WHERE id = %(id)s RETURNING id",
            text=text,
            id=factories.answer(sql, alice.id),
        )
    problem = (
        "go.example.net resolves to 192.0.2.7, where another server responded. Point it to the server, then try again."
    )
    sql(
        "UPDATE domains SET checked = now(), problem = %(problem)s WHERE id = %(id)s RETURNING id",
        problem=problem,
        id=domain,
    )
    sql("UPDATE domains SET checked = now() WHERE id = %(id)s - 1 RETURNING id", id=domain)
    return {
        "channels": "/console/channels",
        "channel": f"/console/channels/{channel}",
        "splash-edit": f"/console/splash/{splash}/edit",
        "overlays": "/console/overlays",
        "overlay-edit": f"/console/overlays/{overlay}/edit",
        "answers": f"/console/overlays/{overlay}/answers",
        "pixels": "/console/pixels",
        "domains": "/console/domains",
        "domain-edit": f"/console/domains/{domain}/edit",
        "domain-delete": f"/console/domains/{domain}/delete",
    }


def fill_webhooks(alice: Client, sql: Sql, deliver: Callable[[], None], url: str) -> dict[str, str]:
    """Add webhooks that deliver, wait and are off. Return the paths of their pages by name."""
    campaign = factories.campaign(sql, alice.id)
    ids = [
        alice.add("/api/webhooks", {"name": name, "url": target, "events": events, "campaign": campaign})
        for name, target, events in (
            ("Shop", url, ["link.*", "visit"]),
            (
                NAMES[0],
                f"https://example.com/{'long/' * 60}",
                ["link.created", "link.updated", "visit", "scan", "bio.*"],
            ),
            (NAMES[1], "", ["*"]),
        )
    ]
    sql(
        "UPDATE webhooks SET active = false, reason = 'The receiver answered 410 Gone.' WHERE id = %(id)s RETURNING 1",
        id=ids[1],
    )
    for number in range(3):
        alice.add("/api/url/add", {"url": f"https://example.com/{'long/' * 60}{number}", "campaign": campaign})
    deliver()
    sql(
        """
        UPDATE deliveries
           SET state = 'waiting', status = NULL, attempts = 2, response = 'No response within 15 seconds.',
               due = now() + interval '5 minutes'
         WHERE id = (SELECT max(id) FROM deliveries)
        RETURNING 1
        """
    )
    return {
        "webhooks": "/console/webhooks",
        "webhook": f"/console/webhooks/{ids[0]}",
        "webhook-off": f"/console/webhooks/{ids[1]}",
        "webhook-edit": f"/console/webhooks/{ids[0]}/edit",
    }
