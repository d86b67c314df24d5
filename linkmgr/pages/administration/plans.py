"""Plans, for administrators: what the commands `plans` can do."""

from flask import render_template
from werkzeug.datastructures import MultiDict

from linkmgr.db.statements import Row
from linkmgr.pages.administration.blueprint import bp
from linkmgr.pages.console.controls import FormData
from linkmgr.pages.console.forms import Form
from linkmgr.repository import plans as stored_plans
from linkmgr.resources.plans import COUNTED, LIMITS, NUMBERS, PRICES, SWITCHED, UNLIMITED, Plan
from linkmgr.settings import settings

_SWITCHES = [name for name in (*COUNTED, *SWITCHED) if name in Plan.controls()]


class PlanForm(Form):
    def from_form(self, form: FormData) -> Row:
        """Return the record of what was typed. An empty number means no limit."""
        typed = MultiDict(form)
        for name in NUMBERS if form else ():
            typed[name] = form.get(name, "").strip() or "0"
        return super().from_form(typed)

    def from_row(self, row: Row) -> Row:
        return super().from_row(row | row["limits"] | {"rate": str(row["rate"] or "")})

    def changes(self, record: Row, stored: Row) -> Row:
        changes = {name: value for name, value in record.items() if value != stored[name]}
        return changes | {"free": stored["free"]}  # which cannot be changed, and allows prices or not


def _check(members: Row) -> dict[str, str]:
    has_price = any(members.get(name, "").strip("0.") for name in PRICES)
    return {"free": "A free plan has no prices."} if members["free"] and has_price else {}


def _values(members: Row) -> Row:
    """Return the arguments of the statements."""
    values = {name: float(members[name] or 0) for name in (*PRICES, "rate") if name in members}
    names = {"name": members["name"]} if "name" in members else {}
    return values | names | {"limits": {name: members[name] for name in LIMITS if name in members}}


def _add(_: int, members: Row) -> Row:
    values = _values(members)
    values |= {"limits": UNLIMITED | values["limits"], "rate": values["rate"] or None}
    return {"id": stored_plans.add(free=members["free"], **values)}


def _show_list() -> str:
    return render_template("administration/plans.html", form=FORM, plans=stored_plans.with_users(), **FORM.choices())


FORM = PlanForm(
    Plan,
    defaults=Plan.defaults() | UNLIMITED,
    bp=bp,
    read=lambda _, plan_id: stored_plans.read(plan_id),
    add=_add,
    change=lambda _, plan_id, members: stored_plans.edit(plan_id, **_values(members)),
    fields={"plan_name_taken": "name"},
    check=_check,
    choices=lambda: {"numbers": NUMBERS, "switches": _SWITCHES, "default_rate": settings().rate_limit},
    show_list=_show_list,
    after="plans",
)
