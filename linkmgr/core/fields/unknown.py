"""Warnings of members that a body does not have, with the name that was probably meant."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

from marshmallow import Schema

from linkmgr.core.web.request import can_hint, can_warn, current, note_ignored_member, warn

MAX_NAMES = 10  # that are compared with the members of a body
_MAX_LENGTH = 50
_CUTOFF = 0.75

# Names that other services and our responses use, without "_" and "-", by the members that they can
# mean.
_MEANINGS = {
    name: members.split()
    for members, _, names in (
        line.partition(": ") for line in Path(__file__).with_name("synonyms.txt").read_text().splitlines()
    )
    for name in names.split()
}


def nearest(name: str, names: Iterable[str], number: int = 1, cutoff: float = _CUTOFF) -> list[str]:
    return get_close_matches(name, names, number, cutoff) if can_hint() else []


def did_you_mean(name: str, names: Iterable[str], meant: str | None = None, prefix: str = "") -> str:
    similar = [meant] if meant else nearest(name.lower(), names)
    return f" Did you mean '{prefix}{similar[0]}'?" if similar else ""


def warn_unknown_parameters(names: Iterable[str]) -> None:
    unknown = (name[:_MAX_LENGTH] for name in current().args if name not in names)
    for name in islice(unknown, MAX_NAMES):
        warn(f"The query parameter '{name}' is unknown and was ignored.{did_you_mean(name, names)}")


def _meant(name: str, fields: Iterable[str]) -> str | None:
    plain = re.sub("[-_ ]", "", name.lower())
    if plain in fields:
        return plain
    if isinstance(fields, Mapping):
        for member, field in fields.items():
            if plain in field.metadata.get("synonyms", ()):
                return str(member)
    return next((member for member in _MEANINGS.get(plain, ()) if member in fields), None)


def warn_unknown(
    schema: type[Schema], fields: Iterable[str], members: dict[str, Any], prefix: str = ""
) -> None:
    """Warn of members that are not in the schema, except those that a read of the record shows.

    A member that stands for another one, such as `alias` for `custom`, also causes a warning if
    reads show it, unless the other one was sent too. Members that cannot be changed are kept for
    responses.warn_fixed.
    """
    if not can_warn():
        return
    readable: dict[str, bool] = getattr(schema, "readable", {})
    names = (name for name, value in members.items() if name not in fields and value not in (None, ""))
    for name in islice(names, MAX_NAMES):
        meant = _meant(name, fields)
        if name in readable and (meant is None or meant in members):
            if readable[name] and not prefix:
                note_ignored_member(name, members[name])
            continue
        short = name[:_MAX_LENGTH]
        hint = did_you_mean(short, fields, meant, prefix)
        warn(f"The member '{prefix}{short}' is unknown and was ignored.{hint}")
