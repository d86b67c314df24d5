"""Warnings of members and parameters that an operation does not have, with the name that was
probably meant. A client that sends `Prefer: handling=strict` gets an error instead."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

from flask import has_request_context
from marshmallow import Schema

from linkmgr.core.fields.problems import invalid
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


def _is_strict() -> bool:
    return has_request_context() and current().is_strict


def _report(noun: str, name: str, hint: str) -> None:
    if _is_strict():
        raise invalid(f"{hint} '{name}' is not a {noun} of this operation".lstrip(), field=name)
    warn(f"The {noun} '{name}' is unknown and was ignored.{hint}")


def warn_unknown_parameters(names: Iterable[str]) -> None:
    unknown = (name[:_MAX_LENGTH] for name in current().args if name not in names)
    for name in islice(unknown, MAX_NAMES):
        _report("query parameter", name, did_you_mean(name, names, _meant(name, list(names))))


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
    if not (can_warn() or _is_strict()):
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
        _report("member", f"{prefix}{short}", did_you_mean(short, fields, meant, prefix))
