"""Filters of statistics: lists of labels, each of which is included or excluded."""

import csv
import re
from dataclasses import dataclass

from linkmgr.core.fields.problems import invalid
from linkmgr.visits.dimensions import BY_NAME, AnyText

MAX_VALUES = 50
_QUOTED = re.compile('(^|,) *- *"')  # an excluded value in double quotes


@dataclass(frozen=True)
class Filter:
    """Labels in lower case. `included` is None if all labels are included that are not excluded."""

    included: list[str] | None
    excluded: list[str] | None
    text: str

    @property
    def labels(self) -> dict[str, list[str]]:
        """The argument of visit_passes() for one dimension, see schema.sql."""
        both = {"included": self.included, "excluded": self.excluded}
        return {name: labels for name, labels in both.items() if labels is not None}


def _values(name: str, text: str) -> list[str]:
    """Split a list at its commas. A label with a comma is in double quotes, as in CSV. `-` may
    stand before them."""
    try:
        [values] = csv.reader([_QUOTED.sub(r'\1"-', text)], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        values = [""]
    values = [value.strip() for value in values]
    is_complete = values and all(value.removeprefix("-").strip() for value in values)
    if not is_complete or len(values) > MAX_VALUES:
        raise invalid(
            f"{name} must be 1 to {MAX_VALUES} values separated by commas, none of them empty; begin a value "
            'with - to exclude it, and enclose a value that contains a comma in double quotes, such as "-Direct, email'
            ' and other"'
        )
    return values


def _meant(name: str, value: str) -> list[str]:
    labels = BY_NAME[name].labels if name in BY_NAME else AnyText()
    if meant := labels.meant(value):
        return meant
    raise invalid(f"{name} must be {labels.expected(value)}", "unknown_value")


def parse(name: str, text: str) -> Filter:
    values = _values(name, text)
    included = [label for value in values if not value.startswith("-") for label in _meant(name, value)]
    excluded = [
        label for value in values if value.startswith("-") for label in _meant(name, value[1:].strip())
    ]
    return Filter(included or None, excluded or None, text)
