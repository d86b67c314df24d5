"""Aliases: custom ones, and generated ones."""

import math
import os
import re
from functools import lru_cache
from typing import Any

from flask import current_app
from marshmallow import ValidationError
from werkzeug.routing import Map

from linkmgr.fields.base import Matching

# Without vowels, characters that look like vowels or like each other, and three letters in a row, so that generated
# aliases do not spell words.
_LETTERS, _DIGITS = "bcdfghkmnpqrtvwxzBCDFGHKMNPQRTVWXZ", "256789"
_ALIAS_PATTERN = (_LETTERS, _LETTERS, _DIGITS, _LETTERS, _LETTERS, _DIGITS, _LETTERS, _LETTERS)
_ALIASES = math.prod(map(len, _ALIAS_PATTERN))

# Paths that visitors and programs expect on a web site, besides those of the service itself.
_WELL_KNOWN = re.compile(
    "about|admin|administrator|assets|blog|contact|dashboard|docs|favicon|help|home|index|legal|logout|mail|openapi|"
    "privacy|register|robots|root|security|settings|signin|signup|sitemap|status|support|terms|user|users|www"
)


def new_alias() -> str:
    """Return an alias of 35 random bits, from one system call. 64 bits make the remainder even enough."""
    number, alias = int.from_bytes(os.urandom(8)) % _ALIASES, ""
    for characters in _ALIAS_PATTERN:
        number, index = divmod(number, len(characters))
        alias += characters[index]
    return alias


@lru_cache(maxsize=1)  # reading all routes would be most of the time of checking an imported link
def words_of_routes(routes: Map) -> set[str]:
    return {route.rule.split("/", 2)[1].lower() for route in routes.iter_rules()}


def _is_reserved(alias: str) -> bool:
    word = alias.lower()
    return bool(_WELL_KNOWN.fullmatch(word)) or word in words_of_routes(current_app.url_map)


class Alias(Matching):
    """A custom alias of a link or a bio page."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("[A-Za-z0-9_-]{1,50}", "1 to 50 letters, digits, '_' or '-'", **kwargs)

    def clean(self, text: str) -> str:
        if _is_reserved(super().clean(text)):
            raise ValidationError(f"'{text}' is reserved: choose another alias")
        return text
