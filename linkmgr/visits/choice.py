"""The target of a link for a visitor."""

from hashlib import blake2b
from math import log
from typing import NamedTuple

from linkmgr.core.database.statements import Row
from linkmgr.visits import counting, rules, scans, targets
from linkmgr.visits.dimensions import UNKNOWN
from linkmgr.visits.visitor import Visitor

FRAMED = ("frame", "overlay")  # types of links that show their target in a page of ours


class Choice(NamedTuple):
    url: str
    rule: int | None = None  # the place of the rule that matches
    variant: str = UNKNOWN  # its name


def choose(link: Row, visitor: Visitor) -> Choice:
    number = rules.first_match(link["rules"], visitor) if link["rules"] else None
    if number is not None:
        return Choice(link["rules"][number]["url"], number)
    named = (
        (link["devicetarget"], visitor.devices),
        (link["geotarget"], visitor.countries),
        (targets.by_tag(link["languagetarget"] or {}), visitor.preferred_languages),
    )
    matches = (targets.first_match(urls, names()) for urls, names in named if urls)
    if match := next(filter(None, matches), None):
        return Choice(match)
    if link["variants"]:
        digest = counting.visitor_of(link["id"], visitor.address, visitor.agent, visitor.time.timestamp())
        variant = chosen_variant(link["variants"], digest)
        return Choice(variant["url"], variant=variant["name"])
    return Choice(link["url"])


def completed(link: Row, url: str, query: str) -> str:
    """Return a target with what the link adds to it: its parameters, and the query of the short
    URL."""
    target = targets.with_parameters(url, link["parameters"] or ())
    return targets.with_query(target, scans.without_marks(query)) if link["forwardquery"] else target


def app_store(link: Row, agent: str) -> str | None:
    """Return the URL of the app in the visitor's store, or None. Links that frame their target
    never open an app."""
    if not link["deeplink"] or link["type"] in FRAMED:
        return None
    return targets.app_store_url(link["deeplink"], agent)


def chosen_variant(variants: list[Row], visitor: str) -> Row:
    """Return the variant of a visitor by weighted rendezvous hashing: of random times, whose rates
    are the weights, the earliest. That of a variant depends on its own name and weight only."""

    def time(variant: Row) -> float:
        digest = blake2b(variant["name"].encode(), key=visitor.encode(), digest_size=8).digest()
        return float(-log((int.from_bytes(digest) + 1) / 2**64) / variant["weight"])

    return min(variants, key=time)
