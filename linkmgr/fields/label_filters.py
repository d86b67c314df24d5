"""Filters of statistics: lists of labels, each of which is included or excluded."""

import csv
import re
from dataclasses import dataclass

from linkmgr.fields import languages
from linkmgr.fields.countries import LOWER_NAMES, NAMES
from linkmgr.fields.problems import invalid
from linkmgr.settings import settings

DEVICES = ("phone", "tablet", "desktop", "unknown")
MAX_VALUES = 50
_CODE_LENGTH = 2  # of a country and most languages
_COUNTRIES = LOWER_NAMES | {"unknown", "other"}  # labels, besides those of a database of the installation
_EXPECTED = {
    "country": "country must be names such as Germany, or ISO 3166 codes such as DE",
    "language": "language must be names such as German, or codes such as de",
}
_QUOTED = re.compile('(^|,) *- *"')  # an excluded value in double quotes


@dataclass(frozen=True)
class Filter:
    """Labels in lower case. `included` is None if all labels are included that are not excluded."""

    included: list[str] | None
    excluded: list[str] | None
    text: str


def _values(name: str, text: str) -> list[str]:
    """Split a list at its commas. A label with a comma is in double quotes, as in CSV. `-` may stand before them."""
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


def _labels(name: str, values: list[str]) -> list[str]:
    """Return the labels of the values in lower case. A country or a language may be given by its code."""
    if name == "device" and not {value.lower() for value in values} <= set(DEVICES):
        raise invalid(f"device must be from the list {', '.join(DEVICES)}", "unknown_value")
    return [label for value in values for label in _labels_of(name, value)]


def _labels_of(name: str, value: str) -> list[str]:
    label = value.lower()
    is_code = name in _EXPECTED and (len(value) == _CODE_LENGTH or (name == "language" and label in languages.NAMES))
    match name:
        case "country" if is_code:
            labels = [name.lower() for name in NAMES.get("GB" if label == "uk" else value.upper(), ())]
        case "country":  # the database of this setting may have further names
            labels = [label] if label in _COUNTRIES or settings().geoip_database else []
        case "language" if label in languages.LABELS:
            labels = [languages.LABELS[label].lower()]
        case "language" if label in languages.NAMES:
            labels = [languages.NAMES[label][0].lower()]
        case "language":
            labels = [label] if label in ("unknown", "other") else []
        case _:
            labels = [label]
    if not labels:
        raise invalid(f"{_EXPECTED[name]}; {value} is not a {'code' if is_code else 'name'}", "unknown_value")
    return labels


def parse(name: str, text: str) -> Filter:
    values = _values(name, text)
    included = [value for value in values if not value.startswith("-")]
    excluded = [value[1:].strip() for value in values if value.startswith("-")]
    return Filter(_labels(name, included) or None, _labels(name, excluded) or None, text)
