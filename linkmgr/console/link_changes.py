"""The changes of links that are selected in the list, or of all that its filters match."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote

from flask import flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.console import charts, link_list, queries, signed_in
from linkmgr.console.controls import lines, to_number
from linkmgr.console.frame import bp
from linkmgr.core.database.statements import MAX_BIGINT, Row
from linkmgr.core.errors import AppError
from linkmgr.core.feature import has_feature
from linkmgr.core.fields.bodies import load, problems
from linkmgr.core.fields.urls import link_name
from linkmgr.core.web import streams
from linkmgr.features.bulk import changes, moves
from linkmgr.features.exports import handlers as export
from linkmgr.features.utm import repository as utm
from linkmgr.features.utm.schema import parameters_of
from linkmgr.repository import link_bin, link_lists, plans
from linkmgr.schemas.links import Link, link_columns

MAX_SELECTED = 100
BATCH = 500  # links of a statement
MAX_BATCHES = 10  # of a request that changes all links that the filters match
MAX_NAMED = 20  # links of a preview


class Change(NamedTuple):
    """`store` returns the results of links. Those with a code stay as they are."""

    verb: str
    done: str
    store: Callable[[int, list[int], Any], list[Row]]
    member: str = ""
    where: str = ""  # says what the links get, with the chosen value
    trial: Callable[[int, list[int], Any], list[Row]] | None = None  # for a preview


def _columns() -> export.Columns:
    """Return the columns of the file, which has the names and figures of the list."""
    return (
        export.columns("shorturl longurl")
        | {"title": lambda link: link_name(link["shown_title"], link["longurl"])}
        | export.columns("description campaign channels status")
        | {signed_in.zoned("expiry"): lambda link: link["expiry"] and signed_in.in_zone(link["expiry"])}
        | export.columns("password clicks imported visitors")
        | ({"conversions": lambda link: link["conversions"] or 0} if has_feature("conversions") else {})
        | {signed_in.zoned("created"): lambda link: signed_in.in_zone(link["date"])}
    )


def _set(member: str) -> Callable[[int, list[int], Any], list[Row]]:
    return lambda user_id, ids, value: changes.set_members(
        user_id, ids, **link_columns(load(Link.updates(), {member: value}))
    )


def _leave(user_id: int, ids: list[int], channel: int) -> list[Row]:
    return changes.set_members(user_id, ids, unassign_channel=channel)


def _put_into_bin(user_id: int, ids: list[int], _: Any) -> list[Row]:
    return changes.put_into_bin(user_id, ids, atomic=False)


def _set_utm(user_id: int, ids: list[int], template_id: int) -> list[Row]:
    return changes.set_parameters(user_id, ids, parameters_of(utm.read(user_id, template_id)))


# By value of the button.
CHANGES = {
    "delete": Change("Delete", "deleted", _put_into_bin),
    "campaign": Change("Move", "moved", _set("campaign"), "campaign", " to the campaign {}"),
    "channel": Change("Add", "added to the channel", _set("channel"), "channel", " to the channel {}"),
    "unassign": Change("Remove", "removed from the channel", _leave, "channel", " from the channel {}"),
    "status": Change("Make", "changed", _set("status"), "status", " {}"),
    "expiry": Change("Expire", "changed", _set("expiry"), "expiry", " at {}"),
    "utm": Change("Change", "changed", _set_utm, "template", " to the chosen UTM template"),
    "domain": Change("Move", "moved", moves.move, "domain", " to {}", partial(moves.move, trial=True)),
    "replace": Change("Change", "changed", moves.replace_in_targets, "old new", "",
                      partial(moves.replace_in_targets, trial=True)),
}  # fmt: skip
_ACTIONS = ("ask", "export", *CHANGES)
_POSITION = ("below", "number", "done", "left")  # fields that say how far a change of all is
# Days that old short URLs redirect, or infinity
KEPT = {"infinity": "as long as the links exist", "365": "for a year", "30": "for 30 days", "": "not at all"}
_NOUNS = {"expiry": "an expiry", "old new": "a text to replace, and another one"}  # of members


def selected_ids() -> list[int]:
    numbers = map(to_number, request.form.getlist("id")[:MAX_SELECTED])
    return [number for number in numbers if isinstance(number, int)]


def restorable(ids: list[int], of: str = "links") -> str:
    """Return the category of a message that has a button to restore links, or rows `of` another
    list."""
    return " ".join(map(str, ["binned", of, *ids]))


def _list_query() -> dict[str, Any]:
    return {name: request.args[name] for name in link_list.NAMES if name in request.args}


def back(message: str = "", category: str = "error") -> Response:
    if message:
        flash(message, category)
    return redirect(url_for("console.links", **_list_query()), code=303)


def _batches(user_id: int, ids: list[int], filters: Row, below: int = MAX_BIGINT) -> Iterator[list[int]]:
    if ids:
        yield ids
    while not ids and below:
        matched = link_lists.matched_ids(user_id, filters, below, BATCH)
        yield from [matched] if matched else []
        below = matched[-1] if len(matched) == BATCH else 0


def _position(name: str) -> int:
    number = to_number(request.form.get(name) or "0")
    if not isinstance(number, int):
        raise AppError("invalid", problems=f"{name} must be an integer")
    return number


@bp.get("/links/selected")
def links_selected() -> Response:
    """Redirect browsers that open the URL of the question."""
    return back()


@bp.post("/links/selected")
def links_change() -> ResponseReturnValue:
    action, is_all = request.form.get("action", ""), bool(request.form.get("all"))
    ids = [] if is_all else selected_ids()
    if action not in _ACTIONS:
        raise AppError("invalid", problems=f"action must be one of {', '.join(_ACTIONS)}")
    if not (is_all or ids):
        return back("Select links first.")
    has_filters = is_all or action == "domain"
    filters = link_list.all_filters(queries.choices(g.user_id)) if has_filters else {}
    query = link_list.requested(filters) if is_all else {}
    if action != "export":
        link_list.take_slot()
        return _change(action, ids, query, filters)
    plans.require_exports(g.user_id)
    user_id = g.user_id
    rows = (queries.selected(user_id, some) for some in _batches(user_id, ids, link_list.conditions(query)))
    return streams.export("links", _columns(), rows, "csv")


def _change(action: str, ids: list[int], query: Row, filters: link_list.Filters) -> ResponseReturnValue:
    """Ask before links are deleted, moved or get other targets, and before all that match the
    filters are changed. Otherwise change the links, a bounded number of them at a time.

    Links that were created after the question are not changed: their ids are not `below` that of
    the form.
    """
    name = "delete" if action == "ask" else action
    change, chosen = CHANGES[name], link_list.conditions(query)
    value = _value(change, filters)
    if value is None:
        return back(f"Choose {_NOUNS.get(change.member, f'a {change.member}')} first.")
    below, number, done, left = map(_position, _POSITION)
    stays, is_over = request.form.getlist("stays"), False
    rows, preview = list[Row](), Row()
    if action != "ask" and (below or (ids and not change.trial)):
        batches = _batches(g.user_id, ids, chosen, below)
        for some in islice(batches, MAX_BATCHES):
            results = [row for row in change.store(g.user_id, some, value) if row.get("code") != "missing"]
            refused = [f"{unquote(row['shorturl'])}: {row['message']}" for row in results if "code" in row]
            done, left, below = done + len(results) - len(refused), left + len(refused), some[-1]
            stays += refused
        is_over = not next(batches, None)
        if is_over and not left:
            category = restorable(ids) if action == "delete" else "success"
            return back(f"{charts.count(done, 'link')} {change.done}.", category)
    elif ids:
        rows = queries.selected(g.user_id, ids)
        number, below = len(rows), max(ids) + 1
    else:
        newest = link_lists.matching(g.user_id, chosen, limit=1, number=1, after=None)
        if not newest.rows:
            return back("No link matches the filters.")
        number, below = newest.total, newest.rows[0]["id"] + 1
    if change.trial and not (done or left):
        preview = _try(change.trial, value, _batches(g.user_id, ids, chosen, below))
        if not (preview["rows"] or preview["refused"]):
            return back(f"No link is {change.done} by this.")
    return render_template(
        "console/links_change.html",
        position=dict(zip(_POSITION, (below, number, done, left), strict=True)),
        change=change,
        action=name,
        chips=link_list.chips_of(query, filters) if query else [],
        values={name: request.form.get(name, "") for name in change.member.split()},
        where=_where(change, value, filters),
        ids=ids,
        rows=rows,
        query=_list_query(),
        days=link_bin.DAYS,
        kept=KEPT,
        preview=preview,
        stays=stays[:MAX_NAMED],
        is_over=is_over,
    )


def _try(trial: Callable[[int, list[int], Any], list[Row]], value: Any, batches: Iterator[list[int]]) -> Row:
    """Return how many of the first links a change would change and leave, and some of each."""
    preview: Row = {"tried": 0, "number": 0, "left": 0, "rows": [], "refused": []}
    for some in islice(batches, MAX_BATCHES):
        results = [row for row in trial(g.user_id, some, value) if row.get("code") != "missing"]
        refused = [row for row in results if "code" in row]
        preview["tried"] += len(some)
        preview["number"] += len(results) - len(refused)
        preview["left"] += len(refused)
        preview["refused"] = (preview["refused"] + refused)[:MAX_NAMED]
        preview["rows"] = (preview["rows"] + [row for row in results if "code" not in row])[:MAX_NAMED]
    return preview


def _value(change: Change, filters: link_list.Filters) -> Any:
    """Return the value that was chosen for a change, or None. If all links are changed, it is among
    the `filters`."""
    if change.member == "old new":
        old, new = (lines(request.form.get(name, "")).strip() for name in ("old", "new"))
        return (old, new) if old and old != new else None
    if change.member == "domain":
        hosts = filters["domain"][1] | {"0": ""}
        host, kept = hosts.get(request.form.get("domain", "")), request.form.get("kept", "")
        return None if host is None else {"domain": host} | _kept(kept)
    text = request.form.get(change.member, "") if change.member else "0"
    if change.member in Link.controls() and change.member not in link_list.ROWS:
        value = signed_in.from_control(text)
        return None if not text or problems(Link.updates(), {change.member: value}) else value
    row_id, (_, names) = to_number(text), filters.get(change.member, ("", {text: ""}))
    is_choice = change.member in ("", "campaign") if row_id == 0 else str(row_id) in names
    return row_id if isinstance(row_id, int) and is_choice else None


def _kept(text: str) -> Row:
    """Return until when the old short URLs of links that move are kept."""
    if not text or text not in KEPT:
        return {}
    until = text if text == "infinity" else f"{datetime.now(UTC) + timedelta(days=int(text))}"
    return {"kept_until": until}


def _where(change: Change, value: Any, filters: link_list.Filters) -> str:
    if change.member == "campaign" and not value:
        return " out of their campaigns"
    if change.member == "domain":
        value = request.form["domain"]
    _, names = filters.get(change.member, ("", {}))
    return change.where.format(
        signed_in.exact(value) if change.member == "expiry" else names.get(str(value), value)
    )
