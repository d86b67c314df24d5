"""Rules in the form of a link: each has rows of a condition and its values as a text, a target and
a place."""

import re

from linkmgr.console.controls import FormData, lines, to_number, with_scheme
from linkmgr.core.database.statements import Row
from linkmgr.core.fields.bodies import problems
from linkmgr.core.fields.zones import regional_zones
from linkmgr.schemas.links import Link
from linkmgr.visits.audience import COUNTRIES, DEVICES, NAMES_OF_LANGUAGES
from linkmgr.visits.conditions import WEEKDAYS
from linkmgr.visits.rules import CONDITIONS, MAX_RULES, Conditions

_FIELDS = Conditions().fields
LABELS = {name: field.metadata["label"] for name, field in _FIELDS.items()}
_LISTED = {
    "country": COUNTRIES.values(),
    "device": DEVICES.values(),
    "os": ("iOS", "Android", "Windows", "Mac OS X", "Linux", "Chrome OS"),
    "browser": ("Chrome", "Chrome Mobile", "Firefox", "Firefox Mobile", "Safari", "Mobile Safari", "Edge"),
    "language": NAMES_OF_LANGUAGES.values(),
    "weekdays": WEEKDAYS,
}
# The values that forms offer for a condition, as they are written there
VALUES = {name: [CONDITIONS[name].as_text([value]) for value in values] for name, values in _LISTED.items()}
VALUES["timezone"] = regional_zones()


def read(form: FormData) -> list[Row]:
    rules = [(_place(form, number), _rule(form, f"rules.{number}")) for number in range(MAX_RULES + 1)]
    return [rule for _, rule in sorted(rules, key=lambda pair: pair[0]) if any(rule.values())]


def _place(form: FormData, number: int) -> int:
    place = to_number(form.get(f"rules.{number}.place", ""))
    return place if isinstance(place, int) else number + 1


def _rule(form: FormData, name: str) -> Row:
    when: Row = {}
    texts = (lines(text).replace("\n", " ").strip() for text in form.getlist(f"{name}.value"))
    for condition, text in zip(form.getlist(f"{name}.condition"), texts, strict=False):
        if condition in CONDITIONS:
            value = CONDITIONS[condition].from_text(text)
            when[condition] = [*when.get(condition, ()), *value] if isinstance(value, list) else value
        elif condition or text:
            when[condition] = text
    return {"when": when, "url": with_scheme(form.get(f"{name}.url", ""))}


def rows(rule: Row) -> list[tuple[str, str]]:
    """Return the names and the texts of the conditions of a rule, which a form may have sent."""
    when = rule.get("when", {})
    names = [name for name in LABELS if name in when] + [name for name in when if name not in LABELS]
    return [
        (name, CONDITIONS[name].as_text(when[name]) if name in CONDITIONS else when[name]) for name in names
    ]


def stated(rule: Row) -> str:
    return "; ".join(f"{LABELS.get(name, name)}: {text}" for name, text in rows(rule))


_EXAMPLES = dict(rows({"when": {name: field.metadata["examples"][0] for name, field in _FIELDS.items()}}))
# The label, the sentence and an example of each condition
EXPLAINED = [
    (LABELS[name], field.metadata["description"].replace("`", ""), _EXAMPLES[name])
    for name, field in _FIELDS.items()
]


def problem(rules: list[Row]) -> tuple[str, tuple[str, int, str]] | None:
    """Return the message of the first problem, in words of the form, and the controls that it is
    about."""
    text = problems(Link.updates(), {"rules": rules}).get("rules", "")
    if not (place := re.match(r"\[(\d+)\]\.(?:when\.)?(\w*) (.*)", text)):
        return None
    number, part, reason = int(place[1]), place[2], place[3]
    if part in LABELS and re.match("must be an (?:array|object)", reason):
        reason = f"must be written as in the example {_EXAMPLES[part]}"
    part = part if part in LABELS or part == "url" else ""
    words = f"the {LABELS.get(part, 'target')} {reason}." if part else "choose a condition."
    return f"Rule {number + 1}: {words}", ("rules", number, part)
