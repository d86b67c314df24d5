"""Columns of the exports of other services (sources.toml), and the service that a file is
recognized to be of."""

import re
import tomllib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from linkmgr.features.imports.rows import LINK_MEMBERS, MEMBERS

MAX_NAME = 100  # characters; names in JSON can have megabytes
ANY_SEPARATOR = "|;,"  # of names of tags in a cell; the first that the cell has separates them

Columns = dict[str, tuple[str, ...]]  # of each member; the first that is not empty is the member


def normalize(name: str) -> str:
    return _cached(name) if len(name) <= MAX_NAME else _normalize(name)


def _normalize(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.lower()) or name


_cached = lru_cache(maxsize=1024)(_normalize)  # each row repeats the names


def _columns(names: dict[str, str]) -> Columns:
    return {member: tuple(columns.split()) for member, columns in names.items()}


class Source(NamedTuple):
    name: str
    required: tuple[tuple[str, ...], ...]  # one of each
    columns: Columns
    tag_separators: str
    short_urls: tuple[str, ...]
    card: str
    open: tuple[str, ...]  # columns that say nothing of whether a link is open
    carried: tuple[str, ...]  # columns of `carried`
    root: str  # the alias of the link at the root of a domain, if there may be one


def _source(
    name: str,
    required: str,
    *,
    short_urls: str = "",
    card: str = "",
    open_anyway: str = "",
    carried: str = "",
    root: str = "",
    **columns: str,
) -> Source:
    alternatives = tuple(tuple(names.split("|")) for names in required.split())
    own = {member: (member,) for member in LINK_MEMBERS} if name == "linkmgr" else {}
    separators = "|" if name in ("linkmgr", "shlink") else ANY_SEPARATOR
    return Source(
        name,
        alternatives,
        _USUAL | own | _columns(columns),
        separators,
        tuple(short_urls.split()),
        card,
        (*_OPEN, *open_anyway.split()),
        tuple(carried.split()),
        root,
    )


_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
_USUAL = _columns(_DATA["usual"])
_OPEN = tuple(_DATA["open"]["anyway"].split())
_GUESSES = _USUAL | _columns(_DATA["guesses"])
SOURCES = tuple(_source(name, **service) for name, service in _DATA["services"].items())
BY_NAME = {source.name: source for source in SOURCES}


def recognize_source(columns: Iterable[str]) -> Source | None:
    names = {normalize(column) for column in columns}
    return next((s for s in SOURCES if all(names & set(alternatives) for alternatives in s.required)), None)


def mapping_of(source: Source | None, columns: list[str]) -> dict[str, str]:
    names = {normalize(column): column for column in reversed(columns)}
    candidates = source.columns if source else _GUESSES
    firsts = {member: next(filter(names.get, candidates.get(member, ())), None) for member in MEMBERS}
    return {member: names[name] for member, name in firsts.items() if name}
