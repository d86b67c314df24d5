"""Hints for paths under /api that do not exist: the operation that was probably meant."""

import re
from difflib import SequenceMatcher, get_close_matches
from typing import NamedTuple

from flask import current_app

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

    def misses_number(self, path: str) -> bool:
        """Return True if the path is the one of this route, except that an id is not a number."""
        pattern = re.sub("<[^>]*>", "[^/]+", re.sub("<id:[^>]*>", "([^/]+)", self.rule))
        match = re.fullmatch(pattern, path.rstrip("/"))
        ids = match.groups() if match else ()
        return any(_canonical(part) != _ID for part in ids) and not any(part in _SYNONYMS for part in ids)


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


def _routes() -> list[_Route]:
    return sorted(
        _Route(method, rule.rule, _words(rule.rule))
        for rule in current_app.url_map.iter_rules()
        if rule.rule.startswith("/api/")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    )


def _nearest(method: str, words: list[str], routes: list[_Route]) -> str:
    """Name the most similar route, if possible one with this method. The order of the words does not matter."""
    candidates = [route for route in routes if route.method == method] or routes
    route = max(candidates, key=lambda route: SequenceMatcher(None, sorted(words), sorted(route.words)).ratio())
    return f"Did you mean {route}? {_LIST}"


def hint(method: str, path: str) -> str:
    """Return the sentences that follow "API operation not found."."""
    path = re.sub("/+", "/", re.sub("^/api/v[0-9.]+/", "/api/", path))
    words, routes = _words(path) if len(path) <= MAX_PATH else [], _routes()
    names = get_close_matches(words[0], {route.words[0] for route in routes}, 1, _CUTOFF) if words else []
    if not names:
        return _DEFAULT
    method = "PUT" if method == "PATCH" else method
    routes = [route for route in routes if route.words[0] == names[0]]
    is_path = any((route.method, route.rule) == (method, path) for route in routes)
    if is_path or not any(route.method == method and route.misses_number(path) for route in routes):
        return _nearest(method, [names[0], *words[1:]], routes)
    if names[0] == "url":
        return "The id of a link is a number. Find the link by its short URL with GET /api/urls?short=SHORT_URL."
    index = next((route for route in routes if route.method == "GET" and len(route.words) == 1), routes[0])
    return f"An id is a number. {index} lists the ids."


def method_hint(method: str, path: str) -> str:
    """Return the sentences that name the write of the list or the record that a path reads, or nothing.

    A POST to a record means its update.
    """
    words = _words(path)
    method = "PUT" if method == "PATCH" or (method == "POST" and _ID in words) else method
    routes = [route for route in _routes() if route.method == method and route.words[0] == words[0]]
    return f" {_nearest(method, words, routes)}" if routes and len(words) <= len(("url", _ID)) else ""
