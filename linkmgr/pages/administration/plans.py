"""Plans, for administrators: what the commands `plans` can do."""

from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from psycopg2.errors import UniqueViolation

from linkmgr.db.statements import Row
from linkmgr.fields.base import load, problems
from linkmgr.fields.plan_limits import COUNTED, NUMBERS, SWITCHED, UNLIMITED, PlanLimits, PlanName, PlanNumbers
from linkmgr.pages.administration.blueprint import bp
from linkmgr.pages.console.forms import FormData, lines, to_number
from linkmgr.repository import administration as repository
from linkmgr.repository import plans as stored_plans
from linkmgr.web.errors import AppError

LABELS = {
    "name": "Name", "monthly": "Price per month", "yearly": "Price per year", "lifetime": "Lifetime price",
    "rate": "API requests per minute", "links": "Links", "clicks": "Clicks per month", "retention": "Retention",
    "domain": "Branded domains", "pixels": "Pixels", "splash": "Splash pages", "overlay": "Overlays",
    "team": "Team members (not used)", "custom": "Custom splash pages (not used)",
    "multiple": "Multiple domains (not used)",
    "alias": "Custom aliases", "device": "Targets by device", "geo": "Targets by country", "bundle": "Campaigns",
    "parameters": "Link parameters", "export": "Exports", "api": "API",
}  # fmt: skip
_PRICES = ("monthly", "yearly", "lifetime")
_TEXTS = ("name", *_PRICES, "rate")


def _limits(form: FormData) -> Row:
    def number(name: str) -> str:
        return form.get(name, "").strip() or "0"

    switches = {name: {"enabled": "1" if form.get(f"{name}.enabled") else "0"} for name in (*COUNTED, *SWITCHED)}
    for name in COUNTED:
        switches[name]["count"] = number(f"{name}.count")
    return {name: to_number(number(name)) for name in NUMBERS} | switches


def _page(record: Row, row: Row | None, messages: dict[str, str]) -> str:
    return render_template(
        "administration/plan_form.html",
        record=record,
        plan=row,
        problems=messages,
        labels=LABELS,
        noun="plan",
        numbers=NUMBERS,
        counted=COUNTED,
        switched=SWITCHED,
    )


def _submit(row: Row | None) -> ResponseReturnValue:
    texts: Any = {name: lines(request.form.get(name, "")).strip() for name in _TEXTS}
    limits, numbers = _limits(request.form), {name: texts[name] or "0" for name in _TEXTS[1:]}
    refused = (
        problems(PlanName, {"name": texts["name"]}) | problems(PlanNumbers, numbers) | problems(PlanLimits, limits)
    )
    messages = {name: f"{LABELS[name]} {problem}." for name, problem in refused.items()}
    is_free = row["free"] if row else bool(request.form.get("free"))
    if is_free and any(float(numbers[name]) for name in _PRICES if name not in messages):
        messages["free"] = "A free plan has no prices."
    if not messages:
        prices: Any = {name: float(numbers[name]) for name in _PRICES}
        values: Any = {"limits": load(PlanLimits, limits)} | prices
        try:
            if row:
                stored_plans.edit(row["id"], name=texts["name"], rate=int(numbers["rate"]), **values)
            else:
                stored_plans.add(texts["name"], free=is_free, rate=int(numbers["rate"]) or None, **values)
            flash("Changes saved." if row else "Plan created.", "success")
            return redirect(url_for("administration.plans"), code=303)
        except UniqueViolation:
            messages["name"] = AppError("plan_name_taken").message
    return _page(texts | {"free": is_free, "limits": limits}, row, messages), 400


@bp.get("/plans")
def plans() -> str:
    return render_template("administration/plans.html", plans=repository.plans(), labels=LABELS)


@bp.get("/plans/new")
def plan_new() -> str:
    return _page(dict.fromkeys(_TEXTS, "") | {"free": False, "limits": UNLIMITED}, None, {})


@bp.post("/plans/new")
def plan_add() -> ResponseReturnValue:
    return _submit(None)


@bp.get("/plans/<id:row_id>/edit")
def plan_edit(row_id: int) -> str:
    row = repository.plan(row_id)
    return _page(row | {"rate": row["rate"] or ""}, row, {})


@bp.post("/plans/<id:row_id>/edit")
def plan_save(row_id: int) -> ResponseReturnValue:
    return _submit(repository.plan(row_id))
