import math
import os
import re
import unicodedata
from functools import lru_cache
from typing import Any

from flask import current_app
from marshmallow import ValidationError
from werkzeug.routing import Map

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.base import Matching
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.urls import has_lookalikes
from linkmgr.core.settings import settings
from linkmgr.core.web.host import foreign_routes, wide_alias

MAX_ALIAS = 100
PATTERN = f"[A-Za-z0-9_-]{{1,{MAX_ALIAS}}}"
PLAIN = f"1 to {MAX_ALIAS} letters, digits, '_' or '-'"
_PLAIN = re.compile(PATTERN, re.ASCII)
# A part of a wide alias, in which letters of other scripts are `a`, and their marks `^`
_PART = re.compile(r"(?!\.)(?:[A-Za-z]\^{0,4}|[0-9_.-])+(?<!\.)", re.ASCII)
# Letters and marks that are not drawn
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_WIDE = f"1 to {MAX_ALIAS} letters of one script, digits, '_', '-' or '.', in parts that are separated by '/'"
_LOOKALIKE = "must not mix letters that look like those of another script"
# In JSON Schema: ASCII letters, digits, and `_-./`, and all that is not ASCII
_JSON_PATTERN = f"^[^\\x00-,:-@\\[-\\^`{{-\\x7f]{{1,{MAX_ALIAS}}}$"
# Without vowels, characters that look like vowels or like each other, and three letters in a row,
# so that generated aliases do not spell words.
_LETTERS, _DIGITS = "bcdfghkmnpqrtvwxzBCDFGHKMNPQRTVWXZ", "256789"
_ALIAS_PATTERN = (_LETTERS, _LETTERS, _DIGITS, _LETTERS, _LETTERS, _DIGITS, _LETTERS, _LETTERS)
_ALIASES = math.prod(map(len, _ALIAS_PATTERN))


def new_alias() -> str:
    """Return an alias of 35 random bits, from one system call. 64 bits make the remainder even
    enough."""
    number, alias = int.from_bytes(os.urandom(8)) % _ALIASES, ""
    for characters in _ALIAS_PATTERN:
        number, index = divmod(number, len(characters))
        alias += characters[index]
    return alias


@lru_cache(maxsize=2)  # reading all routes would be most of the time of checking an imported link
def reserved_words(routes: Map) -> frozenset[str]:
    """Return the aliases whose path is one of these routes, or a folder of files, as `static` is.
    `api` is one too: the API answers all paths that begin with it."""
    pages = (rule.rule.removesuffix("/<path:filename>")[1:] for rule in routes.iter_rules())
    return frozenset(("api", *filter(re.compile(PATTERN, re.ASCII).fullmatch, pages)))


def own_words() -> frozenset[str]:
    return reserved_words(current_app.url_map)


def refuse_own_words(alias: str) -> None:
    word = alias.lower() if "ignorecase" in settings().aliases else alias
    if word in own_words():
        raise ValidationError(f"'{alias}' is reserved: choose another alias")


def normal(alias: str) -> str:
    """Return an alias as it is stored: letters that can be written in several ways in their usual
    one."""
    return alias if alias.isascii() else unicodedata.normalize("NFC", alias)


def _shape(char: str) -> str:
    if char.isascii():
        return char if char != "^" else " "
    return "a" if char.isalpha() else "^" if unicodedata.category(char)[0] == "M" else " "


def is_wide(alias: str) -> bool:
    """Return True for an alias that is none of the plain ones, but that a domain with
    `widealiases` can have. It is NFC, without letters that only differ in their looks, or that have
    none."""
    return (
        len(alias) <= MAX_ALIAS
        and not _PLAIN.fullmatch(alias)
        and not _INVISIBLE.search(alias)
        and unicodedata.is_normalized("NFKC", alias)
        and all(_PART.fullmatch("".join(map(_shape, part))) for part in alias.split("/"))
    )


@lru_cache(maxsize=2)
def _own_folders(own: Map, foreign: Map) -> list[str]:
    """Return the beginnings of the paths of our own host that branded domains do not have."""
    words = [{rule.rule.split("/")[1] for rule in routes.iter_rules()} for routes in (own, foreign)]
    return [f"{word}/" for word in words[0] - words[1]]


def own_reserved(alias: str) -> list[str]:
    """Return what an alias on our own host cannot be, or, with `/`, begin with. "" is an unknown
    one, of a link that moves."""
    if not alias:
        return [*own_words(), *_own_folders(current_app.url_map, foreign_routes())]
    return [*own_words(), *(() if _PLAIN.fullmatch(alias) else _hidden(alias, is_own=True))]


def _hidden(alias: str, *, is_own: bool) -> list[str]:
    """Return those spellings of a wide alias whose paths lead to something else, also those of the
    form for its password."""
    names, methods = (alias, alias.lower()), ("GET", "POST")
    return [
        name
        for name in names
        if any(wide_alias(f"/{name}", is_own=is_own, method=method) != name for method in methods)
    ]


def _clean_wide(text: str, *, is_own: bool) -> str:
    alias = normal(text)
    if not is_wide(alias):
        raise ValidationError(f"must be {_WIDE}")
    if any(not part.isascii() and has_lookalikes(part) for part in alias.split("/")):
        raise ValidationError(_LOOKALIKE)
    if _hidden(alias, is_own=is_own):
        raise ValidationError(f"'{alias}' is reserved: choose another alias")
    return alias


class Alias(Matching):
    """A custom alias on any host. On our own host, more words are reserved than on branded
    domains."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(PATTERN, PLAIN, **kwargs)

    @property
    def json(self) -> JsonSchema:
        about = f"{PLAIN}, and where `widealiases` allows it also '.', '/' and letters of any script."
        return {"type": "string", "pattern": _JSON_PATTERN, "description": about}

    def host(self, data: Row) -> str | None:
        """Return the host of a wide alias in a body: "" is our own, None one that cannot have it.
        Of any other, the statement that stores the alias decides."""
        raise NotImplementedError

    def is_allowed(self, _host: str) -> bool:
        """Return True if a host can have wide aliases, so that the message is about those."""
        return True

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if isinstance(value, str) and value and not _PLAIN.fullmatch(value):
            host = self.host(data)
            try:
                if host is not None:
                    return _clean_wide(value, is_own=host == "")
            except ValidationError:
                if not host or self.is_allowed(host):
                    raise
        return super()._deserialize(value, attr, data, **kwargs)

    def clean(self, text: str) -> str:
        if super().clean(text) in reserved_words(foreign_routes()):
            raise ValidationError(f"'{text}' is reserved: choose another alias")
        return text


def own_host() -> str | None:
    return "" if "widealiases" in settings().aliases else None


class OwnAlias(Alias):
    def host(self, _data: Row) -> str | None:
        return own_host()

    def clean(self, text: str) -> str:
        refuse_own_words(super().clean(text))
        return text
