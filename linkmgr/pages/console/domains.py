"""Branded domains, the DNS records to set, and the check of them."""

from flask import flash, g, redirect, request, url_for
from werkzeug.wrappers import Response

from linkmgr.api import domains as api
from linkmgr.db.statements import Row
from linkmgr.outbound import domain_check
from linkmgr.pages.console import resources
from linkmgr.pages.console.forms import GENERAL
from linkmgr.pages.console.frame import bp
from linkmgr.qr import logos
from linkmgr.repository import domains, overviews
from linkmgr.settings import settings
from linkmgr.web.errors import AppError


def _read(user_id: int, row_id: int) -> Row:
    row = domains.read(user_id, row_id)
    states = overviews.uses(user_id, [row_id], kind="domain", limit=resources.MANY + 1)
    return row | states[0] | {"host": row["domain"].partition("://")[2]}


def _delete(user_id: int, row_id: int) -> None:
    host = _read(user_id, row_id)["host"]
    if request.form.get("host", "").strip().lower() != host:
        raise AppError("invalid", problems=f"Type {host} to delete this domain")
    domains.delete(user_id, row_id)


FORM = resources.resource(
    "domain", domains, api.NewDomain, api.DomainChanges,
    read=_read,
    add=lambda user_id, members: {"id": api.create(user_id, members)},
    change=api.change,
    delete=_delete,
    labels={"domain": "Domain", "redirectroot": "Start page", "redirect404": "Page for unknown URLs",
            "brandname": "Name", "brandlogo": "Logo", "brandcolor": "Color"},
    fields=dict.fromkeys(logos.ERRORS, "brandlogo")
    | {"domain_taken": "domain", "domain_unproven": "domain", "fetch_busy": GENERAL},
    choices=lambda: {"dns_record": domain_check.dns_record, "base_url": settings().base_url, "many": resources.MANY},
)  # fmt: skip


@bp.post("/domains/<id:row_id>/check")
def domain_check_now(row_id: int) -> Response:
    problem = api.check_now(g.user_id, row_id)
    if problem is None:
        flash("This installation does not check domains.", "info")
    else:
        flash(problem or "The domain points to this service.", "error" if problem else "success")
    return redirect(url_for("console.domain_edit", row_id=row_id), code=303)
