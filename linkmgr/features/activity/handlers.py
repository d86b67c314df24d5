from flask import Blueprint

from linkmgr.core.database.statements import Row
from linkmgr.core.fields import shapes
from linkmgr.core.fields.query import ID, PAGING, Parameter, paging, row_id, values_of
from linkmgr.core.fields.zones import TIME, parse_time
from linkmgr.core.web.auth import user_id
from linkmgr.core.web.operation import Section, operation
from linkmgr.core.web.responses import Json, listing
from linkmgr.features.webhooks import activity, outbox

bp = Blueprint("activity", __name__, url_prefix="/api")

_KINDS = (*activity.TYPES, *activity.OF_ACCOUNT)
KINDS = [*sorted({f"{name.partition('.')[0]}.*" for name in _KINDS}), *_KINDS]
ACTIVITY = {
    "user": Parameter("The id of a person: only what this person did.", row_id, **ID),
    "type": Parameter("Only changes of this type or prefix.", enum=KINDS, examples=["link.*"]),
    "from": Parameter("Only changes from this time on.", parse_time, pattern=TIME, examples=["2026-11-01"]),
    "to": Parameter("Only changes before this time.", parse_time, pattern=TIME, examples=["2026-12-01"]),
}
_CHANGE = shapes.object_of(
    id=shapes.ID,
    type=shapes.choice("link.updated", *_KINDS),
    date=shapes.TIMESTAMP,
    actor=shapes.ref("Actor"),
    row=shapes.or_null(shapes.ID) | {"description": "The id of what was changed."},
    name=shapes.text("Summer sale", description="Its name at that time."),
    changes=shapes.CHANGES
    | {"description": "By changed member: its previous and its new value. `[]` if they are secret."},
)
_ABOUT = f"""\
Who changed what in an account since it has invited its first member: links, QR codes, pages and whatever else has
events, public statistics, API keys, members, and imports that ended. Of conversions it has changes, deletions and
those of the settings (`conversion.setup`), but no reports. Changes are kept for {activity.DAYS_KEPT} days.
Of an account they are at most {outbox.MAX_EVENTS:,} and {outbox.MAX_BYTES >> 20} MiB; beyond that, the oldest are
dropped."""
SECTION = Section("activity", "Activity", _ABOUT, lambda: {"Change": _CHANGE, "Actor": shapes.ACTOR})


def selected(values: Row) -> Row:
    """Return the arguments of `activity.index` for parameters of the query."""
    pattern = values["type"] and values["type"].replace("_", r"\_").replace("*", "%")
    return {"pattern": pattern, "by": values["user"], "since": values["from"], "until": values["to"]}


@bp.get("/activity")
@operation(
    "activity:read",
    "activity.list",
    shapes.listing_schema("activity", "Change"),
    query=ACTIVITY | PAGING,
)
def index() -> Json:
    """List who changed what, the newest first.

    `actor` is the person, or for an API key the one who made it. Secrets are left out.
    """
    return listing("activity", activity.index(user_id(), **selected(values_of(ACTIVITY)), **paging()))
