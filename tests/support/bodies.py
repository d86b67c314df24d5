"""Bodies with every member of an operation."""

from typing import TYPE_CHECKING, Any

from marshmallow import Schema

from linkmgr.core.fields.member import first_examples
from tests.support import factories
from tests.support.document import operations
from tests.support.factories import Sql

if TYPE_CHECKING:
    from tests.conftest import Client

Members = dict[str, Any]

# The least that creates a row, by the word in the path
LEAST: dict[str, Members] = {
    stored.words.path: first_examples(stored.resource.creates(), 0) for stored in factories.RESOURCES
} | {
    "account": {},
    "url": {"url": "https://example.com/page"},
    "campaign": {"name": "Spring"},  # not required, but without it the name has the date
    "key": {"name": "All", "scopes": ["*"]},
    "webhook": {"name": "Hook", "events": ["*"]},
    "plan": {"name": "Team", "type": "monthly"},
    "user": {"username": "carol", "email": "carol@example.com", "password": "12345"},
}


def body_of(word: str, suffix: str) -> type[Schema] | None:
    found = [route for route in operations() if route.path.startswith(f"/api/{word}/")]
    return next((route.operation.body for route in found if route.path.endswith(suffix)), None)


def sent(pairs: dict[str, tuple[Any, Any]]) -> Members:
    return {name: value for name, (value, _) in pairs.items()}


def everything(client: "Client", sql: Sql) -> Members:
    """Return the body of a link with every member, which refer to new rows of the user."""
    ids = {name: factories.ALL[name](sql, client.id) for name in ("domain", "overlay", "pixel", "campaign", "channel")}
    [domain] = sql("SELECT 'https://' || host AS name FROM domains WHERE id = %(id)s", id=ids["domain"])
    return {
        "url": "https://example.com/page",
        "custom": "summer",
        "domain": domain["name"],
        "password": "secret",
        "starts": "2020-12-31 00:00:00",
        "expiry": "2030-12-31 23:59:59",
        "maxclicks": 100,
        "confirmclick": True,
        "expiredurl": "https://example.com/over",
        "forwardquery": True,
        "type": f"overlay-{ids['overlay']}",
        "geotarget": [{"location": "germany", "link": "https://example.com/de"}],
        "devicetarget": [{"device": "iphone", "link": "https://example.com/iphone"}],
        "languagetarget": [{"language": "fr", "link": "https://example.com/fr"}],
        "variants": [{"name": name, "url": f"https://example.com/{name}", "weight": 50} for name in ("Blue", "Red")],
        "rules": [{"when": {"clicks": {"to": 99}, "os": ["iOS"]}, "url": "https://example.com/first"}],
        "parameters": [{"name": "utm_source", "value": "news"}],
        "title": "Summer 2026",
        "metatitle": "Summer <sale>",
        "metadescription": "Everything\nmust go",
        "metaimage": "https://example.com/sale.png",
        "description": "For the newsletter",
        "pixels": [ids["pixel"]],
        "campaign": ids["campaign"],
        "channel": [ids["channel"]],
        "deeplink": {"auto": True, "apple": "https://apps.apple.com/app/1"},
        "status": "private",
    }
