import math
import os
import re
from functools import lru_cache
from typing import Any

from flask import current_app
from marshmallow import ValidationError
from werkzeug.routing import Map

from linkmgr.core.fields.base import Matching
from linkmgr.core.settings import settings
from linkmgr.core.web.host import foreign_routes

MAX_ALIAS = 100
PATTERN = f"[A-Za-z0-9_-]{{1,{MAX_ALIAS}}}"
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


class Alias(Matching):
    """A custom alias on any host. On our own host, more words are reserved than on branded
    domains."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(PATTERN, f"1 to {MAX_ALIAS} letters, digits, '_' or '-'", **kwargs)

    def clean(self, text: str) -> str:
        if super().clean(text) in reserved_words(foreign_routes()):
            raise ValidationError(f"'{text}' is reserved: choose another alias")
        return text


class OwnAlias(Alias):
    def clean(self, text: str) -> str:
        refuse_own_words(super().clean(text))
        return text
