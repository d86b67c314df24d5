"""Configuration of gunicorn. GUNICORN_CMD_ARGS and WEB_CONCURRENCY take precedence."""

import gc
import logging
import os
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import orjson
from gunicorn.glogging import Logger

from deploy.worker import Worker

bind = f"127.0.0.1:{os.environ.get('PORT', '5000')}"
workers = int(os.environ.get("WEB_CONCURRENCY") or os.cpu_count() or 1)
# Per worker. Redirects and health checks have three more (deploy/queues.py). At most half of these
# four do what takes long (linkmgr/core/web/pool.py). At 16 connections, 1 thread had 0.63 to 0.90
# of the throughput of 4, 2 threads 0.73 to 1.20, and 8 threads 0.99 to 1.22, with twice the
# connections.
threads = 4
# Each worker has a socket of its own, among which the kernel distributes connections. Otherwise one
# worker may get most kept-alive connections. The launcher passes them on, so that a reload closes
# none.
reuse_port = not any("=fd://" in argument for argument in sys.argv)
timeout = 30
graceful_timeout = 30
limit_request_line = 8190  # bytes, gunicorn's maximum: campaigns and mailers append long queries
sendfile = False  # it blocks until the client has read the file
keepalive = (
    75  # seconds; longer than in nginx, so that nginx never uses a connection that gunicorn is closing
)
accesslog = "-"
control_socket_disable = True  # all masters of the same user would share it
# By default gunicorn trusts headers from the same machine. Behind a local proxy every request comes
# from there, so no header may change the path or the scheme. LINKMGR_TRUSTED_PROXIES controls
# X-Forwarded-For and X-Forwarded-Proto.
forwarded_allow_ips = "*"  # who may send none of these headers: gunicorn need not parse each client's address
forwarder_headers = ""
secure_scheme_headers: dict[str, str] = {}

# The token of a sign-in link in any encoding of its path, and any other text as long as a key or a
# token.
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
            **environ.get("linkmgr.log", {}),
        }
        data = orjson.dumps(line, option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE)
        for handler in self.access_log.handlers:
            try:
                # The handler's lock would make requests wait for each other
                os.write(handler.stream.fileno(), data)
            except (AttributeError, OSError, ValueError):  # syslog, or a file that is being opened again
                handler.handle(logging.makeLogRecord({"msg": data.decode().rstrip()}))


logger_class = _Logger
worker_class = Worker  # and not its name, so that --check-config loads it
# A worker listens as soon as it is forked, so what it serves is loaded before. A worker that
# replaces a dead one needs none of the files, which may be of a newer version. `make dev` loads
# them again.
preload_app = "--reload" not in sys.argv
if preload_app:
    gc.disable()  # a fifth of the time of a start, and nearly all that is loaded is kept


def when_ready(server: Any) -> None:
    if preload_app:
        from linkmgr import serving  # noqa: PLC0415 - the master of `make dev` would keep the old code

        serving.load(server.app.wsgi())
        gc.freeze()  # a worker whose collections write to what it shares with the master would copy it


def pre_fork(server: Any, worker: Any) -> None:
    gc.enable()  # here, because SIGHUP loads this file again
    taken = [other.sockets[0] for other in server.WORKERS.values() if other.sockets]
    worker.sockets = [listener for listener in server.LISTENERS if listener not in taken][
        :1
    ] or server.LISTENERS


def post_fork(server: Any, worker: Any) -> None:
    for listener in server.LISTENERS:
        if listener not in worker.sockets:
            listener.close()


def post_worker_init(worker: Any) -> None:
    from linkmgr import serving  # noqa: PLC0415

    serving.start(worker.wsgi, worker.cfg.threads)
    if "READY_FD" in os.environ and worker.age >= worker.cfg.workers:  # the last one
        with suppress(OSError):  # the launcher reads the first time only
            os.write(int(os.environ["READY_FD"]), b"1")
