"""Bodies and records of conversions."""

from typing import Any

from marshmallow import ValidationError, validates_schema

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.base import MAX_ID, Boolean, Integer, IpAddress, Matching, Text
from linkmgr.core.fields.bodies import Body, New, load
from linkmgr.core.fields.links import Start
from linkmgr.core.fields.member import member
from linkmgr.core.fields.objects import Objects
from linkmgr.features.conversions import clicks, repository
from linkmgr.features.conversions.amounts import Amount, Currency
from linkmgr.features.conversions.repository import (
    DEFAULT_EVENT,
    MAX_EVENT,
    MAX_ORDER,
    MAX_VALUE,
    PROBLEMS,
    SOURCES,
)
from linkmgr.visits.counting import MAX_HEADER
from linkmgr.visits.dimensions import BY_NAME

EXAMPLE_CLICK = "AAAAABEABkc0rY2q4Gp3bVtQ"
MAX_REPORTS = 1000


class Report(New):
    click = member(
        Matching(f"[A-Za-z0-9_-]{{{clicks.LENGTH}}}", "a click id", load_default=""),
        "The click id that the target got.",
        EXAMPLE_CLICK,
    )
    link = member(Integer(1, MAX_ID, load_default=0), "Without a click id: the id of the link.", 17)
    ip = member(IpAddress(load_default=""), "Without a click id: the IP address of the visitor.", "192.0.2.7")
    agent = member(
        Text(MAX_HEADER, load_default=""),
        "Without a click id: the header `User-Agent` of the visitor.",
        "Mozilla/5.0 Firefox/143.0",
    )
    event = member(
        Text(MAX_EVENT, load_default=DEFAULT_EVENT), "What the visitor did, such as `lead` or `sale`.", "sale"
    )
    order = member(
        Text(MAX_ORDER, load_default=""),
        "Its id in your shop. An account has one conversion of each event and order.",
        "A-1042",
    )
    value = member(Amount(load_default=None), "The value of the order.", 29.9)
    currency = member(Currency(load_default=""), "The currency of the value (ISO 4217).", "EUR")
    at = member(Start(load_default=""), "The time, if it is not now.", "2026-11-21 09:30:00")

    @validates_schema
    def require_visit(self, loaded: Row, **_: Any) -> None:
        missing = [name for name in ("link", "ip", "agent") if not loaded.get(name)]
        if not loaded.get("click") and missing:
            raise ValidationError("is required without click", missing[0])


class Reports(New):
    conversions = member(
        Objects(Report, MAX_REPORTS, required=True),
        "Bodies of `POST /api/conversions`.",
        [{"click": EXAMPLE_CLICK, "event": "sale", "order": "A-1042", "value": 29.9, "currency": "EUR"}],
    )


class ConversionUpdate(Body):
    is_update = True
    value = member(Amount(load_default=None), "The new value.", 19.9)
    refund = member(Amount(load_default=None), "Instead: what is subtracted from the value.", 10)
    currency = member(Currency(load_default=None), "The new currency.", "EUR")

    @validates_schema
    def require_one(self, loaded: Row, **_: Any) -> None:
        others = [name for name in ("value", "currency") if loaded.get(name)]
        if loaded.get("refund") and others:
            raise ValidationError(f"excludes {others[0]}: it is in the currency of the value", "refund")


class Setup(New):
    clickid = member(
        Boolean(load_default=None), "Adds a click id to the targets of all links of the account.", True
    )
    page_value = member(
        Amount(load_default=None),
        f"The largest value that a conversion counts which a page reports, up to {MAX_VALUE}. 0 counts no "
        "values of pages, which anybody can send.",
        500,
    )


def restore_setup(user_id: int, record: Row) -> None:
    """Store the exported settings of an account, in place of those that this one has not set."""
    own, sent = repository.setup(user_id), load(Setup, record)
    page_value = sent["page_value"] if own["page_value"] is None else None
    repository.change_setup(user_id, clickid=sent["clickid"] or None, page_value=page_value)


AMOUNT = shapes.or_null(shapes.AMOUNT)
RECORD = shapes.object_of(
    id=shapes.ID,
    link=shapes.ID,
    event="sale",
    order="A-1042",
    value=AMOUNT | {"description": "Null if none was sent, or for the `problem`."},
    currency="EUR",
    problem=shapes.choice(*PROBLEMS[1:], "") | {"description": "Why the value that was sent does not count."},
    source=shapes.choice(*SOURCES),
    click=shapes.TIMESTAMP | {"description": "The time of the visit."},
    date=shapes.TIMESTAMP,
    updated=shapes.TIMESTAMP,
    labels={
        "type": "object",
        "description": "Those of the visit that are known, by dimension. Empty until the visit is stored.",
        "properties": {name: shapes.text(dimension.example) for name, dimension in BY_NAME.items()},
        "examples": [{"country": "Germany", "utm_source": "newsletter"}],
    },
)
