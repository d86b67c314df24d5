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
from linkmgr.core.fields.shapes import ANY_OBJECT
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
@operation("public", "document.get", ANY_OBJECT, has_etag=True, is_free=True, query=_QUERY)
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
def _parts(app: Flask) -> dict[str, tuple[str, Markup]]:
    """Return the title and the contents of the first page as "", and of the page of each section,
    by the end of its path."""
    from linkmgr.document.docs_view import Reader, error, programs, prose  # noqa: PLC0415
    from linkmgr.document.document import INTRODUCTION, contents_of, pages_of  # noqa: PLC0415
    from linkmgr.document.responses import SHARED, by_status  # noqa: PLC0415

    document = json.loads(_document(app))
    sections = [programs(), *Reader(document, pages_of(contents_of(app))).sections()]
    errors = {
        "name": "Error codes",
        "anchor": "errors",
        "errors": [error(code) for code in CATALOGUE],
        "shared": by_status(SHARED),
    }
    values = {"base_url": document["servers"][0]["url"], "introduction": prose(INTRODUCTION)}
    opened = {"": None} | {section["anchor"]: section for section in (*sections, errors)}
    return {
        name: (
            str(section["name"]) if section else "",
            Markup(  # noqa: S704 - the template escapes
                render_template(
                    "docs_operations.html", sections=[*sections, errors], opened=section, **values
                )
            ),
        )
        for name, section in opened.items()
    }


def _page(section: str) -> Response:
    if section not in (parts := _parts(this_app())):
        raise AppError("no_such_page")
    title, contents = parts[section]
    response = make_response(render_template("docs.html", title=title, contents=contents))
    policy = f"{security_headers.POLICY}; connect-src 'self'; script-src 'nonce-{security_headers.nonce()}'"
    response.headers["Content-Security-Policy"] = policy
    response.headers["Cache-Control"] = "no-store"
    return response


_PAGE = operation("public", "", is_free=True)


@docs_bp.get("/docs/changes")
@_PAGE
def changes() -> str:
    from linkmgr.document.docs_view import prose  # noqa: PLC0415

    return render_template("changes.html", text=prose(Path(__file__).with_name("changes.md").read_text()))


@docs_bp.get("/docs")
@_PAGE
def page() -> Response:
    return _page("")


@docs_bp.get("/docs/<section>")
@_PAGE
def section_page(section: str) -> Response:
    return _page(section)
