"""ISO 3166 codes of countries and their English names.

The first name in countries.txt is the one of the built-in country database. Other databases use the further names, and
change names over time.
"""

from pathlib import Path

_LINES = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
NAMES = {code: names.split("/") for code, _, names in (line.partition(" ") for line in _LINES)}
LABELS = {name.lower(): names[0] for names in NAMES.values() for name in names}
