"""Hints for paths under /api that do not exist: the operation that was probably meant."""

import re
from collections.abc import Iterator
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
    path: str  # for people: /api/url/:link_id
    segments: list[str]  # of the path after /api, with _ID and _TEXT for its parameters
    words: list[str]  # the segments in the singular


def _singular(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word  # noqa: PLR2004 - no word of three letters is a plural


def _routes() -> Iterator[_Route]:
    for rule in current_app.url_map.iter_rules():
        if rule.rule.startswith("/api/"):
            segments = re.sub("<[^>]*>", _TEXT, re.sub("<id:[^>]*>", _ID, rule.rule)).split("/")[2:]
            path = re.sub(r"<(?:\w+:)?(\w+)>", r":\1", rule.rule)
            for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
                yield _Route(method, path, segments, list(map(_singular, segments)))


def _canonical(segment: str) -> str:
    if segment.isascii() and segment.isdigit():
        return _ID
    word = _singular(re.sub("[-_]", "", segment.lower()))
    return _SYNONYMS.get(word, word)


def _words(segments: list[str]) -> list[str]:
    return [word for word in map(_canonical, segments) if word]


def _misses_number(segments: list[str], route: _Route) -> bool:
    """Return True if the path is the one of a route, except that an id is not a number."""
    pairs = list(zip(segments, route.segments, strict=False))
    return (
        len(segments) == len(route.segments)
        and all(expected in (segment, _ID, _TEXT) for segment, expected in pairs)
        and any(expected == _ID and _canonical(segment) != _ID for segment, expected in pairs)
        and not any(segment in _SYNONYMS for segment in segments)
    )


def _nearest(method: str, words: list[str], routes: list[_Route]) -> _Route:
    """Return the most similar route, if possible one with this method. The order of the words does not matter."""
    candidates = [route for route in routes if route.method == method] or routes
    return max(candidates, key=lambda route: SequenceMatcher(None, sorted(words), sorted(route.words)).ratio())


def hint(method: str, path: str) -> str:
    """Return the sentences that follow "API operation not found."."""
    if len(path) > MAX_PATH:
        return _DEFAULT
    segments = [segment for segment in path.split("/")[2:] if segment and not re.fullmatch(r"v[0-9.]+", segment)]
    words = _words(segments)
    routes = sorted(_routes())
    names = get_close_matches(words[0], {route.words[0] for route in routes}, 1, _CUTOFF) if words else []
    if not names:
        return _DEFAULT
    method = "PUT" if method == "PATCH" else method
    routes = [route for route in routes if route.words[0] == names[0]]
    is_path = any(route.method == method and route.segments == segments for route in routes)
    if not is_path and any(route.method == method and _misses_number(segments, route) for route in routes):
        if names[0] == "url":
            return "The id of a link is a number. Find the link by its short URL with GET /api/urls?short=SHORT_URL."
        index = next((route for route in routes if route.method == "GET" and len(route.words) == 1), routes[0])
        return f"An id is a number. {index.method} {index.path} lists the ids."
    route = _nearest(method, [names[0], *words[1:]], routes)
    return f"Did you mean {route.method} {route.path}? {_LIST}"


def method_hint(method: str, path: str) -> str:
    """Return the sentences that name the write of the list or the record that a path reads, or nothing.

    A POST to a record means its update.
    """
    words = _words(path.split("/")[2:])
    method = "PUT" if method == "PATCH" or (method == "POST" and _ID in words) else method
    routes = sorted(route for route in _routes() if route.method == method and route.words[:1] == words[:1])
    if not routes or len(words) > len(("url", _ID)):
        return ""
    route = _nearest(method, words, routes)
    return f" Did you mean {route.method} {route.path}? {_LIST}"
