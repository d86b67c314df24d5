"""/api/openapi.json"""

import hashlib

import orjson
from flask import Blueprint, current_app, request
from werkzeug.wrappers import Response

from linkmgr.settings import settings

bp = Blueprint("openapi", __name__)


def cached_document() -> bytes:
    """Return the document as JSON. It is built on the first request, so that it does not delay the start."""
    if "linkmgr_openapi" not in current_app.extensions:
        from linkmgr.openapi.document import build  # noqa: PLC0415

        current_app.extensions["linkmgr_openapi"] = orjson.dumps(build(current_app, settings().base_url))
    document: bytes = current_app.extensions["linkmgr_openapi"]
    return document


@bp.get("/openapi.json")
def document() -> Response:
    response = Response(cached_document(), mimetype="application/json")
    response.set_etag(hashlib.sha256(cached_document()).hexdigest()[:32])
    response.cache_control.no_cache = True
    return response.make_conditional(request)
