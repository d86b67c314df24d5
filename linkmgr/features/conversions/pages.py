"""Files for pages of shops: /c/<token>.gif counts a conversion, /c/<token>.js reports them to
/c/<token>."""

from base64 import b64decode
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg2
from flask import Blueprint, Response, request
from itsdangerous import BadSignature

from linkmgr.core import keys
from linkmgr.core.errors import AppError
from linkmgr.core.fields import strict_json
from linkmgr.core.settings import settings
from linkmgr.core.web import limiter, security_headers
from linkmgr.core.web import request as web_request
from linkmgr.core.web.operation import operation
from linkmgr.features.conversions import clicks, reports
from linkmgr.features.conversions import repository as conversions
from linkmgr.visits import counting

bp = Blueprint("conversions_page", __name__)
bp.after_request(security_headers.prevent_caching)

RATE = "60 per minute"  # reports of an IP address
MAX_BYTES = 2000  # of a report
_SALT = "linkmgr conversions"
_ACCOUNT = "u"  # in front of the id of an account in a token; one of a link has none
_GIF = b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
_SCRIPT = (Path(__file__).parents[2] / "static/conversions.js").read_text()
# Pages that isolate themselves embed only what allows it.
_ANYWHERE = {"Cross-Origin-Resource-Policy": "cross-origin", "Access-Control-Allow-Origin": "*"}


def image_url(link_id: int) -> str:
    return f"{_url(str(link_id))}.gif"


def account_urls(user_id: int) -> dict[str, str]:
    """Return the URLs of the image and the script of an account."""
    url = _url(f"{_ACCOUNT}{user_id}")
    return {"image": f"{url}.gif", "script": f"{url}.js"}


def _url(name: str) -> str:
    return f"{settings().base_url}/c/{keys.signer(_SALT).sign(name).decode()}"


def _read(token: str) -> tuple[int | None, int | None]:
    """Return the link or the user of a token, of which one is None."""
    try:
        name = keys.signer(_SALT).unsign(token).decode()
    except BadSignature:
        return None, None
    return (None, int(name[1:])) if name.startswith(_ACCOUNT) else (int(name), None)


@bp.get("/c/<token>.gif")
def image(token: str) -> Response:
    """Return the same image in any case, so that it tells nothing about links and visitors. The
    image of a page that is fetched before it is shown counts, because browsers do not fetch it
    again."""
    if request.method == "GET":
        _count(token, request.args.to_dict())
    return Response(_GIF, mimetype="image/gif", headers=_ANYWHERE)


@bp.post("/c/<token>")
@operation("public", "")  # from pages of any origin
def report(token: str) -> Response:
    """Take what the script sends, as text, for which browsers ask no permission."""
    with suppress(strict_json.NotJson, AppError):
        if (request.content_length or MAX_BYTES + 1) <= MAX_BYTES:
            _count(token, strict_json.parse(request.get_data()))
    return Response(status=204, headers=_ANYWHERE)


@bp.get("/c/<token>.js")
def script(token: str) -> Response:
    user_id = _read(token)[1]
    if user_id is None:
        raise AppError("no_such_page")
    content = _SCRIPT.replace("lm_click", settings().click_parameter)
    headers = _ANYWHERE | {"Cache-Control": "public, max-age=86400"}
    return Response(content, mimetype="text/javascript", headers=headers)


def _count(token: str, sent: dict[str, Any]) -> None:
    link_id, user_id = _read(token)
    click = sent.get("click")
    has_click = isinstance(click, str) and click != ""
    if (link_id or (user_id and has_click)) and not counting.wants_privacy(request.environ):
        with suppress(AppError, psycopg2.OperationalError, psycopg2.InterfaceError):
            limiter.enforce(f"pixel:{web_request.network()}", RATE, "pages_limited")
            if has_click:
                visit = clicks.read(str(click))
            else:
                agent, now = request.headers.get("User-Agent", ""), datetime.now(UTC)
                visit = reports.of_visitor(link_id or 0, web_request.address(), agent, now)
            if link_id in (None, visit["link"]):
                conversions.add(user_id, [reports.of_page(sent, visit)], by_page=True)
