"""/api/openapi.json, which needs no key"""

import hashlib

import orjson
from flask import Blueprint, current_app, request
from werkzeug.wrappers import Response

from linkmgr.settings import settings

bp = Blueprint("openapi", __name__)


def built() -> bytes:
    """Return the document. It is built on the first request, so that it does not delay the start."""
    if "linkmgr_openapi" not in current_app.extensions:
        from linkmgr.openapi.document import build  # noqa: PLC0415

        current_app.extensions["linkmgr_openapi"] = orjson.dumps(build(current_app, settings().base_url))
    built: bytes = current_app.extensions["linkmgr_openapi"]
    return built


@bp.get("/openapi.json")
def document() -> Response:
    answer = Response(built(), mimetype="application/json")
    answer.set_etag(hashlib.sha256(built()).hexdigest()[:32])
    answer.cache_control.no_cache = True
    return answer.make_conditional(request)
