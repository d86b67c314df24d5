"""ISO 639 codes of languages, as browsers send them, and their English names.

languages.txt has the languages of CLDR, as in Babel 2.19, those of ISO 639-2, and those of ISO
639-3 in which browsers are published. The first name is the label of statistics. The others are
further names, and the first without accents.
"""

from pathlib import Path

_LINES = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
NAMES = {code: names.split("/") for code, _, names in (line.partition(" ") for line in _LINES)}
LABELS = {name.lower(): names[0] for names in NAMES.values() for name in names}
_NAMED = [(name.lower(), code) for code, names in NAMES.items() for name in names]
# Without names that are codes, such as ga. The last code of a name means all of a language.
CODES = {name: code for name, code in _NAMED if name not in NAMES}
