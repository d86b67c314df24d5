"""Preparation of the processes that serve the application: deploy/gunicorn.conf.py calls these
functions."""

import os
import stat
from contextlib import suppress
from importlib import import_module
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache

from linkmgr.core.database import jobs
from linkmgr.core.settings import settings
from linkmgr.core.web import pool
from linkmgr.core.web.request import Service
from linkmgr.visits import bots, queue


def load(app: Any) -> None:
    """Load what requests would load later. `git pull` replaces files while this version serves."""
    if not isinstance(app, Service):
        return
    bots.is_bot("Mozilla/5.0")  # its patterns are compiled once, in 0.2 s that a visitor would wait
    for module in ("docs_view", "document"):
        import_module(f"linkmgr.document.{module}")
    templates = app.jinja_env
    with suppress(OSError, EOFError), app.app_context():
        # Compiling takes most of a second. The folder contains code, so nobody else may write to
        # it.
        folder = settings().folder / "templates"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (folder.lstat().st_uid, stat.S_IMODE(folder.lstat().st_mode)) == (os.geteuid(), 0o700):
            templates.bytecode_cache = FileSystemBytecodeCache(str(folder))
            _compile(templates)
    templates.bytecode_cache = None  # a request that cannot write to it would fail
    _compile(templates)


def _compile(templates: Environment) -> None:
    for name in templates.list_templates():
        templates.get_template(name)


def start(app: Any, threads: int) -> None:
    """Start the background threads of a worker."""
    if isinstance(app, Service):
        pool.resize(threads)
        queue.start(app)
        with app.app_context():
            own = jobs.registered().threads
        for thread in (jobs.Worker, *(jobs.Fetcher,) * jobs.FETCHERS, *own):
            thread(app).start()
