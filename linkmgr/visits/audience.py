"""Names in a link's targets: those that forms propose, and those that can match no visitor, because
there is no such country, device or language.

Each function takes a name in lower case. It returns the end of the sentence that warns of the name,
or None if the name can match. It accepts a name in doubt, because no list has all models of
devices.
"""

import re
import tomllib
from pathlib import Path

from linkmgr.core.fields import languages
from linkmgr.core.fields.countries import LABELS, NAMES
from linkmgr.core.fields.unknown import did_you_mean
from linkmgr.visits.targets import DEVICE_WORDS, REGIONS

_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_OTHER_NAMES = {name: code for code, names in _WORDS["countries"].items() for name in names}
_OTHER_CODES = {name: code for code, names in _WORDS["languages"].items() for name in names}
_DEVICES = DEVICE_WORDS | set(_WORDS["devices"]["brands"].split())

# The choices of forms for targets, by the value that is stored
COUNTRIES = {name.lower(): name for name in sorted(names[0] for names in NAMES.values())}
DEVICES = {
    name.lower(): name
    for name in (
        "iPhone", "iPad", "Android", "Mac", "Windows", "Linux", "ChromeOS", "Phone", "Tablet", "Mobile", "Desktop"
    )
}  # fmt: skip
NAMES_OF_LANGUAGES = {
    name.lower(): name
    for name in sorted({names[0] for code, names in languages.NAMES.items() if len(code) == len("en")})
}


def country_problem(name: str) -> str | None:
    if name.upper() in NAMES or name in LABELS:
        return None
    hint = did_you_mean(name, LABELS, _OTHER_NAMES.get(name))
    return f"is neither an English name nor an ISO code of a country, so it matches no visitor.{hint}"


def device_problem(name: str) -> str | None:
    words = re.split("[ -]", name)
    if any(character.isdigit() for character in name) or words[0] in _DEVICES:
        return None
    hint = did_you_mean(name, _DEVICES)
    return f"is not a model, maker, system or kind of device, so it matches no visitor.{hint}"


def _is_tag(name: str) -> bool:
    primary, *subtags = re.split("[-_]", name)
    if not re.fullmatch("[a-z]{2,3}", primary, re.ASCII) or primary in _OTHER_CODES:
        return False
    if len(primary) == len("en") and primary not in languages.NAMES:
        return False
    regions = [subtag for subtag in subtags if len(subtag) == len("us")]
    return all(re.fullmatch("[a-z0-9]{1,8}", subtag, re.ASCII) for subtag in subtags) and all(
        region.upper() in NAMES or region == primary for region in regions
    )


def language_problem(name: str) -> str | None:
    names = languages.LABELS.keys()
    language, _, region = name.removesuffix(")").partition(" (")
    if name == "*" or name in names or _is_tag(name) or (language in names and region in REGIONS):
        return None
    hint = did_you_mean(name, names, _OTHER_CODES.get(name))
    return f"is not a language that browsers send. Use a code such as fr or pt-BR, or an English name.{hint}"
