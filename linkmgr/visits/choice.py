"""The target of a link for a visitor, before parameters are added to it."""

from typing import NamedTuple

from linkmgr.db.statements import Row
from linkmgr.fields.dimensions import UNKNOWN
from linkmgr.visits import counting, rules, targets, variants
from linkmgr.visits.visitor import Visitor


class Choice(NamedTuple):
    url: str
    rule: int | None = None  # the place of the rule that matches
    variant: str = UNKNOWN  # its name


def choose(link: Row, visitor: Visitor) -> Choice:
    number = rules.first_match(link["rules"], visitor) if link["rules"] else None
    if number is not None:
        return Choice(link["rules"][number]["url"], number)
    names = {"devices": visitor.devices, "locations": visitor.countries, "languages": visitor.preferred_languages}
    matches = (targets.first_match(link[member], named()) for member, named in names.items() if link[member])
    if match := next(filter(None, matches), None):
        return Choice(match)
    if link["variants"]:
        digest = counting.visitor_of(link["id"], visitor.address, visitor.agent, visitor.time.timestamp())
        variant = variants.chosen(link["variants"], digest)
        return Choice(variant["url"], variant=variant["name"])
    return Choice(link["url"])
