"""Configuration of gunicorn. GUNICORN_CMD_ARGS and WEB_CONCURRENCY take precedence."""

import logging
import os
import re
import sys
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any
from urllib.parse import quote

import orjson
from gunicorn.glogging import Logger
from jinja2 import DictLoader

bind = f"127.0.0.1:{os.environ.get('PORT', '5000')}"
workers = int(os.environ.get("WEB_CONCURRENCY") or os.cpu_count() or 1)
# Per worker. Redirects and health checks have three more (deploy/queues.py). At most half of these four do what takes
# long (linkmgr/request/pool.py). At 16 connections, 1 thread had 0.63 to 0.90 of the throughput of 4, 2 threads 0.73 to
# 1.20, and 8 threads 0.99 to 1.22, with twice the connections.
threads = 4
reuse_port = True  # the kernel distributes connections; otherwise one worker may get most kept-alive connections
timeout = 30
graceful_timeout = 30
limit_request_line = 8190  # bytes, gunicorn's maximum: campaigns and mailers append long queries
sendfile = False  # it blocks until the client has read the file
keepalive = 75  # seconds; longer than in nginx, so that nginx never uses a connection that gunicorn is closing
accesslog = "-"
control_socket_disable = True  # all masters of the same user would share it
# gunicorn trusts headers from the same machine. Behind a local proxy every request comes from there, so no header may
# change the path or the scheme. LINKMGR_TRUSTED_PROXIES controls X-Forwarded-For and X-Forwarded-Proto.
forwarded_allow_ips = ""
forwarder_headers = ""
secure_scheme_headers: dict[str, str] = {}

# The token of a sign-in link in any encoding of its path, and any other text as long as a key or a token.
_SECRETS = re.compile(
    r"(?P<login>(?:l|%6c)(?:o|%6f)(?:g|%67)(?:i|%69)(?:n|%6e))(?:/|%(?:25)*2f)[^\s\"']{16,}|[A-Za-z0-9_-]{40,}",
    re.IGNORECASE,
)
_MICROSECOND = timedelta(microseconds=1)


def _without_secrets(text: str) -> str:
    return _SECRETS.sub(lambda match: "login/-" if match["login"] else "-", text)


class _RedactingFormatter(logging.Formatter):
    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self.inner = inner

    def format(self, record: logging.LogRecord) -> str:
        return _without_secrets(self.inner.format(record))


class _Logger(Logger):  # type: ignore[misc]
    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(_RedactingFormatter(handler.formatter or logging.Formatter()))

    def info(self, msg: str, *args: Any, **kwargs: Any) -> None:
        if msg.startswith("Listening at"):  # with reuse_port the master has no socket, and its address is empty
            args = (", ".join(self.cfg.bind), *args[1:])
        super().info(msg, *args, **kwargs)

    def access(self, resp: Any, req: Any, environ: dict[str, Any], request_time: timedelta) -> None:
        if not (self.access_log_enabled and hasattr(resp, "status_code")):
            return  # the application sent no response; the worker sends and logs one
        path = environ["PATH_INFO"]
        line = {
            "time": datetime.now(UTC),
            "method": environ["REQUEST_METHOD"],
            "path": path and _without_secrets(quote(path, "/:@!$&()*+,;=", encoding="latin-1")),
            "status": resp.status_code,
            "microseconds": request_time // _MICROSECOND,
            "user": environ.get("linkmgr.user_id"),
            "request": environ.get("linkmgr.request_id"),
        }
        data = orjson.dumps(line, option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE)
        for handler in self.access_log.handlers:
            try:
                os.write(handler.stream.fileno(), data)  # the handler's lock would make requests wait for each other
            except (AttributeError, OSError, ValueError):  # syslog, or a file that is being opened again
                handler.handle(logging.makeLogRecord({"msg": data.decode().rstrip()}))


logger_class = _Logger
# gunicorn's master would keep the old ones on reload.
for module in ("deploy.worker", "deploy.framing", "deploy.queues"):
    sys.modules.pop(module, None)
worker_class = "deploy.worker.Worker"


def _keep_version(app: Any) -> None:
    """Read the files that requests would read later. `git pull` replaces them before the workers are replaced."""
    for module in ("docs_view", "document"):
        import_module(f"linkmgr.openapi.{module}")
    templates = app.jinja_env
    # Only the sources, because compiling all of them takes half a second.
    sources = {name: templates.loader.get_source(templates, name)[0] for name in templates.list_templates()}
    templates.loader = DictLoader(sources)


def post_worker_init(worker: Any) -> None:
    # Imported here, because modules that the master imports are not reloaded.
    from linkmgr.db import jobs  # noqa: PLC0415
    from linkmgr.events import worker as events  # noqa: PLC0415
    from linkmgr.request import pool  # noqa: PLC0415
    from linkmgr.request.request import Service  # noqa: PLC0415
    from linkmgr.visits import queue  # noqa: PLC0415

    if isinstance(worker.wsgi, Service):
        if not worker.cfg.reload:
            _keep_version(worker.wsgi)
        pool.resize(worker.cfg.threads)
        queue.start(worker.wsgi)
        jobs.Worker(worker.wsgi).start()
        for _ in range(jobs.FETCHERS):
            jobs.Fetcher(worker.wsgi).start()
        events.Worker(worker.wsgi).start()
