from urllib.parse import urlsplit

import orjson
from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue
from itsdangerous import BadData
from marshmallow import Schema

from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields.base import Choice, Email, Text
from linkmgr.core.fields.bodies import New, load
from linkmgr.core.web import error_pages, limiter, security_headers
from linkmgr.core.web import request as web_request
from linkmgr.core.web.responses import ok
from linkmgr.repository import overlay as stored_overlays
from linkmgr.schemas.overlay import list_choices

bp = Blueprint("overlay_answers", __name__)
bp.after_request(security_headers.keep_private)

ANSWERS, WINDOW = 10, 600  # answers per IP address; seconds
_SALT = "linkmgr overlays"
_MAX_PAGE_AGE = 24 * 60 * 60  # seconds between opening a page and sending its form
THANKS = "Thank you. Your answer has been sent."


class Contact(New):
    name = Text(100, required=True)
    email = Email(required=True)
    message = Text(2000, required=True, multiline=True)


class Newsletter(New):
    email = Email(required=True)


_SCHEMAS = {"contact": Contact, "newsletter": Newsletter}


def _schema(overlay: Row) -> type[Schema]:
    if overlay["type"] == "poll":
        return New.from_dict({"choice": Choice(list_choices(overlay["message"]), required=True)}, name="Poll")
    if overlay["type"] not in _SCHEMAS:
        raise AppError("no_such_page")
    return _SCHEMAS[overlay["type"]]


def sealed(user_id: int, overlay_id: int, target: str) -> str:
    """Return a signed form field. The signature ensures that the form comes from one of our pages,
    and that the link to the target on the next page is no open redirect."""
    return str(keys.serializer(_SALT).dumps([user_id, overlay_id, target]))


@bp.post("/o/answer")
def answer() -> ResponseReturnValue:
    members = request.form.to_dict()
    try:
        user_id, overlay_id, target = keys.serializer(_SALT).loads(
            members.pop("page", ""), max_age=_MAX_PAGE_AGE
        )
    except BadData:
        raise AppError("answer_unplaced") from None
    rate = f"{ANSWERS} per {WINDOW} seconds"
    limiter.enforce(f"answer:{web_request.network()}", rate, "too_many_answers")
    overlay = stored_overlays.form(user_id, overlay_id)
    if overlay is None:
        raise AppError("no_such_page")
    values = load(_schema(overlay), members)
    stored_overlays.add_answer(user_id, overlay_id, answer=orjson.dumps(values).decode())
    if not error_pages.prefers_html():
        return ok(THANKS)
    return render_template("go_thanks.html", message=THANKS, target=target, host=urlsplit(target).hostname)
