"""Hints for paths under /api that do not exist: the operation that was probably meant."""

import re
from difflib import SequenceMatcher, get_close_matches
from typing import NamedTuple

from linkmgr.core.settings import this_app
from linkmgr.core.web import operation

MAX_PATH = 200  # characters; longer paths get no hint
_LIST = "/api/docs lists all operations."
_DEFAULT = f"Check the URL; {_LIST}"
_ID, _TEXT = "#", "*"
_CUTOFF = 0.66  # similarity of two words of three letters, two of which are swapped
# Words that other services use, in the singular, by ours. Those of "" are left out.
_SYNONYMS = {
    synonym: word
    for word, synonyms in {
        "url": "link shorturl shortlink shorten shortener short",
        "qr": "qrcode",
        "bio": "page biopage biolink",
        "overlay": "cta",
        "splash": "splashe splashpage",
        "account": "me profile",
        "openapi.json": "openapi openapi.yaml swagger swagger.json",
        "add": "create new store",
        "update": "edit change modify patch",
        "delete": "remove destroy",
        "stat": "statistic analytic",
        "visit": "click scan",
        "": "list all index api",
    }.items()
    for synonym in synonyms.split()
}


class _Route(NamedTuple):
    method: str
    rule: str
    words: list[str]

    def __str__(self) -> str:
        path = re.sub(r"<(?:\w+:)?(\w+)>", r":\1", self.rule)
        return f"{self.method} {path}"

    def is_without_number(self, words: list[str]) -> bool:
        pairs = [
            (word, own) for word, own in zip(words, self.words, strict=False) if own not in (word, _TEXT)
        ]
        is_id = all(own == _ID and word not in _SYNONYMS.values() for word, own in pairs)
        return bool(pairs) and is_id and len(words) == len(self.words)


def _canonical(segment: str) -> str:
    if re.fullmatch("[0-9]+|<id:.*", segment):
        return _ID
    if segment.startswith("<"):
        return _TEXT
    word = re.sub("[-_]", "", segment.lower())
    word = word.removesuffix("s") if len(word) > 3 else word  # noqa: PLR2004 - no word of three letters is a plural
    return _SYNONYMS.get(word, word)


def _words(path: str) -> list[str]:
    return [word for word in map(_canonical, path.split("/")[2:]) if word]


def _routes(method: str, words: list[str]) -> list[_Route]:
    routes = [
        _Route(route.method, route.rule.rule, _words(route.rule.rule))
        for route in operation.routes(this_app())
    ]
    first = get_close_matches(words[0], {route.words[0] for route in routes}, 1, _CUTOFF) if words else []
    routes = [route for route in routes if route.words[:1] == first]
    return sorted([route for route in routes if route.method == method] or routes)


def _nearest(words: list[str], routes: list[_Route]) -> str:
    def likeness(route: _Route) -> tuple[float, bool]:
        ratio = SequenceMatcher(None, sorted(words), sorted(route.words)).ratio()
        return ratio, not {"update", "delete"}.isdisjoint(route.words)  # of the row itself

    route = max(routes, key=likeness)
    return f"Did you mean {route}? {_LIST}"


def hint(method: str, path: str) -> str:
    words = (
        _words(re.sub("^/api/v[0-9.]+/", "/api/", re.sub("/+", "/", path))) if len(path) <= MAX_PATH else []
    )
    routes = _routes("PUT" if method == "PATCH" else method, words)
    if not routes:
        return _DEFAULT
    words[0] = routes[0].words[0]
    if any(route.words == words for route in routes) or not any(
        route.is_without_number(words) for route in routes
    ):
        return _nearest(words, routes)
    if words[0] == "url":
        return (
            "The id of a link is a number. Find the link by its short URL with GET /api/urls?short=SHORT_URL."
        )
    index = next((route for route in _routes("GET", words) if len(route.words) == 1), None)
    return f"An id is a number. {f'{index} lists the ids.' if index else _LIST}"


def method_hint(method: str, path: str) -> str:
    """Name the write of the list or the record that a path reads, or return "". A POST to a record
    means its update."""
    words = _words(path)
    method = "PUT" if method == "PATCH" or (method == "POST" and _ID in words) else method
    routes = [route for route in _routes(method, words) if route.method == method]
    return f" {_nearest(words, routes)}" if routes and len(words) <= len(("url", _ID)) else ""
