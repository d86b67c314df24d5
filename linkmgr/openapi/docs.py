"""/api/docs: the OpenAPI document as a page, with forms to try the operations."""

import json

from flask import Blueprint, Response, current_app, make_response, render_template
from markupsafe import Markup

from linkmgr.openapi import openapi
from linkmgr.web import security_headers

bp = Blueprint("docs", __name__)


def _contents() -> Markup:
    """Return the rendered document, rendering it on the first request."""
    if "linkmgr_docs" not in current_app.extensions:
        from linkmgr.errors import CATALOGUE  # noqa: PLC0415
        from linkmgr.openapi.docs_view import Reader, error, prose  # noqa: PLC0415

        document = json.loads(openapi.cached_document())
        rendered = render_template(
            "docs_operations.html",
            introduction=prose(document["info"]["description"]),
            sections=list(Reader(document).sections()),
            errors_of_all=[error(code) for code in CATALOGUE],
        )
        current_app.extensions["linkmgr_docs"] = Markup(rendered)  # noqa: S704 - the template escapes
    contents: Markup = current_app.extensions["linkmgr_docs"]
    return contents


@bp.get("/docs")
def page() -> Response:
    response = make_response(render_template("docs.html", contents=_contents()))
    policy = f"{security_headers.POLICY}; connect-src 'self'; script-src 'nonce-{security_headers.nonce()}'"
    response.headers["Content-Security-Policy"] = policy
    response.headers["Cache-Control"] = "no-store"
    return response
