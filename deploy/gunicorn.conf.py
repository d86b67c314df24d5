"""gunicorn, as `make run` starts it.  GUNICORN_CMD_ARGS and WEB_CONCURRENCY override what stands here."""

import gc
import json
import logging
import os
import random
import re
import socket
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import gunicorn.util
import orjson
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import ThreadWorker

_WORKERS = os.environ.get("WEB_CONCURRENCY") or str(os.cpu_count() or 1)
if not re.fullmatch("[1-9][0-9]{0,2}", _WORKERS):
    raise SystemExit(f"WEB_CONCURRENCY must be a number of workers from 1; it is {_WORKERS!r}.")

bind = f"127.0.0.1:{os.environ.get('PORT', '5000')}"
workers = int(_WORKERS)
threads = 8  # so that what is slow, such as a fetch or a client, does not hold up the worker: they take turns
reuse_port = True  # the kernel spreads connections; keep-alive ones would crowd one worker
timeout = 30
graceful_timeout = 30
limit_request_line = 8190  # bytes, gunicorn's most: campaigns and mailers append long queries
keepalive = 75  # seconds; longer than nginx keeps its connections, so that it never sends into one that closes
accesslog = "-"
control_socket_disable = True  # all masters of one user would share it

# The token of a login link, however its path is written, and whatever else is as long as a key or a token.
_SECRETS = re.compile(
    r"(?P<login>(?:l|%6c)(?:o|%6f)(?:g|%67)(?:i|%69)(?:n|%6e))(?:/|%(?:25)*2f)[^\s\"']{16,}|[A-Za-z0-9_-]{40,}",
    re.IGNORECASE,
)
_OVERLAP_SECONDS = 0.3  # more than the workers that replace one need to listen
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


class _Worker(ThreadWorker):  # type: ignore[misc]
    """With `reuse_port` each worker has a socket of its own, where connections arrive for as long as it is open.
    gunicorn's stopping worker leaves it open, and drops them in the end."""

    def get_thread_pool(self) -> Any:
        # Not above: what the master imports is not loaded again when it changes.
        from linkmgr import turns  # noqa: PLC0415

        return turns.Pool(self.cfg.threads, turns.at_once(self.cfg.threads))

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        super().wait_for_and_dispatch_events(min(timeout, max(0, self.tpool.patience())))
        self.tpool.relieve()

    def set_accept_enabled(self, enabled: bool) -> None:
        if self.alive or enabled:
            super().set_accept_enabled(enabled)
            return
        end = time.monotonic() + _OVERLAP_SECONDS
        while (left := end - time.monotonic()) > 0:
            self.wait_for_and_dispatch_events(timeout=left)
        super().set_accept_enabled(False)
        for listener in self.sockets:
            accepted = -1
            while accepted != self.nr_conns:
                accepted = self.nr_conns
                self.accept(listener)
            listener.close()


worker_class = _Worker


def post_worker_init(worker: Any) -> None:
    """Start the background jobs.  Freeze the objects that are loaded by now: looking for garbage among them, or every
    few requests, costs more than it finds."""
    from linkmgr import Service, jobs  # noqa: PLC0415

    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    if isinstance(worker.wsgi, Service):
        jobs.Worker(worker.wsgi)


def _write_error(sock: socket.socket, status_int: int, reason: str, mesg: str) -> None:
    """What gunicorn itself answers to malformed HTTP, which is HTML otherwise.  Nobody was counted: nothing
    remains until it may be tried again."""
    from limits import parse  # noqa: PLC0415

    from linkmgr.errors import CATALOGUE, RETRY_SECONDS, as_json  # noqa: PLC0415
    from linkmgr.settings import Settings  # noqa: PLC0415

    codes = {414: "address_too_long", 431: "headers_too_large", 500: "bug"}
    code = codes.get(status_int, "bad_request")
    body = json.dumps(as_json(code, CATALOGUE[code][1])).encode()
    limit = parse(os.environ.get("LINKMGR_RATE_LIMIT") or Settings.rate_limit).amount
    request_id = f"{random.getrandbits(64):016x}"
    _log_request(method=None, path=None, status=status_int, microseconds=0, user=None, request=request_id)
    head = (
        f"HTTP/1.1 {status_int} {reason}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nX-Content-Type-Options: nosniff\r\n"
        f"X-RateLimit-Limit: {limit}\r\nX-RateLimit-Remaining: 0\r\n"
        f"X-RateLimit-Reset: {int(time.time()) + RETRY_SECONDS}\r\nX-Request-Id: {request_id}\r\n\r\n"
    )
    gunicorn.util.write_nonblock(sock, head.encode("latin-1", "replace") + body)


gunicorn.util.write_error = _write_error
