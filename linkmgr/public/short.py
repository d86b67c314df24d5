"""/<alias>: short links and bio pages. /<alias>/qr: QR code of a link. /<alias>/pixels: its pixels.
/<alias>/owner: its page in the console. /<alias>/<rest>: links with `extrapath`.

GET requests for links that only redirect to their URL, as most do, are answered before Flask: its
routing, hooks and response take longer than the rest of such a request. `visit` answers the same,
and all other requests.

While the database does not respond, each process redirects to those of the last minute without it.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial, wraps
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import urlencode

import psycopg2
from flask import Blueprint, Flask, Response, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from linkmgr.core import metrics
from linkmgr.core.database import session
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.feature import has_console
from linkmgr.core.fields.aliases import MAX_ALIAS, PATTERN, reserved_words
from linkmgr.core.fields.query import query_text
from linkmgr.core.hooks import hooks
from linkmgr.core.settings import settings
from linkmgr.core.web import attempts, security_headers, sessions
from linkmgr.core.web.host import foreign_routes, host_of, wide_alias
from linkmgr.public import bio, branded, extra_path, interstitial, loops, qr
from linkmgr.public.loops import View
from linkmgr.public.recent_links import RecentLinks
from linkmgr.repository import public
from linkmgr.visits import bots, counting, visitor
from linkmgr.visits.blocked import blocked
from linkmgr.visits.choice import FRAMED, Choice, app_store, choose, completed
from linkmgr.visits.dimensions import UNKNOWN
from linkmgr.visits.targets import with_path

bp = Blueprint("short", __name__)
bp.after_request(security_headers.prevent_caching)

_ROUTE = "/<alias:alias>"
# Key of the WSGI environment: the row of the link, or None, or the error, if it has been read
# before Flask.
_LINK = "linkmgr.link"


_MAX_BYTES = 4 * MAX_ALIAS  # of an alias in UTF-8


class FastRedirects:
    """The WSGI layer for these links. Make it after all routes are registered."""

    def __init__(self, app: Flask) -> None:
        self.app, self.flask = app, app.wsgi_app
        self._path = re.compile(f"/({PATTERN})")
        self._words = reserved_words(foreign_routes())  # of all hosts
        self._own_words = reserved_words(app.url_map)
        self.recent = RecentLinks()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        location = self._visit(environ)
        if location is None:
            return self.flask(environ, start_response)
        environ[metrics.ROUTE] = _ROUTE
        headers = {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Length": "0",
            "Cache-Control": "no-store",
        }
        start_response("302 FOUND", [*headers.items(), ("Location", location)])
        return ()

    def _visit(self, environ: dict[str, Any]) -> str | None:
        path = self._path.fullmatch(environ["PATH_INFO"])
        if environ["REQUEST_METHOD"] != "GET" or (path and path[1] in self._words):
            return None
        if not (path or self._may_be_wide(environ["PATH_INFO"][1:])):
            return None
        with self.app.app_context():
            try:
                host = host_of(environ)
                if host is not None and not branded.can_be_branded(host):
                    return None
                alias = path[1] if path else wide_alias(_decoded(environ), is_own=host is None)
                if alias is None or (host is None and alias in self._own_words):
                    return None
                return self._location(environ, host, alias)
            except Exception as error:  # the route raises it, so that its handler answers
                environ[_LINK] = error
        return None

    def _may_be_wide(self, path: str) -> bool:
        """Return False for pages of the service, which need no look at the routes."""
        return 0 < len(path) <= _MAX_BYTES and path.partition("/")[0] not in self._own_words

    def _location(self, environ: dict[str, Any], host: str | None, alias: str) -> str | None:
        key = host, alias
        recent = self.recent.get(key)
        try:
            link = environ[_LINK] = public.short_link(host, alias, can_wait=recent is None)
            if not (link and _is_fast(link, environ.get("HTTP_USER_AGENT", ""))):
                self.recent.forget(key)
                return None
            recent = self.recent.keep(key, link)
        except psycopg2.Error as error:
            is_lost = session.is_connection_lost(error)
            if not is_lost or recent is None or blocked().has_link(recent.id, recent.url):
                raise
        except AppError:
            self.recent.forget(key)
            raise
        at = counting.count(environ, recent.id, recent.user_id, target=recent.url)
        return hooks().add_click_id(recent.url, recent.id, at) if recent.clickid and at else recent.url


def _decoded(environ: dict[str, Any]) -> str:
    path: str = environ["PATH_INFO"]
    return path.encode("latin-1").decode(errors="replace")


def _is_fast(link: Row, agent: str) -> bool:
    return (
        link["fast_redirect"]
        and not link["state"]
        and not _shows_preview(link, agent[: counting.MAX_AGENT])
        and not loops.is_on_our_hosts(link["url"], branded=link["url_branded"])
    )


def _location(host: str | None, alias: str, rest: str = "") -> str | None:
    link = None if rest else public.short_link(host, alias)
    if link is None and not rest and public.bio(host, alias):
        return None
    path = f"{alias}/{rest}" if rest else alias
    if (link := link or extra_path.find(host, path.encode().decode("latin-1"))) is None:
        raise NotFound
    if link["state"]:
        return (link["state"] != "blocked" and str(link["expiredurl"])) or None
    if link["password_hash"]:
        return None
    return app_store(link, _user_agent()) or _extended(_choose(link).url, link["rest"])


@bp.route(_ROUTE, methods=("GET", "POST"))
@bp.route(f"{_ROUTE}/<path:rest>", methods=("GET", "POST"))
@loops.hop(_location)
def visit(alias: str, rest: str = "") -> ResponseReturnValue:
    host, link = branded.host(), request.environ.get(_LINK)
    if not rest and _LINK not in request.environ:
        link = public.short_link(host, alias)
    if isinstance(link, Exception):
        raise link
    if link is None and not rest and (row := public.bio(host, alias)):
        return bio.show(row)
    if (link := link or extra_path.find_requested(host)) is None:
        raise NotFound
    return _visit(link)


def page_of_link(view: View) -> View:
    """Make the view of a page of a link, whose path may also be that of a link with `extrapath`:
    the page comes first if its link exists."""

    @wraps(view)
    def show(alias: str = "", **others: Any) -> Any:
        host = branded.host()
        if "/" in alias and public.short_link(host, alias) is None:
            link = extra_path.find_requested(host)
            if link is not None:
                return security_headers.prevent_caching(make_response(_visit(link)))
        return view(alias, **others)

    return cast("View", show)


def _visit(link: Row) -> ResponseReturnValue:
    if link["state"]:
        return _stopped(link)
    is_click = request.method == "POST"
    if link["password_hash"] or (is_click and not link["maxclicks"]):
        return _password_page(link)
    is_asked = link["maxclicks"] and link["confirmclick"] and not is_click
    if is_asked or _shows_preview(link, _user_agent()):
        return _preview(link)
    return redirect_visitor(link)


def _stopped(link: Row) -> ResponseReturnValue:
    """Respond to a visitor of a link that does not work yet or any more."""
    if (target := link["expiredurl"]) and link["state"] != "blocked":
        if blocked().has_host(target):
            return _stopped(link | {"state": "blocked"})
        loops.refuse(target)
        return Response(status=_found(), headers={"Location": target})
    viewer = sessions.current()
    owned = link["id"] if has_console() and viewer and viewer["user_id"] == link["user_id"] else None
    status = HTTPStatus.NOT_FOUND if link["state"] == "scheduled" else HTTPStatus.GONE
    # Browsers send the session to our own host only, so that on others the owner asks for it.
    asks = url_for("short.to_owner", alias=link["alias"]) if has_console() and branded.host() else None
    return render_template("link_stopped.html", link=link, owned=owned, asks=asks, status=status), status


def _found() -> HTTPStatus:
    return HTTPStatus.SEE_OTHER if request.method == "POST" else HTTPStatus.FOUND


def _user_agent() -> str:
    return request.headers.get("User-Agent", "")[: counting.MAX_AGENT]


def _shows_preview(link: Row, agent: str) -> bool:
    has_preview = link["metatitle"] or link["metadescription"] or link["metaimage"]
    return bool(has_preview) and bots.shows_previews(agent)


def _preview(link: Row) -> ResponseReturnValue:
    """Say what the link is. If its clicks are limited, the target is for those who click."""
    respond = _with_form if link["maxclicks"] else render_template
    return respond("link_preview.html", link=link, url=link["shorturl"])


def _with_form(template: str, **context: Any) -> Response:
    # Browsers apply form-action to the redirect that follows the form, and its target may be any
    # site.
    policy = security_headers.written(form_action="*")
    return Response(render_template(template, **context), headers={"Content-Security-Policy": policy})


# --- redirects


def redirect_visitor(link: Row) -> ResponseReturnValue:
    if link["maxclicks"] and not counting.is_by_person(request.environ):
        return _preview(link)
    choice, store = _choose(link), app_store(link, _user_agent())
    chosen, extended = store or choice.url, _extended(choice.url, link["rest"])
    if any(url != link["url"] and blocked().has_host(url) for url in (chosen, choice.url)):
        return _stopped(link | {"state": "blocked"})
    loops.refuse(store or extended, branded=link["url_branded"] or chosen != link["url"])
    if link["maxclicks"] and not public.take_click(link["id"], link["maxclicks"]):
        return _stopped(link | {"state": "used"})
    variant = UNKNOWN if store else choice.variant
    rule = UNKNOWN if store or choice.rule is None else str(choice.rule + 1)
    target = completed(link, extended, request.environ["QUERY_STRING"])
    at = counting.count(
        request.environ, link["id"], link["user_id"], target=target, variant=variant, rule=rule
    )
    if link["clickid"] and at and link["type"] not in FRAMED:
        target = hooks().add_click_id(target, link["id"], at)
    if link["type"] != "direct" or link["pixels"]:
        return interstitial.respond(link, store or target)
    if store:
        return render_template("link_app.html", store=store, target=target)
    # Not redirect(), which adds an HTML body.
    return Response(status=_found(), headers={"Location": target})


def _choose(link: Row) -> Choice:
    return choose(link, visitor.from_environ(request.environ, partial(public.clicks, link["id"])))


def _extended(url: str, rest: str) -> str:
    if not rest:
        return url
    if (extended := with_path(url, rest)) is None:
        raise NotFound
    return extended


# --- password


def _password_page(link: Row) -> ResponseReturnValue:
    if not link["password_hash"]:  # removed while the form was open
        return redirect(url_for(".visit", **request.view_args or {}), code=303)
    if request.method != "POST":
        return _with_form("link_password.html", error=None)
    # Limit wrong passwords per IP address only: a total limit would let a stranger lock out every
    # visitor.
    limit = attempts.by_client(f"link {link['id']}")
    if attempts.matches(request.form.get("password", ""), link["password_hash"], limit):
        return redirect_visitor(link)
    error = AppError("link_password_wrong")
    return _with_form("link_password.html", error=error.message), error.status


# --- pixels


@bp.get("/<alias:alias>/pixels")
@page_of_link
def pixels(alias: str) -> ResponseReturnValue:
    link = public.short_link(branded.host(), alias)
    if link is None or link["state"] or not link["pixels"]:
        raise NotFound
    return interstitial.pixel_page(link)


# --- owner


@bp.get("/<alias:alias>/owner")
@page_of_link
def to_owner(alias: str) -> ResponseReturnValue:
    """Redirect to the console, which shows a link to its owner only. Every alias of every host gets
    the same response, so that it tells nothing about the link."""
    if not has_console():
        raise NotFound
    query = urlencode({"url": f"{request.scheme}://{request.host}/{alias}"})
    return redirect(f"{settings().base_url}/console/links/by-address?{query}", code=302)


# --- QR code


@bp.get("/<alias:alias>/qr")
@bp.get("/<alias:alias>/qr/<size>")
@page_of_link
def qr_code(alias: str, size: str | None = None) -> Response:
    link = public.short_link(branded.host(), alias)
    if link is None:
        raise AppError("image_missing")
    return qr.of_url(link["shorturl"], size or query_text("size"))
