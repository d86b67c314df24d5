"""Conversions are recognized by the digest of the visitor, so that they need no cookie."""

from math import sqrt
from time import time

from itsdangerous import BadSignature

from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.settings import settings
from linkmgr.features.conversions import repository as conversions
from linkmgr.visits import counting

_SALT = "linkmgr conversions"
RATE = "60 per minute"  # requests for the pixel, of an IP address
MIN_VISITORS = 100  # of each variant, before the best one is named
FIGURES = ("visits", "visitors", "conversions", "value")  # of a link and of a variant
_Z = 1.96  # of intervals of 95 %


def pixel_url(link_id: int) -> str:
    return f"{settings().base_url}/c/{keys.signer(_SALT).sign(str(link_id)).decode()}.gif"


def link_of(token: str) -> int | None:
    try:
        return int(keys.signer(_SALT).unsign(token))
    except BadSignature:
        return None


def count(
    link_id: int, *, address: str, agent: str, user_id: int | None = None, name: str = "", value: float = 0
) -> Row:
    visitor = counting.visitor_of(link_id, address, agent[: counting.MAX_AGENT], time())
    sent = {"target": link_id, "visitor": visitor, "name": name, "value": value}
    return conversions.add(user_id, [sent], days=conversions.DAYS)


def interval(conversions: int, visitors: int) -> tuple[float, float]:
    """Return the Wilson score interval of a rate, with 95 % confidence."""
    if not visitors:
        return 0.0, 1.0
    rate = min(conversions / visitors, 1)  # an import may have conversions of fewer visitors
    center = rate + _Z**2 / (2 * visitors)
    margin = _Z * sqrt(rate * (1 - rate) / visitors + _Z**2 / (4 * visitors**2))
    scale = 1 + _Z**2 / visitors
    # Floats come close to these two ends only.
    return (
        (center - margin) / scale if conversions else 0.0,
        (center + margin) / scale if rate < 1 else 1.0,
    )


def results(link: Row) -> Row:
    """Return the `conversions` of a link and their `value`, and for each of its `variants` these
    and the rate. The `winner` is the name of the best variant, or None if there are too few
    visitors to decide."""
    counts, statistics = link["counts"], link["statistics"]
    variants = [
        variant | {name: counts.get(name, {}).get(variant["name"], 0) for name in FIGURES}
        for variant in link["variants"]
    ]
    for variant in variants:
        variant["value"] /= 100
        variant["rate"] = (
            min(variant["conversions"] / variant["visitors"], 1.0) if variant["visitors"] else 0.0
        )
        variant["low"], variant["high"] = interval(variant["conversions"], variant["visitors"])
    return {
        "pixel": pixel_url(link["id"]),
        "visits": statistics["clicks"],
        "visitors": statistics["uniqueClicks"],
        "conversions": sum(counts.get("conversions", {}).values()),
        "value": sum(counts.get("value", {}).values()) / 100,
        "variants": variants,
        "winner": _winner(variants),
    }


def _winner(variants: list[Row]) -> str | None:
    best, *others = sorted(variants, key=lambda variant: -variant["low"]) or [{}]
    is_decided = others and min(variant["visitors"] for variant in variants) >= MIN_VISITORS
    return best["name"] if is_decided and best["low"] > max(other["high"] for other in others) else None
