"""/o/answer: what visitors fill into the form of an overlay."""

from urllib.parse import urlsplit

import orjson
from flask import Blueprint, current_app, render_template, request
from flask.typing import ResponseReturnValue
from itsdangerous import BadData, URLSafeTimedSerializer
from marshmallow import Schema

from linkmgr.db.statements import Row
from linkmgr.fields import overlays
from linkmgr.fields.base import Choice, Email, New, Text, load
from linkmgr.repository import callers, overlay_answers
from linkmgr.web import client_address, error_pages, security_headers
from linkmgr.web.errors import AppError
from linkmgr.web.responses import ok

bp = Blueprint("overlay_answers", __name__)
bp.after_request(security_headers.keep_private)

ANSWERS, WINDOW = 10, 600  # that are taken from one address, and in how many seconds
_PAGE_SECONDS = 24 * 60 * 60  # that a page with a form may stand open
THANKS = "Thank you, your answer has been sent."


class Contact(New):
    name = Text(100, required=True)
    email = Email(required=True)
    message = Text(2000, required=True, multiline=True)


class Newsletter(New):
    email = Email(required=True)


def _form(overlay: Row) -> type[Schema]:
    match overlay["type"]:
        case "contact":
            return Contact
        case "newsletter":
            return Newsletter
        case "poll":
            chosen = Choice(overlays.choices(overlay["message"]), required=True)
            return New.from_dict({"choice": chosen}, name="Poll")
        case _:
            raise AppError("no_such_page")


def _seal() -> URLSafeTimedSerializer:
    keys = [*current_app.config["SECRET_KEY_FALLBACKS"], current_app.config["SECRET_KEY"]]
    return URLSafeTimedSerializer(keys, salt="linkmgr overlays")


def sealed(user_id: int, overlay_id: int, target: str) -> str:
    """Goes with the form: which overlay it answers, and where its visitor was going.  Nobody else can make one,
    so that an answer comes from a page that we showed, and the way on from it is no open redirect."""
    return str(_seal().dumps([user_id, overlay_id, target]))


@bp.post("/o/answer")
def answer() -> ResponseReturnValue:
    try:
        user_id, overlay_id, target = _seal().loads(request.form.get("page", ""), max_age=_PAGE_SECONDS)
    except BadData:
        raise AppError("answer_unplaced") from None
    _count()
    overlay = overlay_answers.overlay(user_id, overlay_id)
    if overlay is None:
        raise AppError("no_such_page")
    given = load(_form(overlay), request.form.to_dict())
    overlay_answers.add(user_id, overlay_id, answer=orjson.dumps(given).decode())
    if not error_pages.prefers_html():
        return ok(THANKS)
    return render_template("go_thanks.html", message=THANKS, target=target, host=urlsplit(target).hostname)


def _count() -> None:
    sent = callers.count(f"answer:{client_address.network()}", window=WINDOW)
    if sent["count"] > ANSWERS:
        raise AppError("too_many_answers", seconds=max(1, sent["seconds"]))
