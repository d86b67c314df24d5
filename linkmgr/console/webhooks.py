from collections.abc import Callable
from functools import partial

import orjson
from flask import flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.console import queries
from linkmgr.console.controls import FormData, to_number
from linkmgr.console.forms import PAGE, PER_PAGE
from linkmgr.console.frame import blueprint
from linkmgr.console.stored_forms import StoredForm
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError, refusal
from linkmgr.core.fields.query import page_number, query_id
from linkmgr.core.fields.times import iso
from linkmgr.features.webhooks import handlers as api
from linkmgr.features.webhooks import repository as webhooks
from linkmgr.features.webhooks.schema import (
    OF_USERS,
    PATTERNS,
    WEBHOOKS,
    match_users,
    users_problem,
)
from linkmgr.features.webhooks.sender import new_secret

bp = blueprint("webhook_pages", "/console")

# By the first word of an event, if they are not that word
_NOUNS = {"qr": "QR code", "bio": "bio page", "splash": "splash page", "utm": "UTM template",
          "public": "public page"}  # fmt: skip
_HEADINGS = {"*": "Everything", "audit": "Audit trail"}
_LABELS = {
    "*": "All events", "audit.*": "The whole audit trail", "audit.sign_in": "Sign-ins", "audit.key": "API keys changed",
    "audit.user": "Users changed", "audit.plan": "Plans changed", "audit.secret": "API keys shown",
    "audit.factor": "Passkeys and one-time codes changed",
}  # fmt: skip


def _is_beyond(events: list[str]) -> bool:
    """Return True for events of all users, which `*` includes in the account of an administrator,
    if a member works in it: the role of an owner makes no administrator."""
    return not g.admin and g.account["admin"] and match_users(events)


@bp.before_request
def _require_administrator() -> None:
    row_id = (request.view_args or {}).get("row_id")
    if row_id and _is_beyond(webhooks.read(g.user_id, row_id)["events"]):
        raise AppError("administration_page")


def _groups() -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name in PATTERNS:
        if not _is_beyond([name]) and (g.admin or not name.startswith(OF_USERS)):
            noun = _NOUNS.get(word := name.partition(".")[0], word)
            groups.setdefault(_HEADINGS.get(word) or f"{noun[0].upper()}{noun[1:]}s", []).append(name)
    return groups


def _label(pattern: str) -> str:
    word, _, event = pattern.partition(".")
    noun = _NOUNS.get(word, word)
    words = f"all events of {noun}s" if event == "*" else f"{noun} {event.replace('_', ' ')}".strip()
    return _LABELS.get(pattern) or words[0].upper() + words[1:]


def _without_covered(events: list[str]) -> list[str]:
    return [
        name
        for name in events
        if not any(wide != name and wide.endswith("*") and name.startswith(wide[:-1]) for wide in events)
    ]


def _body(delivery: Row) -> str:
    body = {"type": delivery["type"], "timestamp": iso(delivery["date"]), "data": delivery["data"]}
    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()


def _is_waiting(deliveries: list[Row]) -> bool:
    """Return True if a delivery was not tried yet, or if the one of a test event does not exist
    yet: the newest one is that of the query."""
    newest = str(deliveries[0]["id"] if deliveries else 0)
    return query_id("newest") == newest or any(
        row["state"] == "waiting" and not row["attempts"] for row in deliveries
    )


class WebhookForm(StoredForm):
    bp = bp
    list_template = "console/webhooks.html"
    template = "console/webhook_form.html"
    after = PAGE
    can_duplicate = False
    example = (
        "A webhook tells another program when something happens: a link is created, a visitor "
        "clicks, an overlay is answered. For example, https://example.com/hooks gets every visit."
    )
    consequence = "The receiver gets no further events, and the deliveries are deleted."

    def values_of_new(self) -> Row:
        return super().values_of_new() | {"events": ["*"]}

    def add(self, user_id: int, members: Row) -> Row:
        return super().add(user_id, members | {"active": True})  # the form of a new one lacks it

    def from_form(self, form: FormData) -> Row:
        record = super().from_form(form)
        return record | {"events": _without_covered(record["events"])}

    def from_row(self, row: Row) -> Row:
        record = super().from_row(row)
        return record | {"events": _without_covered(record["events"])}

    def check(self, members: Row) -> dict[str, str]:
        events = members.get("events", [])
        problem = None if g.admin else users_problem(events)
        if not problem and _is_beyond(events):
            problem = "must not contain '*', which only administrators receive here. Choose some"
        return {"events": f"Events {problem}."} if problem else {}

    def options(self) -> dict[str, dict[str, str]]:
        return {path: {"0": "All"} | names for path, names in queries.choices(g.user_id).items()}

    def choices(self) -> Row:
        return {"groups": _groups(), "label_of": _label}

    def page(self, row_id: int, secret: str = "", *, has_changed: bool = False, is_new: bool = False) -> str:
        page = webhooks.deliveries(g.user_id, row_id, limit=PER_PAGE, number=page_number(), after=None)
        return render_template(
            "console/webhook.html",
            form=self,
            row=webhooks.read(g.user_id, row_id),
            page=page,
            secret=secret,
            has_changed=has_changed,
            is_new=is_new,
            is_waiting=request.method == "GET" and _is_waiting(page.rows),
            body_of=_body,
            label_of=_label,
        )

    def show_new(self, row: Row) -> str:
        return self.page(row["id"], row["secret"], is_new=True)


FORM = WebhookForm(WEBHOOKS)
FORM.add_urls("/webhooks", "/webhooks/new", "/webhooks/<id:row_id>/edit", "/webhooks/<id:row_id>/delete")
bp.add_url_rule("/webhooks/<id:row_id>", "webhook", FORM.page)


@bp.post("/webhooks/<id:row_id>/secret")
def webhook_secret(row_id: int) -> ResponseReturnValue:
    secret, version = new_secret(), request.form.get("version")
    rotate = partial(webhooks.rotate, secret=secret, overlap=api.DEFAULT_OVERLAP, version=version)
    if error := refusal(lambda: rotate(g.user_id, row_id), "changed_meanwhile"):
        return FORM.page(row_id, has_changed=True), error.status
    return FORM.page(row_id, secret)


def _send(row_id: int, send: Callable[[], str | None], newest: int | None = None) -> ResponseReturnValue:
    def try_to_send() -> None:
        flash(send() or "The delivery will be sent again within seconds.", "success")

    if error := refusal(try_to_send, "webhook_off", "webhook_without_url"):
        flash(error.message, "error")
        newest = None
    return redirect(url_for("webhook_pages.webhook", row_id=row_id, newest=newest), code=303)


@bp.post("/webhooks/<id:row_id>/test")
def webhook_test(row_id: int) -> ResponseReturnValue:
    newest = webhooks.deliveries(g.user_id, row_id, limit=1, number=1, after=None).rows
    number = newest[0]["id"] if newest else 0
    return _send(row_id, lambda: api.TESTED[webhooks.test(g.user_id, row_id)], newest=number)


@bp.post("/webhooks/<id:row_id>/retry")
def webhook_retry(row_id: int) -> ResponseReturnValue:
    delivery_id = to_number(request.form.get("delivery", ""))
    return _send(
        row_id, lambda: webhooks.retry(g.user_id, delivery_id if isinstance(delivery_id, int) else 0)
    )
