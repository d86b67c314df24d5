"""Webhooks, their deliveries, and their secrets."""

from collections.abc import Callable
from typing import Any

import orjson
from flask import flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.api import webhooks as api
from linkmgr.db.statements import Row
from linkmgr.fields.query import page_number
from linkmgr.fields.times import iso
from linkmgr.fields.webhooks import OF_USERS, PATTERNS, TYPES, users_problem
from linkmgr.outbound.webhooks import new_secret
from linkmgr.pages.console.forms import Form, FormData, lines, to_number
from linkmgr.pages.console.frame import bp
from linkmgr.repository import overviews, webhooks
from linkmgr.web.errors import AppError

PER_PAGE = 15
_FILTERS = ("campaign", "channel", "domain")
_MAX_CHOICES = 200  # of a kind


def _choices() -> list[str]:
    """Return the patterns that the user can use, the types of a kind behind its prefix."""
    groups: dict[str, list[str]] = {name.partition(".")[0]: [] for name in ("*", *TYPES)}
    for name in PATTERNS:
        if g.admin or not name.startswith(OF_USERS):
            groups[name.partition(".")[0]].append(name)
    return [name for group in groups.values() for name in group]


def _label(pattern: str) -> str:
    """Return the name of a type or a prefix on pages."""
    return "all events" if pattern == "*" else f"all {pattern[:-2]} events" if pattern.endswith("*") else pattern


def _indented(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _id(text: str) -> int:
    """Return the id that a field contains, or 0."""
    number = to_number(text)
    return number if isinstance(number, int) else 0


def _from_form(form: FormData) -> Row:
    texts = {name: lines(form.get(name, "")).strip() for name in ("name", "url")}
    filters = {name: _id(form.get(name, "")) for name in _FILTERS}
    return texts | filters | {"events": form.getlist("events"), "active": "active" in form or not form}


def _from_row(row: Row) -> Row:
    return {name: row[name] for name in ("name", "url", "events", "active")} | {n: row[n] or 0 for n in _FILTERS}


def _check(members: Row) -> dict[str, str]:
    problem = None if g.admin else users_problem(members.get("events", []))
    return {"events": f"Events {problem}."} if problem else {}


def _add(user_id: int, members: Row) -> Row:
    """Add an active webhook. Its form does not have the field `active`."""
    return {"id": webhooks.add(user_id, secret=new_secret(), **members | {"active": True})}


FORM = Form(
    name="webhook",
    plural="webhooks",
    noun="webhook",
    blueprint="webhooks",
    id_name="webhook_id",
    new=api.NewWebhook,
    changed=api.WebhookChanges,
    from_form=_from_form,
    from_row=_from_row,
    read=webhooks.read,
    add=_add,
    change=lambda user_id, row_id, members: webhooks.update(user_id, row_id, **members),
    delete=webhooks.delete,
    labels={"name": "Name", "url": "URL", "events": "Events", "campaign": "Campaign", "channel": "Channel",
            "domain": "Domain", "active": "Active"},
    check=_check,
    fields={"campaign_unknown": "campaign", "channel_unknown": "channel", "domain_unknown": "domain"},
    choices=lambda: {"patterns": _choices(), "label_of": _label,
                     "rows": overviews.choices(g.user_id, limit=_MAX_CHOICES)},
    after="webhook",
).register()  # fmt: skip


@bp.get("/webhooks", endpoint="webhooks")
def show_list() -> str:
    page = webhooks.index(g.user_id, limit=PER_PAGE, number=page_number(), after=None)
    return render_template("console/webhooks.html", page=page, label_of=_label)


@bp.get("/webhooks/<id:row_id>")
def webhook(row_id: int, secret: str = "", *, has_changed: bool = False) -> str:
    """Show a webhook. Statements: the webhook, its deliveries, and the version of its secret."""
    row = webhooks.read(g.user_id, row_id)
    page = webhooks.deliveries(g.user_id, row_id, limit=PER_PAGE, number=page_number(), after=None)
    return render_template(
        "console/webhook.html",
        row=row,
        page=page,
        secret=secret,
        secret_version=webhooks.secret_version(g.user_id, row_id),
        has_changed=has_changed,
        iso=iso,
        indented=_indented,
        label_of=_label,
    )


@bp.post("/webhooks/<id:row_id>/secret")
def webhook_secret(row_id: int) -> ResponseReturnValue:
    """Replace the secret and show the new one once."""
    secret, version = new_secret(), request.form.get("version")
    try:
        webhooks.rotate(g.user_id, row_id, secret=secret, overlap=api.DEFAULT_OVERLAP, version=version)
    except AppError as error:
        if error.code != "changed_meanwhile":
            raise
        return webhook(row_id, has_changed=True), error.status
    return webhook(row_id, secret)


def _send(row_id: int, send: Callable[[], str]) -> ResponseReturnValue:
    """Show the sentence that `send` returns. A webhook may have changed since its page was opened."""
    try:
        flash(send(), "success")
    except AppError as error:
        if error.code not in ("webhook_off", "webhook_without_url"):
            raise
        flash(error.message, "error")
    return redirect(url_for("console.webhook", row_id=row_id), code=303)


@bp.post("/webhooks/<id:row_id>/test")
def webhook_test(row_id: int) -> ResponseReturnValue:
    def send() -> str:
        has_url = webhooks.test(g.user_id, row_id)
        return f"{api.TESTED[has_url]}{' Reload this page to see the result.' if has_url else ''}"

    return _send(row_id, send)


@bp.post("/webhooks/<id:row_id>/retry")
def webhook_retry(row_id: int) -> ResponseReturnValue:
    def send() -> str:
        webhooks.retry(g.user_id, _id(request.form.get("delivery", "")))
        return "The delivery will be sent again within seconds."

    return _send(row_id, send)
