"""Visits of branded domains that found nothing. Each process counts them by path, and stores the counts together."""

import threading
from collections import Counter
from typing import Any

import orjson
from flask import Flask

from linkmgr.core.database.background import Background
from linkmgr.core.settings import this_app
from linkmgr.repository import domains
from linkmgr.visits import counting

_STORE_SECONDS = 5
_MAX_LENGTH = 100  # characters of a path
_MAX_COUNTED = 2000  # different paths of a process between two stores, which its domains share


class MissingPaths(Background):
    name = "counting missing paths"
    pause = _STORE_SECONDS

    def __init__(self, app: Flask) -> None:
        super().__init__(app)
        self._counts: dict[int, Counter[str]] = {}  # by domain
        self._lock = threading.Lock()

    def add(self, domain_id: int, path: str) -> None:
        self.start()
        with self._lock:
            paths = self._counts.setdefault(domain_id, Counter())
            if path not in paths and len(paths) >= max(1, _MAX_COUNTED // len(self._counts)):
                path = domains.OTHER_PATHS
            paths[path] += 1

    def work(self) -> None:
        with self._lock:
            counts, self._counts = self._counts, {}
        rows = [
            {"domain_id": domain_id, "path": path, "visits": visits}
            for domain_id, paths in counts.items()
            for path, visits in paths.items()
        ]
        if rows:
            domains.add_missing(orjson.dumps(rows).decode())

    end = work


def count(environ: dict[str, Any], domain_id: int, path: str) -> None:
    if environ["REQUEST_METHOD"] == "GET" and counting.is_by_person(environ):
        paths: MissingPaths = this_app().extensions["linkmgr_missing_paths"]
        paths.add(domain_id, "".join(filter(str.isprintable, path[:_MAX_LENGTH])))


def init_app(app: Flask) -> None:
    app.extensions["linkmgr_missing_paths"] = MissingPaths(app)
