from typing import Any, ClassVar

from flask import Blueprint
from marshmallow import ValidationError, fields

from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields import shapes
from linkmgr.core.fields.base import Id, IpAddress, Text
from linkmgr.core.fields.bodies import New
from linkmgr.core.fields.member import JsonSchema, member
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.responses import Json, ok
from linkmgr.features.conversions import results as conversions
from linkmgr.features.conversions.repository import DAYS, MAX_NAME, MAX_NAMES, MAX_VALUE
from linkmgr.repository import link_records
from linkmgr.visits.counting import MAX_HEADER

bp = Blueprint("conversions", __name__, url_prefix="/api")

_RATE: JsonSchema = {"type": "number", "minimum": 0, "maximum": 1, "examples": [0.25]}
_FIGURES: dict[str, shapes.Shape] = {
    "visits": 120,
    "visitors": 100,
    "conversions": 25,
    "value": shapes.AMOUNT,
}
_VARIANT = shapes.object_of(
    name="Blue button", url=shapes.url("https://example.com/blue"), weight=50, **_FIGURES, rate=_RATE, low=_RATE,
    high=_RATE,
)  # fmt: skip
SECTION = Section(
    "conversions",
    "Conversions",
    prose(__file__, days=DAYS, names=MAX_NAMES, visitors=conversions.MIN_VISITORS, rate=conversions.RATE),
    lambda: {"VariantResult": _VARIANT},
)


class Amount(fields.Field[float]):
    json: ClassVar[JsonSchema] = {"type": "number", "minimum": 0, "maximum": MAX_VALUE}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_VALUE:
            raise ValidationError(f"must be a number from 0 to {MAX_VALUE}")
        return float(value)


class Conversion(New):
    link = member(Id(required=True), "The id of the link.", 17)
    ip = member(IpAddress(required=True), "The IP address of the visitor.", "192.0.2.7")
    agent = member(
        Text(MAX_HEADER, required=True),
        "The header `User-Agent` of the visitor.",
        "Mozilla/5.0 Firefox/143.0",
    )
    name = member(Text(MAX_NAME, load_default=""), "The aim that the visitor reached.", "Signed up")
    value = member(Amount(load_default=0.0), "A number that is added up, in a unit of your choice.", 29.9)


@bp.post("/conversions")
@operation(
    "conversions:create",
    "conversions.create",
    shapes.success(message="Conversion has been received.", counted=True),
    body=Conversion,
    errors=("link_unknown",),
    restricted=("own_only", "domains"),
)
def add(new: Row) -> Json:
    """Report a conversion.

    `counted` is false if the visitor is not known, or was counted before. Then nothing is stored.
    """
    result = conversions.count(
        new["link"],
        address=new["ip"],
        agent=new["agent"],
        user_id=user_id(),
        name=new["name"],
        value=new["value"],
    )
    if not result["exists"]:
        raise AppError("link_unknown")
    return ok("Conversion has been received.", counted=result["counted"])


@bp.get("/url/<id:link_id>/conversions")
@operation(
    "links:read",
    "conversions.get",
    shapes.success(
        data=shapes.object_of(
            pixel=shapes.own_url("c/17.signature.gif"),
            **_FIGURES,
            variants=shapes.array_of(shapes.ref("VariantResult")),
            winner=shapes.or_null("Blue button"),
        )
    ),
    restricted=("own_only", "domains"),
)
def read(link_id: int) -> Json:
    """Read the conversions of a link and its variants.

    All since the link was created. `low` and `high` are the 95 % interval of the `rate`.
    """
    return ok(data=conversions.results(link_records.read_named(user_id(), link_id)))
