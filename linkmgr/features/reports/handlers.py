from flask import Blueprint

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation, prose
from linkmgr.core.web.responses import Json, ok
from linkmgr.core.web.streams import BUSY
from linkmgr.features.reports import repository as reports
from linkmgr.features.reports.schema import Decision, HostToBlock, decide_reports

bp = Blueprint("reports", __name__, url_prefix="/api")
_HOST = shapes.text("evil.example")
_TARGET = shapes.url("https://evil.example/")
_SHORT_URL = shapes.own_url("summer")
_RECORDS: dict[str, JsonSchema] = {
    "ReportedLink": shapes.object_of(
        link=shapes.ID,
        shorturl=_SHORT_URL,
        longurl=_TARGET,
        host=_HOST,
        targets=shapes.array_of(shapes.object_of(host=_HOST, longurl=_TARGET))
        | {"description": "At most ten, beginning with one on each host, `longurl` first."},
        hosts=shapes.number(1, 1) | {"description": "The number of hosts of all targets."},
        user=shapes.ID,
        username="alice",
        number=3,
        reasons=shapes.array_of(shapes.choice("phishing", "malware", "spam", "other")),
        texts=shapes.array_of("It asks for my password.") | {"description": "The latest five."},
        first=shapes.TIMESTAMP,
        last=shapes.TIMESTAMP,
    ),
    "Block": shapes.object_of(
        id=shapes.ID,
        kind=shapes.choice("host", "link"),
        host=_HOST | {"description": "Of the target, if a link is blocked."},
        link=shapes.or_null(shapes.ID),
        shorturl=shapes.or_null(_SHORT_URL),
        user=shapes.ID,
        date=shapes.TIMESTAMP,
    ),
}
SECTION = Section(
    "reports",
    "Reports and blocks",
    prose(__file__),
    lambda: _RECORDS,
    nouns={"block": "block"},
)


@bp.get("/reports")
@operation("admin", "reports.list", shapes.all_of("ReportedLink"), errors=BUSY)
def index() -> Json:
    """List the links with open reports.

    The 1,000 with the latest reports, in one response.
    """
    return ok(data=reports.open_reports(limit=reports.MAX_SHOWN))


@bp.post("/report/<id:link_id>/decide")
@operation("admin", "reports.decide", shapes.done("The reports have been decided."), body=Decision)
def decide(sent: Row, link_id: int) -> Json:
    """Decide the reports of a link.

    A link without reports can be blocked too.
    """
    decide_reports(link_id, **sent, by=user_id())
    return ok("The reports have been decided.")


@bp.get("/blocks")
@operation("admin", "reports.blocks", shapes.all_of("Block"), errors=BUSY)
def blocks() -> Json:
    """List the blocks of administrators.

    All in one response, without the hosts of `LINKMGR_BLOCKLIST_URL`.
    """
    return ok(data=reports.blocks())


@bp.post("/block/add")
@operation("admin", "reports.block", shapes.success("HostBlocked", id=shapes.ID), body=HostToBlock)
def block(sent: Row) -> Json:
    """Block a host."""
    return ok(id=reports.block_host(sent["host"], by=user_id()))


@bp.post("/block/<id:block_id>/end")
@operation("admin", "reports.unblock", shapes.done("The block has been ended."))
def unblock(block_id: int) -> Json:
    """Unblock a link or a host."""
    reports.unblock(block_id, by=user_id())
    return ok("The block has been ended.")
