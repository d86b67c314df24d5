"""The route table of the API, with what the tests must know of each route."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from linkmgr import create_app


class Who(Enum):
    """To whom a route is open."""

    SELF = "works on what the caller owns, without an id"
    OWNER = "works on ids that must be the caller's own"
    ADMINISTRATOR = "works on everything"
    EVERYBODY = "needs no key"


@dataclass(frozen=True)
class Route:
    who: Who
    json: Any = None
    ids: tuple[str, ...] = ()  # what the ids in the path are of, in their order
    types: tuple[str, ...] = ("",)  # what can stand for <type> in the path


USER = {"username": "newcomer", "email": "newcomer@example.com", "password": "correct horse"}

ROUTES = {
    "GET /api/openapi.json": Route(Who.EVERYBODY),
    "GET /api/docs": Route(Who.EVERYBODY),
    "GET /api/account": Route(Who.SELF),
    "POST /api/account": Route(Who.SELF),
    "PUT /api/account/update": Route(Who.SELF, {"email": "changed@example.com"}),
    "GET /api/domains": Route(Who.SELF),
    "GET /api/domain/<id:domain_id>": Route(Who.OWNER, None, ("domain",)),
    "POST /api/domain/add": Route(Who.SELF, {"domain": "https://new.example.com"}),
    "PUT /api/domain/<id:domain_id>/update": Route(Who.OWNER, {"redirectroot": "https://example.com/"}, ("domain",)),
    "DELETE /api/domain/<id:domain_id>/delete": Route(Who.OWNER, None, ("domain",)),
    "GET /api/splash": Route(Who.SELF),
    "GET /api/splash/<id:splash_id>": Route(Who.OWNER, None, ("splash",)),
    "POST /api/splash/add": Route(Who.SELF, {"name": "New"}),
    "PUT /api/splash/<id:splash_id>/update": Route(Who.OWNER, {"name": "Taken"}, ("splash",)),
    "DELETE /api/splash/<id:splash_id>/delete": Route(Who.OWNER, None, ("splash",)),
    "GET /api/overlay": Route(Who.SELF),
    "GET /api/overlay/<id:overlay_id>": Route(Who.OWNER, None, ("overlay",)),
    "GET /api/overlay/<id:overlay_id>/answers": Route(Who.OWNER, None, ("overlay",)),
    "POST /api/overlay/add": Route(Who.SELF, {"type": "message", "name": "New"}),
    "PUT /api/overlay/<id:overlay_id>/update": Route(Who.OWNER, {"name": "Taken"}, ("overlay",)),
    "DELETE /api/overlay/<id:overlay_id>/delete": Route(Who.OWNER, None, ("overlay",)),
    "GET /api/bio": Route(Who.SELF),
    "GET /api/bio/<id:bio_id>": Route(Who.OWNER, None, ("bio",)),
    "POST /api/bio/add": Route(Who.SELF, {"name": "New"}),
    "PUT /api/bio/<id:bio_id>/update": Route(Who.OWNER, {"name": "Taken"}, ("bio",)),
    "DELETE /api/bio/<id:bio_id>/delete": Route(Who.OWNER, None, ("bio",)),
    "GET /api/pixels": Route(Who.SELF),
    "GET /api/pixel/<id:pixel_id>": Route(Who.OWNER, None, ("pixel",)),
    "POST /api/pixel/add": Route(Who.SELF, {"type": "bing", "name": "Shop", "tag": "1"}),
    "PUT /api/pixel/<id:pixel_id>/update": Route(Who.OWNER, {"name": "Taken", "tag": "2"}, ("pixel",)),
    "DELETE /api/pixel/<id:pixel_id>/delete": Route(Who.OWNER, None, ("pixel",)),
    "GET /api/qr": Route(Who.SELF),
    "GET /api/qr/<id:qr_id>": Route(Who.OWNER, None, ("qr",)),
    "POST /api/qr/add": Route(Who.SELF, {"type": "text", "data": "hello"}),
    "PUT /api/qr/<id:qr_id>/update": Route(Who.OWNER, {"data": "changed"}, ("qr",)),
    "DELETE /api/qr/<id:qr_id>/delete": Route(Who.OWNER, None, ("qr",)),
    "GET /api/campaigns": Route(Who.SELF),
    "GET /api/campaign/<id:campaign_id>": Route(Who.OWNER, None, ("campaign",)),
    "POST /api/campaign/add": Route(Who.SELF, {"name": "New"}),
    "POST /api/campaign/<id:campaign_id>/assign/<id:link_id>": Route(Who.OWNER, None, ("campaign", "links")),
    "PUT /api/campaign/<id:campaign_id>/update": Route(Who.OWNER, {"name": "Taken"}, ("campaign",)),
    "DELETE /api/campaign/<id:campaign_id>/delete": Route(Who.OWNER, None, ("campaign",)),
    "GET /api/channels": Route(Who.SELF),
    "GET /api/channel/<id:channel_id>": Route(Who.OWNER, None, ("channel",)),
    "POST /api/channel/add": Route(Who.SELF, {"name": "New"}),
    "POST /api/channel/<id:channel_id>/assign/<type>/<id:item_id>": Route(
        Who.OWNER, None, ("channel", "{type}"), ("links", "bio", "qr")
    ),
    "PUT /api/channel/<id:channel_id>/update": Route(Who.OWNER, {"name": "Taken"}, ("channel",)),
    "DELETE /api/channel/<id:channel_id>/delete": Route(Who.OWNER, None, ("channel",)),
    "GET /api/urls": Route(Who.SELF),
    "GET /api/url/<id:link_id>": Route(Who.OWNER, None, ("links",)),
    "POST /api/url/add": Route(Who.SELF, {"url": "https://example.com/new"}),
    "PUT /api/url/<id:link_id>/update": Route(Who.OWNER, {"url": "https://example.com/taken"}, ("links",)),
    "DELETE /api/url/<id:link_id>/delete": Route(Who.OWNER, None, ("links",)),
    "GET /api/plans": Route(Who.ADMINISTRATOR),
    "PUT /api/plan/<id:plan_id>/user/<id:user_id>": Route(Who.ADMINISTRATOR, {"type": "monthly"}, ("plan", "user")),
    "GET /api/users": Route(Who.ADMINISTRATOR),
    "GET /api/user/<id:user_id>": Route(Who.ADMINISTRATOR, None, ("user",)),
    "POST /api/user/add": Route(Who.ADMINISTRATOR, USER),
    "DELETE /api/user/<id:user_id>/delete": Route(Who.ADMINISTRATOR, None, ("user",)),
    "GET /api/user/login/<id:user_id>": Route(Who.ADMINISTRATOR, None, ("user",)),
}


@dataclass(frozen=True)
class Cell:
    """A route with its <type> filled in."""

    method: str
    path: str
    route: Route
    ids: tuple[str, ...]

    def path_of(self, ids: list[int]) -> str:
        remaining = iter(ids)
        return "/".join(str(next(remaining)) if part[:1] == "<" else part for part in self.path.split("/"))


def _served() -> Iterator[str]:
    made = create_app(secret_key="unused" * 6, database_url="postgresql://unused")
    for rule in made.url_map.iter_rules():
        if rule.rule.startswith("/api"):
            yield from (f"{method} {rule.rule}" for method in (rule.methods or set()) - {"HEAD", "OPTIONS"})


# What the service answers, as the keys of ROUTES.
SERVED = sorted(_served())


def _cells() -> Iterator[Cell]:
    for name, route in ROUTES.items():
        method, path = name.split()
        for word in route.types if name in SERVED else ():
            ids = tuple(kind.format(type=word) for kind in route.ids)
            yield Cell(method, path.replace("<type>", word), route, ids)


CELLS = list(_cells())
