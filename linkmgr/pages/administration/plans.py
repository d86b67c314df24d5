"""Plans, for administrators: what the commands `plans` can do."""

from collections.abc import Callable

from flask import render_template
from psycopg2.errors import UniqueViolation
from werkzeug.datastructures import MultiDict

from linkmgr.db.statements import Row
from linkmgr.errors import AppError
from linkmgr.fields.plan_limits import COUNTED, LIMITS, NUMBERS, SWITCHED, UNLIMITED
from linkmgr.pages.administration.blueprint import bp
from linkmgr.pages.console import controls, resources
from linkmgr.pages.console.controls import FormData
from linkmgr.pages.console.forms import Form
from linkmgr.repository import plans as stored_plans
from linkmgr.resources.plans import PRICES, Plan
from linkmgr.settings import settings

_UNUSED = [name for name in LIMITS if name not in Plan.controls()]
_SWITCHES = [name for name in (*COUNTED, *SWITCHED) if name not in _UNUSED]


def _from_form(form: FormData) -> Row:
    """Return the record of what was typed. An empty number means no limit."""
    typed = MultiDict(form)
    for name in NUMBERS if form else ():
        typed[name] = form.get(name, "").strip() or "0"
    limits = {name: controls.read(field, name, typed, UNLIMITED[name]) for name, field in LIMITS.items()}
    return limits | resources.from_form(Plan, Plan.defaults() | UNLIMITED, typed)


def _from_row(row: Row) -> Row:
    limits: Row = row["limits"]
    return limits | resources.from_row(Plan, row | limits | {"rate": str(row["rate"] or "")})


def _changes(record: Row, stored: Row) -> Row:
    """Return all members, with the stored values of those that the form does not have."""
    return record | {name: stored[name] for name in ("free", *_UNUSED)}


def _check(members: Row) -> dict[str, str]:
    has_price = any(members[name].strip("0.") for name in PRICES)
    return {"free": "A free plan has no prices."} if members["free"] and has_price else {}


def _values(members: Row) -> Row:
    limits = {name: value for name, value in members.items() if name in LIMITS}
    prices = {name: float(members.get(name) or 0) for name in PRICES}
    return {"name": members["name"], "limits": limits, "rate": int(members.get("rate") or 0)} | prices


def _store(write: Callable[[], int | None]) -> int | None:
    try:
        return write()
    except UniqueViolation:
        raise AppError("plan_name_taken") from None


def _add(_: int, members: Row) -> Row:
    values = _values(members)
    values["rate"] = values["rate"] or None
    return {"id": _store(lambda: stored_plans.add(free=members.get("free", False), **values))}


def _change(_: int, plan_id: int, members: Row) -> None:
    _store(lambda: stored_plans.edit(plan_id, **_values(members)))


def _show_list(form: Form) -> str:
    return render_template("administration/plans.html", form=form, plans=stored_plans.with_users())


FORM = resources.declared(
    Plan,
    heading="Plans",
    bp=bp,
    from_form=_from_form,
    from_row=_from_row,
    read=lambda _, plan_id: stored_plans.read(plan_id),
    add=_add,
    change=_change,
    fields={"plan_name_taken": "name"},
    changes=_changes,
    check=_check,
    choices=lambda: {"numbers": NUMBERS, "switches": _SWITCHES, "default_rate": settings().rate_limit},
    show_list=_show_list,
    after="plans",
)
