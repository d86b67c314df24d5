"""gunicorn, as `make run` starts it.  GUNICORN_CMD_ARGS and WEB_CONCURRENCY override what stands here."""

import logging
import os
import re
import socket
import time
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import gunicorn.util
from gunicorn.glogging import Logger

_WORKERS = os.environ.get("WEB_CONCURRENCY") or str(os.cpu_count() or 1)
if not re.fullmatch("[1-9][0-9]{0,2}", _WORKERS):
    raise SystemExit(f"WEB_CONCURRENCY must be a number of workers from 1; it is {_WORKERS!r}.")

bind = f"127.0.0.1:{os.environ.get('PORT', '5000')}"
workers = int(_WORKERS)
worker_class = "gthread"
threads = 4  # so that a slow fetch or a password hash does not hold up the worker
reuse_port = True  # the kernel spreads connections; keep-alive ones would crowd one worker
timeout = 30
graceful_timeout = 30
limit_request_line = 8190  # bytes, gunicorn's most: campaigns and mailers append long queries
accesslog = "-"
access_log_format = '%(h)s %(t)s "%(m)s %(U)s" %(s)s %(B)s %(D)s'  # U has no query string
control_socket_disable = True  # all masters of one user would share it

# The token of a login link, however its path is written, and whatever else is as long as a key or a token.
_SECRETS = re.compile(
    r"(?P<login>(?:l|%6c)(?:o|%6f)(?:g|%67)(?:i|%69)(?:n|%6e))(?:/|%(?:25)*2f)[^\s\"']{16,}|[A-Za-z0-9_-]{40,}",
    re.IGNORECASE,
)


class _Discreet(logging.Formatter):
    """Writes what another formatter does, tracebacks included, without secrets."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self.inner = inner

    def format(self, record: logging.LogRecord) -> str:
        return _SECRETS.sub(lambda found: "login/-" if found["login"] else "-", self.inner.format(record))


class _Logger(Logger):  # type: ignore[misc]
    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for handler in (*self.error_log.handlers, *self.access_log.handlers):
            handler.setFormatter(_Discreet(handler.formatter or logging.Formatter()))

    def atoms(self, resp: Any, req: Any, environ: Any, request_time: timedelta) -> dict[str, Any]:
        atoms: dict[str, Any] = super().atoms(resp, req, environ, request_time)
        # gunicorn decodes the path: a space in it would end the token, a line break the line.
        atoms["U"] = quote(atoms["U"] or "", encoding="latin-1")
        return atoms


logger_class = _Logger


def _write_error(sock: socket.socket, status_int: int, reason: str, mesg: str) -> None:
    """What gunicorn itself answers to malformed HTTP, which is HTML otherwise.  Nobody was counted: nothing
    remains until it may be tried again."""
    # Not above: what the master imports is not loaded again when it changes.
    from limits import parse  # noqa: PLC0415

    from linkmgr.errors import CATALOGUE, RETRY_SECONDS  # noqa: PLC0415
    from linkmgr.settings import Settings  # noqa: PLC0415

    _, sentence = CATALOGUE["bad_request" if status_int < 500 or reason != "Internal Server Error" else "bug"]  # noqa: PLR2004
    body = b'{"error":1,"message":"%s"}' % sentence.encode()
    limit = parse(os.environ.get("LINKMGR_RATE_LIMIT") or Settings.rate_limit).amount
    head = (
        f"HTTP/1.1 {status_int} {reason}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"X-RateLimit-Limit: {limit}\r\nX-RateLimit-Remaining: 0\r\n"
        f"X-RateLimit-Reset: {int(time.time()) + RETRY_SECONDS}\r\n\r\n"
    )
    gunicorn.util.write_nonblock(sock, head.encode("latin-1", "replace") + body)


gunicorn.util.write_error = _write_error
