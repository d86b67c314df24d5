"""/api/openapi.json, and /api/docs: the document as pages, with forms to try the operations.

The modules that build them are imported on the first request.
"""

import hashlib
import json
from functools import lru_cache
from pathlib import Path

import orjson
from flask import Blueprint, Flask, Response, make_response, render_template, request
from markupsafe import Markup
from werkzeug.wrappers import Response as AnyResponse

from linkmgr.core.error_catalogue import CATALOGUE
from linkmgr.core.errors import AppError
from linkmgr.core.fields.query import Parameter, values_of
from linkmgr.core.settings import settings, this_app
from linkmgr.core.web import security_headers
from linkmgr.core.web.operation import operation

_QUERY = {
    "tags": Parameter(
        "The titles of sections. The response then has only their operations, for programs that "
        "cannot read all.",
        lambda _name, text: set(text.split(",")),
        is_list=True,
        examples=["Links,Statistics"],
    )
}
docs_bp, document_bp = Blueprint("docs", __name__), Blueprint("openapi", __name__)


def init_app(app: Flask) -> None:
    for blueprint in (docs_bp, document_bp):
        app.register_blueprint(blueprint, url_prefix="/api")


@lru_cache(1)
def _document(app: Flask) -> bytes:
    from linkmgr.document.document import build  # noqa: PLC0415

    return orjson.dumps(build(app, settings().base_url))


@document_bp.get("/openapi.json")
@operation("public", "document.get", {"type": "object"}, has_etag=True, query=_QUERY)
def document() -> AnyResponse:
    """Read this document."""
    from linkmgr.document.part import part_of  # noqa: PLC0415

    content = _document(this_app())
    if tags := values_of(_QUERY)["tags"]:
        content = orjson.dumps(part_of(orjson.loads(content), tags))
    response = Response(content, mimetype="application/json")
    response.set_etag(hashlib.sha256(content).hexdigest()[:32])
    response.cache_control.no_cache = True
    return response.make_conditional(request)


@lru_cache(1)
def _parts(app: Flask) -> dict[str, Markup]:
    """Return the contents of the first page as "", and of the page of each section, by the end of
    its path."""
    from linkmgr.document.docs_view import Reader, error, prose  # noqa: PLC0415
    from linkmgr.document.document import INTRODUCTION, contents_of  # noqa: PLC0415

    document = json.loads(_document(app))
    sections = list(Reader(document, contents_of(app)).sections())
    errors = {"name": "Error codes", "anchor": "errors", "errors": [error(code) for code in CATALOGUE]}
    values = {"base_url": document["servers"][0]["url"], "introduction": prose(INTRODUCTION)}
    opened = {"": None} | {section["anchor"]: section for section in (*sections, errors)}
    return {
        # The template escapes.
        name: Markup(  # noqa: S704
            render_template("docs_operations.html", sections=[*sections, errors], opened=section, **values)
        )
        for name, section in opened.items()
    }


def _page(section: str) -> Response:
    contents = _parts(this_app()).get(section)
    if contents is None:
        raise AppError("no_such_page")
    response = make_response(render_template("docs.html", contents=contents))
    policy = f"{security_headers.POLICY}; connect-src 'self'; script-src 'nonce-{security_headers.nonce()}'"
    response.headers["Content-Security-Policy"] = policy
    response.headers["Cache-Control"] = "no-store"
    return response


@docs_bp.get("/docs/changes")
@operation("public", "")
def changes() -> str:
    from linkmgr.document.docs_view import prose  # noqa: PLC0415

    return render_template("changes.html", text=prose(Path(__file__).with_name("changes.md").read_text()))


@docs_bp.get("/docs")
@operation("public", "")
def page() -> Response:
    return _page("")


@docs_bp.get("/docs/<section>")
@operation("public", "")
def section_page(section: str) -> Response:
    return _page(section)
