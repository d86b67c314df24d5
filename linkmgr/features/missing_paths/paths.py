"""Visits that found nothing, by domain. Each process counts them by path, and stores the
counts together."""

import re
import threading
from collections import Counter
from typing import Any

import orjson
import psycopg2
from flask import Flask

from linkmgr.core.database.background import Background
from linkmgr.core.database.statements import Row
from linkmgr.core.fields.aliases import PATTERN, normal
from linkmgr.core.settings import this_app
from linkmgr.core.web.host import wide_alias
from linkmgr.features.missing_paths import repository as missing_paths
from linkmgr.visits import counting

_STORE_SECONDS = 5
_COUNTED = re.compile(f"/{PATTERN}", re.ASCII)  # what could be an alias
_MAX_COUNTED = 2000  # different paths of a process between two stores, which its domains share


class MissingPaths(Background):
    name = "counting missing paths"
    pause = _STORE_SECONDS

    def __init__(self, app: Flask) -> None:
        super().__init__(app)
        self._counts: dict[int, Counter[str]] = {}  # by domain
        self._lock = threading.Lock()

    def add(self, domain_id: int, path: str, visits: int = 1) -> None:
        self.start()
        with self._lock:
            paths = self._counts.setdefault(domain_id, Counter())
            if path not in paths and len(paths) >= max(1, _MAX_COUNTED // len(self._counts)):
                _forget_half(paths)
            paths[path] += visits

    def work(self) -> None:
        with self._lock:
            counts, self._counts = self._counts, {}
        rows: list[Row] = [
            {"domain_id": domain_id, "path": path, "visits": visits}
            for domain_id, paths in counts.items()
            for path, visits in paths.items()
        ]
        try:
            if rows:
                missing_paths.add(orjson.dumps(rows).decode())
        except (psycopg2.OperationalError, psycopg2.InterfaceError):  # the database is away
            for row in rows:
                self.add(**row)
            raise

    end = work


def _forget_half(paths: Counter[str]) -> None:
    """Count those with the fewest visits as others, so that new ones find a place."""
    others = paths.pop(missing_paths.OTHER, 0)
    for path, visits in paths.most_common()[(len(paths) + 1) // 2 :]:
        others += visits
        del paths[path]
    paths[missing_paths.OTHER] = others


def count(environ: dict[str, Any], domain_id: int | None, path: str, *, can_be_wide: bool) -> None:
    is_own = domain_id is None
    could_be_alias = _COUNTED.fullmatch(path) or (can_be_wide and wide_alias(path, is_own=is_own))
    if environ["REQUEST_METHOD"] == "GET" and could_be_alias and counting.is_by_person(environ):
        paths: MissingPaths = this_app().extensions["linkmgr_missing_paths"]
        paths.add(missing_paths.OWN if domain_id is None else domain_id, normal(path))


def init_app(app: Flask) -> None:
    app.extensions["linkmgr_missing_paths"] = MissingPaths(app)
