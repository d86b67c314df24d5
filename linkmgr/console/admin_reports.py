from flask import flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from linkmgr.console.admin_access import blueprint
from linkmgr.core.database.statements import MAX_BIGINT
from linkmgr.core.fields.bodies import load, problems
from linkmgr.core.fields.query import query_position
from linkmgr.features.reports import repository as reports
from linkmgr.features.reports.schema import Decision, HostToBlock, decide_reports

bp = blueprint("report_pages")

_PER_PAGE = 50


@bp.get("/reports")
def reports_page(**values: str) -> str:
    before = query_position("before")
    decisions = reports.decisions(before=before or MAX_BIGINT, limit=_PER_PAGE + 1)
    return render_template(
        "administration/reports.html",
        reported=[] if before else reports.open_reports(limit=_PER_PAGE),
        decisions=decisions[:_PER_PAGE],
        older=decisions[_PER_PAGE - 1]["id"] if len(decisions) > _PER_PAGE else None,
        before=before,
        listed=reports.state_of_list(),
        **values,
    )


def _done(sentence: str) -> ResponseReturnValue:
    flash(sentence, "success")
    return redirect(url_for("report_pages.reports_page"), code=303)


@bp.post("/reports/<id:link_id>/decide")
def reports_decide(link_id: int) -> ResponseReturnValue:
    sent = {"decision": "host"} | request.form.to_dict()
    decide_reports(link_id, **load(Decision, sent), by=g.user_id)
    return _done("The reports have been decided.")


@bp.post("/reports/block")
def reports_block() -> ResponseReturnValue:
    sent = {"host": request.form.get("host", "").strip()}
    if wrong := problems(HostToBlock, sent):
        return reports_page(typed=sent["host"], problem=f"Host {wrong['host']}."), 400
    reports.block_host(load(HostToBlock, sent)["host"], by=g.user_id)
    return _done("The host is blocked.")


@bp.post("/reports/<id:block_id>/unblock")
def reports_unblock(block_id: int) -> ResponseReturnValue:
    reports.unblock(block_id, by=g.user_id)
    return _done("Unblocked.")
