"""/api/openapi.json, and /api/docs: the document as a page, with forms to try the operations.

The modules that build them are imported on the first request.
"""

import hashlib
import json
from functools import cache

import orjson
from flask import Blueprint, Flask, Response, current_app, make_response, render_template, request
from markupsafe import Markup
from werkzeug.routing import Rule
from werkzeug.wrappers import Response as AnyResponse

from linkmgr.settings import settings
from linkmgr.web import security_headers

docs_bp, document_bp = Blueprint("docs", __name__), Blueprint("openapi", __name__)


def init_app(app: Flask) -> None:
    for blueprint in (docs_bp, document_bp):
        app.register_blueprint(blueprint, url_prefix="/api")


def cached_document() -> bytes:
    """Return the document as JSON. It is built on the first request, so that it does not delay the start."""
    if "linkmgr_openapi" not in current_app.extensions:
        from linkmgr.openapi.document import build  # noqa: PLC0415

        current_app.extensions["linkmgr_openapi"] = orjson.dumps(build(current_app, settings().base_url))
    document: bytes = current_app.extensions["linkmgr_openapi"]
    return document


@document_bp.get("/openapi.json")
def document() -> AnyResponse:
    response = Response(cached_document(), mimetype="application/json")
    response.set_etag(hashlib.sha256(cached_document()).hexdigest()[:32])
    response.cache_control.no_cache = True
    return response.make_conditional(request)


def _contents() -> Markup:
    """Return the rendered document, rendering it on the first request."""
    if "linkmgr_docs" not in current_app.extensions:
        from linkmgr.errors import CATALOGUE  # noqa: PLC0415
        from linkmgr.openapi.docs_view import Reader, error, prose  # noqa: PLC0415

        document = json.loads(cached_document())
        rendered = render_template(
            "docs_operations.html",
            base_url=document["servers"][0]["url"],
            introduction=prose(document["info"]["description"]),
            sections=list(Reader(document).sections()),
            errors_of_all=[error(code) for code in CATALOGUE],
        )
        current_app.extensions["linkmgr_docs"] = Markup(rendered)  # noqa: S704 - the template escapes
    contents: Markup = current_app.extensions["linkmgr_docs"]
    return contents


@docs_bp.get("/docs")
def page() -> Response:
    response = make_response(render_template("docs.html", contents=_contents()))
    policy = f"{security_headers.POLICY}; connect-src 'self'; script-src 'nonce-{security_headers.nonce()}'"
    response.headers["Content-Security-Policy"] = policy
    response.headers["Cache-Control"] = "no-store"
    return response


@cache
def _query_names() -> dict[tuple[str, str], frozenset[str]]:
    from linkmgr.openapi.operations import SECTIONS  # noqa: PLC0415

    return {
        (operation.method, operation.path): frozenset(operation.query)
        for section in SECTIONS
        for operation in section.operations
    }


def query_names(method: str, rule: Rule) -> frozenset[str]:
    """Return the names of the parameters of an operation."""
    from linkmgr.openapi.document import path_of  # noqa: PLC0415

    return _query_names().get(("GET" if method == "HEAD" else method, path_of(rule)), frozenset())
