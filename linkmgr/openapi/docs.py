"""/api/docs: a page to read the document, and to try the operations with one's own key"""

import json

from flask import Blueprint, Response, current_app, make_response, render_template
from markupsafe import Markup

from linkmgr.openapi import openapi
from linkmgr.web import security_headers

bp = Blueprint("docs", __name__)


def _operations() -> Markup:
    """Drawn when they are first asked for."""
    if "linkmgr_docs" not in current_app.extensions:
        from linkmgr.openapi.docs_view import Reader  # noqa: PLC0415

        document = json.loads(openapi.built())
        drawn = render_template("docs_operations.html", sections=Reader(document).sections())
        current_app.extensions["linkmgr_docs"] = Markup(drawn)  # noqa: S704 - a template's
    operations: Markup = current_app.extensions["linkmgr_docs"]
    return operations


@bp.get("/docs")
def page() -> Response:
    answer = make_response(render_template("docs.html", operations=_operations()))
    policy = f"{security_headers.POLICY}; connect-src 'self'; script-src 'nonce-{security_headers.nonce()}'"
    answer.headers["Content-Security-Policy"] = policy
    answer.headers["Cache-Control"] = "no-store"
    return answer
