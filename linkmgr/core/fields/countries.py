"""ISO 3166 codes of countries and their English names.

The first name in countries.txt is the one of the built-in country database. Other databases use the
further names, and change names over time.
"""

from pathlib import Path
from typing import Any

_LINES = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
NAMES = {code: names.split("/") for code, _, names in (line.partition(" ") for line in _LINES)}
LABELS = {name.lower(): names[0] for names in NAMES.values() for name in names}
# Some databases have only codes
_CODES = {name: code for code, names in NAMES.items() for name in (code, *names)}


def code_of(name: str) -> str | None:
    return _CODES.get(name)


def with_code(row: dict[str, Any]) -> dict[str, Any]:
    """Return a visit or a row of statistics with the code of its country, if it has one."""
    return row | {"country_code": code_of(row["country"])} if "country" in row else row
