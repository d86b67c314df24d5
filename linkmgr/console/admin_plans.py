from flask import render_template
from werkzeug.datastructures import MultiDict

from linkmgr.console.admin_access import bp
from linkmgr.console.controls import FormData
from linkmgr.console.forms import BOTH, LIST, Form
from linkmgr.core.database.statements import Row
from linkmgr.core.settings import settings
from linkmgr.repository import plans
from linkmgr.schemas.plans import COUNTED, NUMBERS, SWITCHED, Plan, change_plan, create_plan, price_problem

_SWITCHES = [name for name in (*COUNTED, *SWITCHED) if name in Plan.controls()]


class PlanForm(Form):
    path = "/plans"
    template = "console/plan_form.html"
    after = LIST
    bp = bp

    def show_list(self) -> str:
        return render_template(
            "administration/plans.html", form=self, plans=plans.with_users(), **self.choices()
        )

    def read(self, _user_id: int, row_id: int) -> Row:
        return plans.read(row_id)

    def add(self, _user_id: int, members: Row) -> Row:
        return create_plan(members)

    def change(self, _user_id: int, row_id: int, members: Row) -> None:
        change_plan(row_id, members)

    def check(self, members: Row) -> dict[str, str]:
        problem = price_problem(members)
        return {"free": problem} if problem else {}

    def choices(self) -> Row:
        return {"numbers": NUMBERS, "switches": _SWITCHES, "default_rate": settings().rate_limit}

    def from_form(self, form: FormData) -> Row:
        typed = MultiDict(form)
        for name in NUMBERS if form else ():
            typed[name] = form.get(name, "").strip() or "0"
        return super().from_form(typed)

    def from_row(self, row: Row) -> Row:
        return super().from_row(row | row["limits"] | {"rate": str(row["rate"] or "")})

    def changes(self, record: Row, stored: Row) -> Row:
        changes = {name: value for name, value in record.items() if value != stored[name]}
        return changes | {"free": stored["free"]}  # which cannot be changed, and allows prices or not


FORM = PlanForm(Plan, "plan")
bp.add_url_rule("/plans", "plans", FORM.show_list)
bp.add_url_rule("/plans/new", "plan_new", FORM.new_page, methods=BOTH)
bp.add_url_rule("/plans/<id:row_id>/edit", "plan_edit", FORM.edit_page, methods=BOTH)
