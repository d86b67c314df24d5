from typing import Any

from marshmallow import ValidationError

from linkmgr.core.fields.base import Integer, Target, Text
from linkmgr.core.fields.bodies import New
from linkmgr.core.fields.member import member
from linkmgr.core.fields.objects import Objects
from linkmgr.visits.dimensions import OTHER, UNKNOWN

MIN_VARIANTS, MAX_VARIANTS, MAX_WEIGHT = 2, 8, 100


class _Name(Text):
    def clean(self, text: str) -> str:
        if (name := super().clean(text).strip()).startswith("-"):
            raise ValidationError("must not begin with -, which excludes a label in filters of statistics")
        return name


class Variant(New):
    name = member(
        _Name(50, required=True),
        f"The label in statistics: unique in its link, in either case, not `{UNKNOWN}` or "
        f"`{OTHER}`, and with no `-` at its beginning.",
        "Blue button",
    )
    url = member(Target(required=True), "The target of its visitors.", "https://example.com/blue")
    weight = member(
        Integer(1, MAX_WEIGHT, load_default=1),
        "Its share of the visitors is this part of the sum of all weights.",
        50,
    )


class Variants(Objects):
    def __init__(self) -> None:
        super().__init__(Variant, MAX_VARIANTS)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[dict[str, Any]]:
        variants = super()._deserialize(value, attr, data, **kwargs)
        if variants and len(variants) < MIN_VARIANTS:
            raise ValidationError(f"must have {MIN_VARIANTS} to {MAX_VARIANTS} variants, or none")
        names = {UNKNOWN.lower(), OTHER.lower(), *(variant["name"].lower() for variant in variants)}
        if len(names) < len(variants) + 2:
            raise ValidationError(
                f"must have different names, in either case, and none that is {UNKNOWN} or {OTHER}"
            )
        return variants
