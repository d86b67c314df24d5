"""/api/docs: a page to read the document, and to try the operations with one's own key"""

import json

from flask import Blueprint, Response, current_app, make_response, render_template
from markupsafe import Markup

from linkmgr.openapi import openapi
from linkmgr.web import security_headers

bp = Blueprint("docs", __name__)


def _contents() -> Markup:
    """Render the document when the page is first requested."""
    if "linkmgr_docs" not in current_app.extensions:
        from linkmgr.openapi.docs_view import Reader, error, prose  # noqa: PLC0415
        from linkmgr.web.errors import CATALOGUE  # noqa: PLC0415

        document = json.loads(openapi.built())
        rendered = render_template(
            "docs_operations.html",
            introduction=prose(document["info"]["description"]),
            sections=list(Reader(document).sections()),
            errors_of_all=[error(code) for code in CATALOGUE],
        )
        current_app.extensions["linkmgr_docs"] = Markup(rendered)  # noqa: S704 - of a template, which escapes
    contents: Markup = current_app.extensions["linkmgr_docs"]
    return contents


@bp.get("/docs")
def page() -> Response:
    response = make_response(render_template("docs.html", contents=_contents()))
    policy = f"{security_headers.POLICY}; connect-src 'self'; script-src 'nonce-{security_headers.nonce()}'"
    response.headers["Content-Security-Policy"] = policy
    response.headers["Cache-Control"] = "no-store"
    return response
