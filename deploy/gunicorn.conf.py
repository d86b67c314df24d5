"""gunicorn, as `make run` starts it.  GUNICORN_CMD_ARGS and WEB_CONCURRENCY override what stands here."""

import gc
import json
import logging
import os
import random
import re
import runpy
import socket
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import gunicorn.util
import orjson
from gunicorn.glogging import Logger

_WORKERS = os.environ.get("WEB_CONCURRENCY") or str(os.cpu_count() or 1)
if not re.fullmatch("[1-9][0-9]{0,2}", _WORKERS):
    raise SystemExit(f"WEB_CONCURRENCY must be a number of workers from 1; it is {_WORKERS!r}.")

bind = f"127.0.0.1:{os.environ.get('PORT', '5000')}"
workers = int(_WORKERS)
threads = 4  # of a worker: best in the benchmarks, and enough that two outbound fetches leave some for others
reuse_port = True  # the kernel spreads connections; keep-alive ones would crowd one worker
timeout = 30
graceful_timeout = 30
limit_request_line = 8190  # bytes, gunicorn's most: campaigns and mailers append long queries
sendfile = False  # it would wait for the client; the worker does not
keepalive = 75  # seconds; longer than nginx keeps its connections, so that it never sends into one that closes
accesslog = "-"
control_socket_disable = True  # all masters of one user would share it
# gunicorn trusts peers on the same machine, which any client is behind a proxy there: no header may change the path or
# the scheme. LINKMGR_TRUSTED_PROXIES decides about X-Forwarded-For and X-Forwarded-Proto.
forwarded_allow_ips = ""
forwarder_headers = ""
secure_scheme_headers: dict[str, str] = {}

# The token of a login link, however its path is written, and whatever else is as long as a key or a token.
_SECRETS = re.compile(
    r"(?P<login>(?:l|%6c)(?:o|%6f)(?:g|%67)(?:i|%69)(?:n|%6e))(?:/|%(?:25)*2f)[^\s\"']{16,}|[A-Za-z0-9_-]{40,}",
    re.IGNORECASE,
)
_MICROSECOND = timedelta(microseconds=1)
_SHORTEST_SECRET = len("login/") + 16
_SAFE = "/:@!$&()*+,;="  # besides letters, digits and _.-~: what stands in a path as it is
_PLAIN = re.compile(rf"[A-Za-z0-9_.~{re.escape(_SAFE)}-]*")


def _without_secrets(text: str) -> str:
    return _SECRETS.sub(lambda found: "login/-" if found["login"] else "-", text)


def _path(decoded: str) -> str:
    """As it is logged, whatever was sent: without blanks, quotes, line breaks and secrets."""
    path = decoded if _PLAIN.fullmatch(decoded) else quote(decoded, _SAFE, encoding="latin-1")
    return _without_secrets(path) if len(path) > _SHORTEST_SECRET else path


class _Discreet(logging.Formatter):
    """Writes what another formatter does, tracebacks included, without secrets."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self.inner = inner

    def format(self, record: logging.LogRecord) -> str:
        return _without_secrets(self.inner.format(record))


def _log_request(**members: Any) -> None:
    """One line of JSON.  gunicorn's own way to its format costs several times as much."""
    line = orjson.dumps({"time": datetime.now(UTC), **members}, option=orjson.OPT_UTC_Z)
    logging.getLogger("gunicorn.access").info(line.decode())


class _Logger(Logger):  # type: ignore[misc]
    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(_Discreet(handler.formatter or logging.Formatter()))

    def access(self, resp: Any, req: Any, environ: dict[str, Any], request_time: timedelta) -> None:
        if not (self.access_log_enabled and hasattr(resp, "status_code")):
            return  # nobody began to answer: gunicorn will, by _write_error
        _log_request(
            method=environ["REQUEST_METHOD"],
            path=_path(environ["PATH_INFO"]),
            status=resp.status_code,
            microseconds=request_time // _MICROSECOND,
            user=environ.get("linkmgr.user_id"),
            request=environ.get("linkmgr.request_id"),
        )


logger_class = _Logger


# Not imported: the master would keep the old code when it is reloaded.
worker_class = runpy.run_path(str(Path(__file__).with_name("worker.py")))["Worker"]


def post_worker_init(worker: Any) -> None:
    """Start the background threads.  Exempt what is loaded from garbage collection, which costs more than it finds."""
    from linkmgr import Service  # noqa: PLC0415 - what the master imports is not reloaded
    from linkmgr.db import jobs  # noqa: PLC0415 - what the master imports is not reloaded
    from linkmgr.visits import queue  # noqa: PLC0415 - what the master imports is not reloaded

    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    if isinstance(worker.wsgi, Service):
        queue.start(worker.wsgi)
        jobs.Worker(worker.wsgi)


def _write_error(sock: socket.socket, status_int: int, reason: str, mesg: str) -> None:
    """Answer malformed and unfinished requests as the API does, instead of in HTML.  They are not counted, so that
    the headers say that nothing remains until it may be tried again."""
    from limits import parse  # noqa: PLC0415

    from linkmgr.settings import Settings  # noqa: PLC0415
    from linkmgr.web.errors import CATALOGUE, HTTP_CODES, RETRY_SECONDS, as_json  # noqa: PLC0415

    code = HTTP_CODES.get(status_int, "bad_request")
    request_id = f"{random.getrandbits(64):016x}"
    body = json.dumps(as_json(code, CATALOGUE[code][1].format(id=request_id))).encode()
    limit = parse(os.environ.get("LINKMGR_RATE_LIMIT") or Settings.rate_limit).amount
    _log_request(method=None, path=None, status=status_int, microseconds=0, user=None, request=request_id)
    head = (
        f"HTTP/1.1 {status_int} {reason}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nX-Content-Type-Options: nosniff\r\n"
        f"X-RateLimit-Limit: {limit}\r\nX-RateLimit-Remaining: 0\r\n"
        f"X-RateLimit-Reset: {int(time.time()) + RETRY_SECONDS}\r\nX-Request-Id: {request_id}\r\n\r\n"
    )
    gunicorn.util.write_nonblock(sock, head.encode("latin-1", "replace") + body)


gunicorn.util.write_error = _write_error
