"""Plans, for administrators: what the commands `plans` can do."""

from collections.abc import Callable

from flask import render_template
from psycopg2.errors import UniqueViolation

from linkmgr.db.statements import Row
from linkmgr.errors import AppError
from linkmgr.fields.plan_limits import COUNTED, LIMITS, NUMBERS, SWITCHED, UNLIMITED
from linkmgr.pages.administration.blueprint import bp
from linkmgr.pages.console import resources
from linkmgr.pages.console.forms import Form, FormData, lines, to_number
from linkmgr.repository import plans as stored_plans
from linkmgr.resources.plans import PRICES, Plan
from linkmgr.settings import settings

_TEXTS = ("name", *PRICES, "rate")
_UNUSED = [name for name in LIMITS if name not in Plan.controls()]
_SWITCHES = [name for name in (*COUNTED, *SWITCHED) if name not in _UNUSED]


def _from_form(form: FormData) -> Row:
    def number(name: str) -> str:
        return form.get(name, "").strip() or "0"

    switches: Row = {name: {"enabled": "1" if form.get(f"{name}.enabled") else "0"} for name in (*COUNTED, *SWITCHED)}
    for name in COUNTED:
        switches[name]["count"] = number(f"{name}.count")
    if not form:
        return dict.fromkeys(_TEXTS, "") | {"free": False} | UNLIMITED
    record = {name: lines(form.get(name, "")).strip() for name in _TEXTS} | {"free": "free" in form} | switches
    return record | {name: to_number(number(name)) for name in NUMBERS}


def _from_row(row: Row) -> Row:
    record: Row = {name: row[name] for name in _TEXTS} | row["limits"]
    return record | {"free": row["free"], "rate": str(row["rate"] or "")}


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
