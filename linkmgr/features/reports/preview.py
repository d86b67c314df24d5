"""/<alias>+: where a short URL leads, without a visit, and the form that reports it to the
administrators."""

from datetime import UTC, datetime
from urllib.parse import urlsplit

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.fields.base import Choice, Text
from linkmgr.core.fields.bodies import New, load, problems
from linkmgr.core.settings import settings
from linkmgr.core.web import limiter, security_headers
from linkmgr.core.web import request as web_request
from linkmgr.features.reports import repository as reports
from linkmgr.public import branded, short
from linkmgr.repository import public
from linkmgr.visits.blocked import blocked

bp = Blueprint("preview", __name__)
bp.after_request(security_headers.keep_private)

RATES = ("5 per 600 seconds", "20 per 86400 seconds")  # reports per IP address
REASONS = {
    "phishing": "It imitates another website",
    "malware": "It spreads harmful software",
    "spam": "It is unwanted advertising",
    "other": "Another reason",
}
_MAX_SHOWN = 20  # targets
_DAYS_OF = {"year": 365, "month": 30, "day": 1}


class Report(New):
    reason = Choice(tuple(REASONS), required=True)
    text = Text(500, allow_empty=True, multiline=True)


@bp.route("/<alias:alias>+", methods=("GET", "POST"))
@short.page_of_link
def show(alias: str) -> ResponseReturnValue:
    link = public.short_link(branded.host(), alias)
    if link is None or (request.method == "POST" and not settings().reports):
        raise NotFound
    wrong = problems(Report, request.form.to_dict()) if request.method == "POST" else {}
    is_reported = request.method == "POST" and not wrong
    if is_reported:
        network = web_request.network()
        for rate in RATES:
            limiter.enforce(f"report {rate}:{network}", rate, "too_many_reports")
        reporter = keys.signer("reporter").get_signature(f"{link['id']} {network}").decode()
        reports.add(link["id"], reporter, **{"text": ""} | load(Report, request.form.to_dict()))
    stored = public.preview(link["id"])
    page = render_template(
        "link_plus.html",
        link=link,
        age=_age(stored["created"]),
        is_shown=not (link["state"] or link["password_hash"] or link["maxclicks"]),
        targets=blocked().without_urls(_targets(link, stored["targets"])),
        most=_MAX_SHOWN,
        reasons=REASONS if settings().reports else {},
        is_reported=is_reported,
        problems=wrong,
    )
    return page, 400 if wrong else 200


def _targets(link: Row, targets: list[Row]) -> list[Row]:
    """Return the targets that visitors may get: `url` first, or another one in place of all."""
    if not link["state"]:
        return [] if link["password_hash"] or link["maxclicks"] else targets
    url = link["expiredurl"] if link["state"] != "blocked" else ""
    return [{"host": urlsplit(url).netloc, "longurl": url}] if url else []


def _age(created: str) -> str:
    days = (datetime.now(UTC) - datetime.fromisoformat(created).replace(tzinfo=UTC)).days
    for unit, length in _DAYS_OF.items():
        if number := days // length:
            return f"{number} {unit}{'' if number == 1 else 's'} ago"
    return "today"
