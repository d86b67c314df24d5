"""The request: its id, its client and caller, and a body of limited size. The application class
makes it."""

import ipaddress
import random
import re
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import IO, Any, cast

import flask
from flask.sessions import NullSession, SecureCookieSession, SecureCookieSessionInterface, SessionMixin
from werkzeug.exceptions import BadRequest
from werkzeug.http import parse_dict_header
from werkzeug.local import LocalProxy
from werkzeug.routing import BaseConverter, MapAdapter
from werkzeug.utils import cached_property

from linkmgr.core.database.statements import MAX_BIGINT
from linkmgr.core.errors import AppError, as_json
from linkmgr.core.settings import settings, this_app
from linkmgr.core.web.caller import Caller, Rows, Window
from linkmgr.core.web.host import Hosts

MAX_BODY = 64 * 1024  # bytes
MAX_WARNINGS = 20  # in a response
MAX_HINTS = 50  # of a request: a body can have thousands of wrong names
# Keys of the WSGI environment, set by the middleware
REQUEST_ID = "linkmgr.request_id"
LOGGED = "linkmgr.log"  # members of the line in the access log (deploy/gunicorn.conf.py)
UNKNOWN = {"user": None, "key": None}  # these, before the caller is identified
_MAX_ADDRESS = 100  # characters
# Some proxies append the client's port.
_WITH_PORT = re.compile(r"\[(?P<bracketed>[^\]]*)\](?::[0-9]*)?|(?P<plain>[^:]*):[0-9]*")


def new_id() -> str:
    return f"{random.getrandbits(64):016x}"


class Body:
    """A body that is read from the client. werkzeug's stream ends without an error at its limit and
    where the client stopped sending."""

    def __init__(
        self, request: flask.Request, limit: int, code: str, source: IO[bytes] | None = None
    ) -> None:
        self._source = source or request.environ["wsgi.input"]
        self._limit, self._code, self._size, self._length = limit, code, 0, request.content_length
        if self._length is None and not request.environ.get("wsgi.input_terminated"):
            self._length = 0  # the end of the stream is unknown
        if (self._length or 0) > limit:
            raise AppError(code)
        if request.headers.get("Content-Encoding", "identity").lower() not in ("", "identity"):
            raise AppError("encoding_unsupported")

    def read(self, size: int = -1, /) -> bytes:
        # One byte more than the limit, to detect a longer body.
        left = (self._limit + 1 if self._length is None else self._length) - self._size
        size = left if size < 0 else min(size, left)
        try:
            data: bytes = self._source.read(size)
        except TimeoutError:  # the deadline of the connection (deploy/worker.py)
            raise
        except Exception:  # gunicorn's readers raise unrelated classes, for example for a malformed chunk
            raise BadRequest from None
        self._size += len(data)
        if self._size > self._limit:
            raise AppError(self._code)
        if len(data) < size and self._length is not None:
            raise BadRequest
        return data


class Request(flask.Request):
    caller: Caller  # of an API request, set by web.auth
    window: Window  # of an API request, in which it is counted
    seconds_left: int | None = None  # of the window, which the headers of a refusal repeat
    rows: Rows | None = None  # set by a bulk request
    foreign_host: str | None = (
        None  # the requested host, which need not be a branded domain; None if it is our own
    )
    hints = 0  # names that were compared with similar ones
    warnings: tuple[str, ...] = ()  # sentences for the response of a write
    warning_prefix = ""  # the element of a bulk request that is read, such as "urls[0]: "
    fixed: tuple[tuple[str, Any], ...] = ()  # members of the body of a write that it cannot change

    @cached_property
    def id(self) -> str:
        return str(self.environ.setdefault(REQUEST_ID, new_id()))  # commands run without the middleware

    @cached_property
    def is_api(self) -> bool:
        return self.path.startswith("/api/") or self.path == "/api"

    @cached_property
    def blueprint(self) -> str | None:
        """None for the API: its blueprints have no hooks, error handlers or limits that Flask and
        Flask-Limiter should look for."""
        return None if self.is_api else super().blueprint

    @cached_property
    def operation(self) -> Any:
        """The operation of the API that the request asks for (web/operation.py), or None."""
        return getattr(this_app().view_functions.get(self.endpoint or ""), "operation", None)

    @cached_property
    def is_strict(self) -> bool:
        """True if the client wants an error for what would otherwise be ignored (RFC 7240)."""
        return parse_dict_header(self.headers.get("Prefer", "").lower()).get("handling") == "strict"

    @cached_property
    def is_free(self) -> bool:
        return bool(self.operation and self.operation.is_free and not self.query_string)

    @property
    def user_id(self) -> int:
        """The user of the API, who is known when the request has been authorized."""
        caller_id = self.caller.id
        assert caller_id is not None
        return caller_id

    @cached_property
    def stream(self) -> IO[bytes]:
        stated = self.operation
        limit, code = (stated and stated.limit) or (MAX_BODY, "too_large")
        return cast("IO[bytes]", Body(self, limit, code))

    @cached_property
    def at_end(self) -> ExitStack:
        return ExitStack()

    def close(self) -> None:
        """Flask calls this at the end of each request, also after an error."""
        if "at_end" in self.__dict__:
            self.at_end.close()
        super().close()


class IdConverter(BaseConverter):
    """An id in a path. An id that no row can have becomes 0, so that it is not found."""

    regex = r"[0-9]+"

    def to_python(self, value: str) -> int:
        canonical = len(value) <= len(str(MAX_BIGINT)) and value[0] != "0"
        return int(value) if canonical and int(value) <= MAX_BIGINT else 0


class _Sessions(SecureCookieSessionInterface):
    """Skip the API, requests without a cookie, and responses that do not use the session: Flask's
    own class derives the signing keys for each request and the cookie's attributes for each
    response."""

    none = NullSession()

    def open_session(self, app: flask.Flask, request: flask.Request) -> SecureCookieSession | None:
        if cast("Request", request).is_api:
            return self.none
        return (
            super().open_session(app, request) if "HTTP_COOKIE" in request.environ else SecureCookieSession()
        )

    def save_session(self, app: flask.Flask, session: SessionMixin, response: flask.Response) -> None:
        if session.accessed:
            super().save_session(app, session, response)


class Service(flask.Flask):
    request_class = Request
    session_interface = _Sessions()
    hosts: Hosts

    def create_url_adapter(self, request: flask.Request | None) -> MapAdapter | None:
        """Match the path only, on the routes of the requested host. werkzeug's `bind_to_environ`
        would reject a malformed one before it is checked. No route is a websocket's, whatever a
        proxy says."""
        if request is None:
            return None
        request = cast("Request", request)
        request.foreign_host = self.hosts.foreign(request.environ.get("HTTP_HOST", ""))
        is_own = request.foreign_host is None
        return self.hosts.paths(request.path, is_own=is_own, method=request.method, root=request.root_path)


# Return the request object itself. The proxy `flask.request` looks it up for each attribute.
current: Callable[[], Request] = cast("LocalProxy[Request]", flask.request)._get_current_object


def address() -> str:
    return address_of(current().environ)


def address_of(environ: dict[str, Any]) -> str:
    """Return the client's IP address without port, brackets and zone, and an IPv4-mapped IPv6
    address as IPv4. Proxies can send any text. Text that is not an IP address is returned
    unchanged."""
    text: str = environ.get("REMOTE_ADDR", "")[:_MAX_ADDRESS]
    if ":" not in text and "[" not in text:
        return text
    match = _WITH_PORT.fullmatch(text)
    host = (match["bracketed"] or match["plain"] or "") if match else text
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return str(getattr(ip, "ipv4_mapped", None) or ip)


def network() -> str:
    """Return what limits count a client by: its IPv4 address, or the /64 of its IPv6 address."""
    text: str = current().environ.get("REMOTE_ADDR", "")[:_MAX_ADDRESS]
    return network_of(address_of(current().environ)) if ":" in text else text


def network_of(address: str) -> str:
    """Return an IPv4 address as it is, or the /64 of an IPv6 address: a client can send from any
    address of its /64, and most change theirs each day."""
    if ":" in address:
        with suppress(ValueError):
            return str(ipaddress.IPv6Network(f"{address}/64", strict=False))
    return address


def user_id() -> int | None:
    if not flask.has_request_context():
        return None
    caller: Caller | None = getattr(current(), "caller", None)  # of the API; pages set g.user_id
    return caller.id if caller else cast("int | None", flask.g.get("user_id"))


def is_admin() -> bool:
    """Return True if an administrator sent this request, or if it is a command of the operator."""
    if not flask.has_request_context():
        return True
    caller: Caller | None = getattr(current(), "caller", None)
    return (
        bool(caller.admin or (caller.key and caller.key.is_admin)) if caller else bool(flask.g.get("admin"))
    )


def error_body(error: AppError) -> dict[str, Any]:
    return as_json(error.code, error.message, current().id, settings().base_url)


def logged_address(environ: dict[str, Any], *, is_full: bool) -> str | None:
    """Return the client's IP address or its network, /24 or /48, or None if a proxy has sent other
    text."""
    with suppress(ValueError):
        ip = ipaddress.ip_address(address_of(environ))
        return str(ip if is_full else ipaddress.ip_network((ip, 24 if ip.version == 4 else 48), strict=False))  # noqa: PLR2004
    return None


def set_log_user(user_id: int | None, key_id: int | None = None) -> None:
    current().environ.setdefault(LOGGED, {}).update(user=user_id, key=key_id)


def can_warn() -> bool:
    """Return True if the response has room for another warning. Commands use the same validation
    without a response."""
    return flask.has_request_context() and len(current().warnings) < MAX_WARNINGS


def can_hint() -> bool:
    """Count a comparison with similar names, each of which takes milliseconds. Rows of imports get
    none."""
    if not flask.has_request_context() or current().hints == MAX_HINTS:
        return False
    current().hints += 1
    return True


def default_domain() -> str | None:
    """Return the default domain of the account that calls the API, or None."""
    caller: Caller | None = getattr(current(), "caller", None) if flask.has_request_context() else None
    return caller and caller.domain


def warn(sentence: str, prefix: str | None = None) -> None:
    """Add a sentence to `warnings` in the response, or to the messages of a form: a value was
    accepted, but cannot have the effect that was meant. The `prefix` is the element that is read,
    or "" for the request."""
    if can_warn():
        prefixed = (current().warning_prefix if prefix is None else prefix) + sentence
        if prefixed not in current().warnings:
            current().warnings += (prefixed,)


def note_ignored_member(name: str, value: Any) -> None:
    """Keep a member that a write cannot change, for a warning if the record has another value."""
    if flask.has_request_context():
        current().fixed += ((name, value),)
