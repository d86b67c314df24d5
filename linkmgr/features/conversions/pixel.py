"""/c/<token>.gif: the pixel on a page of the target of a link, which counts a conversion."""

from base64 import b64decode
from contextlib import suppress

import psycopg2
from flask import Blueprint, Response, request

from linkmgr.core.errors import AppError
from linkmgr.core.web import limiter, security_headers
from linkmgr.core.web import request as web_request
from linkmgr.features.conversions import results as conversions
from linkmgr.features.conversions.repository import MAX_NAME, MAX_VALUE
from linkmgr.visits import counting

bp = Blueprint("conversions_page", __name__)
bp.after_request(security_headers.prevent_caching)

_GIF = b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


@bp.get("/c/<token>.gif")
def pixel(token: str) -> Response:
    """Return the same image in any case, so that it tells nothing about links and visitors. The
    image of a page that is fetched before it is shown counts, because browsers do not fetch it
    again."""
    link_id = conversions.link_of(token)
    if link_id and request.method == "GET" and not counting.wants_privacy(request.environ):
        with suppress(AppError, psycopg2.OperationalError, psycopg2.InterfaceError):
            limiter.enforce(f"pixel:{web_request.network()}", conversions.RATE, "pages_limited")
            conversions.count(
                link_id,
                address=web_request.address(),
                agent=request.headers.get("User-Agent", ""),
                name=_name(request.args.get("name", "")),
                value=_value(request.args.get("value", "")),
            )
    # Pages that isolate themselves embed only images that allow it.
    return Response(_GIF, mimetype="image/gif", headers={"Cross-Origin-Resource-Policy": "cross-origin"})


def _name(text: str) -> str:
    return "".join(filter(str.isprintable, text)).strip()[:MAX_NAME]


def _value(text: str) -> float:
    with suppress(ValueError):
        value = float(text)
        return value if 0 <= value <= MAX_VALUE else 0
    return 0
