"""Links: the page of one link, and the forms. Its list is link_list.py."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import quote

from flask import Response, flash, g, redirect, render_template, request
from flask.typing import ResponseReturnValue
from itsdangerous import BadData

from linkmgr.console import link_changes, link_list, link_try, periods, queries, rule_rows
from linkmgr.console.controls import FormData, lines, to_number
from linkmgr.console.forms import GENERAL, PAGE
from linkmgr.console.frame import bp
from linkmgr.console.stored_forms import StoredForm
from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.feature import has_feature
from linkmgr.core.fields.bodies import load, problems
from linkmgr.core.fields.query import query_text
from linkmgr.core.fields.short_urls import parse_short_url
from linkmgr.core.fields.urls import link_name
from linkmgr.core.settings import settings
from linkmgr.features.bulk import moves
from linkmgr.features.conversions import results as conversions
from linkmgr.features.health import handlers as health
from linkmgr.features.statistics import visit_list
from linkmgr.features.utm import repository as utm
from linkmgr.features.utm.schema import PARAMETERS
from linkmgr.public import qr as qr_page
from linkmgr.repository import link_bin, link_records
from linkmgr.schemas.links import LINKS, Link
from linkmgr.visits import targets

_LATEST = 10
_SALT, _UNDO_SECONDS = "linkmgr experiments", 3600
_MAX_TOKEN = 3000  # characters that a proxy accepts in a URL; eight long targets may have more
# Members with rows of two controls, and the names of these
_PARTS: dict[str, tuple[str, ...]] = {
    name: getattr(field, "parts", ()) for name, field in Link.controls().items()
}
_PAIRS = {name: parts for name, parts in _PARTS.items() if len(parts) == 2}  # noqa: PLR2004


@bp.get("/links/<id:row_id>/qr")
def link_qr(row_id: int) -> Response:
    """Draw the QR code of the short URL, which on a branded domain has another host than this
    page."""
    record = link_records.read_from_replica(g.user_id, row_id)
    response = qr_page.of_url(record["shorturl"], query_text("size"))
    if query_text("download"):
        name = f"qr-{record['alias'].replace('/', '-')}.{qr_page.requested_format()}"
        named = f'filename="{name}"' if name.isascii() else f"filename*=UTF-8''{quote(name)}"
        response.headers["Content-Disposition"] = f"attachment; {named}"
    return response


@bp.get("/links/by-address")
def link_by_address() -> ResponseReturnValue:
    """Redirect from a short URL to the page of the link, if it is one of the user."""
    short = parse_short_url(query_text("url") or "")
    link = short and link_records.find_by_short_url(g.user_id, short)
    if link:
        return redirect(FORM.url("page", link), code=303)
    flash("You have no link with this short URL.", "error")
    return redirect(FORM.url(""), code=303)


# --- the check of its targets


@bp.post("/links/<id:row_id>/check")
def link_check(row_id: int) -> ResponseReturnValue:
    try:
        health.check_again(g.user_id, row_id)
        flash(health.DONE, "success")
    except AppError as error:
        if error.code == "missing":
            raise
        flash(error.message, "error")
    if request.form.get("back"):
        return link_changes.back()
    return redirect(FORM.url("page", {"id": row_id}), code=303)


@bp.post("/links/<id:row_id>/forget")
def link_forget(row_id: int) -> ResponseReturnValue:
    alias, domain_id = request.form.get("alias", ""), to_number(request.form.get("domain_id", ""))
    number = domain_id if isinstance(domain_id, int) else 0
    moves.forget_short_url(g.user_id, row_id, alias=lines(alias), domain_id=number)
    flash("The old short URL no longer works.", "success")
    return redirect(FORM.url("page", {"id": row_id}), code=303)


# --- the form


def _lacks(member: str, row: Row) -> bool:
    first, second = _PAIRS[member]
    return not (row[first] and (row[second] or member == "parameters"))


def _split_utm(pairs: list[Row]) -> tuple[dict[str, str], list[Row]]:
    """Return the UTM parameters, which have fields of their own, and the others."""
    first = {pair["name"]: number for number, pair in reversed([*enumerate(pairs)]) if lines(pair["value"])}
    own = {name: first[name] for name in PARAMETERS if name in first}
    rest = [pair for number, pair in enumerate(pairs) if number not in own.values()]
    return {name: pairs[number]["value"] for name, number in own.items()}, rest


def _utm_first(record: Row, pairs: Sequence[Row] = ()) -> Row:
    own, rest = _split_utm([*pairs, *record["parameters"]])
    return record | {"parameters": [{"name": name, "value": text} for name, text in own.items()] + rest}


def _with_parameters(record: Row) -> str:
    return targets.with_parameters(
        record["url"], [(pair["name"], pair["value"]) for pair in record["parameters"]]
    )


class LinkForm(StoredForm):
    list_template = "console/links.html"
    template = "console/link_form.html"
    after = PAGE
    unique = ("custom", "password")
    consequence = "Visitors of {shorturl} will see a page that says it does not exist."

    afterwards = f"You can restore it for {link_bin.DAYS} days."

    def show_list(self) -> str:
        return link_list.show(self)

    def title(self, row: Row) -> str:
        return link_name(row["title"] or row["health"]["title"], row["longurl"])

    def delete(self, user_id: int, row_id: int) -> None:
        link_bin.put(user_id, row_id)

    def say_deleted(self, row_id: int) -> None:
        flash("Link deleted.", link_changes.restorable([row_id]))

    def from_form(self, form: FormData) -> Row:
        """Take the UTM parameters from their fields, and those that are empty from the chosen
        template."""
        record, chosen = super().from_form(form) | {"rules": rule_rows.read(form)}, form.get("utm")
        templates = utm.batch(g.user_id, 0) if chosen else []
        template = next((row for row in templates if str(row["id"]) == chosen), {})
        texts = {name: lines(form.get(name, "")) or template.get(name) for name in PARAMETERS}
        pairs = [{"name": name, "value": text} for name, text in texts.items() if text]
        record["maxclicks"] = record["maxclicks"] or 0
        is_new = request.method == "GET" and "domain" not in form
        return _utm_first(record, pairs) | ({"domain": g.domain} if is_new else {})

    def add(self, user_id: int, members: Row) -> Row:
        if not members.get("forwardquery"):
            members.pop("forwardquery", None)  # the default is that of the domain
        return super().add(user_id, members)

    def from_row(self, row: Row) -> Row:
        return _utm_first(super().from_row(row))

    def page(self, row_id: int) -> str:
        record = link_records.read_named(g.user_id, row_id)
        visits = visit_list.index(g.user_id, row_id, what="link", limit=_LATEST, after=None, bots=[False])
        return render_template(
            "console/link.html",
            form=self,
            row=record,
            visits=visits.rows,
            results=conversions.of_link(record),
            ended=_ended(record, query_text("ended", _MAX_TOKEN)),
            numbers_of=periods.numbers("link", row_id),
            described=link_try.FIELDS,
            first=link_try.FIRST,
            of_visit=link_try.of_visit,
            stated=rule_rows.stated,
            can_check=has_feature("health") and settings().link_check,
        )

    def label_of(self, target: Row) -> str:
        [(selector, label)] = [(name, text) for name, text in target.items() if name != "link"]
        member = next(member for member, names in _PAIRS.items() if names[0] == selector)
        return self.controls[member].options.get(str(label), str(label))

    def check(self, members: Row) -> dict[str, str]:
        wrong: set[tuple[object, ...]] = {
            (member, number)
            for member in _PAIRS
            for number, row in enumerate(members.get(member, ()))
            if _lacks(member, row) or problems(Link.updates(), {member: [row]})
        }
        if text := problems(Link.updates(), members).get("variants"):
            number = re.match("number ([0-9]+)", text)
            wrong.add(("variants", int(number[1]) - 1 if number else 0))
        rule = rule_rows.problem(members.get("rules", []))
        g.wrong_rows = {*wrong, rule[1]} if rule else wrong
        return {
            member: "Fill in the name of each parameter, or clear its value." if member == "parameters"
            else f"Fill in both {names[0]} and {names[1]}, or neither."
            for member, names in _PAIRS.items()
            if any(_lacks(member, row) for row in members.get(member, ()))
        } | ({"rules": rule[0]} if rule else {})  # fmt: skip

    def control_of(self, field: str) -> str:
        """The host that is refused may be that of any URL of the form."""
        others = [
            text
            for name, text in request.form.items(multi=True)
            if name not in ("url", "domain") and "." in text
        ]
        return GENERAL if field == "url" and others else super().control_of(field)

    def options(self) -> dict[str, dict[str, str]]:
        named, own = queries.choices(g.user_id), settings().base_url
        return {
            "domain": {own: own} | {name: name for name in named["domain"].values()},
            "campaign": {"": "None"} | named["campaign"],
            "channel": named["channel"],
            "pixels": named["pixel"],
            "utm": named["utm"] if has_feature("utm") else {},
            "type": {"direct": "Directly", "frame": "In a frame", "splash": "After a plain splash page"}
            | {row_id: f"After the splash page {name}" for row_id, name in named["splash"].items()}
            | {f"overlay-{row_id}": f"Below the overlay {name}" for row_id, name in named["overlay"].items()},
        }

    def choices(self) -> Row:
        today = datetime.now(g.zone).replace(hour=23, minute=59)
        presets = {"Tonight": 0, "In a week": 7, "In 30 days": 30, "In a year": 365}
        return {
            "pairs": _PAIRS,
            "conditions": rule_rows.LABELS,
            "rule_rows": rule_rows.rows,
            "rule_values": rule_rows.VALUES,
            "condition_help": rule_rows.EXPLAINED,
            "expiries": {
                f"{today + timedelta(days=days):%Y-%m-%dT%H:%M}": label for label, days in presets.items()
            },
            "split_utm": _split_utm,
            "with_parameters": _with_parameters,
            "utm_fields": {name: field.metadata for name, field in PARAMETERS.items()},
            "wrong_rows": g.get("wrong_rows", ()),
        }


FORM = LinkForm(LINKS)
FORM.add_urls("/links", "/links/new", "/links/<id:row_id>/edit", "/links/<id:row_id>/delete")
bp.add_url_rule("/links/<id:row_id>", "link", FORM.page)


# --- the end of an experiment


def _ended(record: Row, token: str | None) -> Row:
    """Return the content of a token of `link_winner`, or {} if it has expired or the link has
    changed since."""
    try:
        ended: Row = keys.serializer(_SALT).loads(token or "", max_age=_UNDO_SECONDS)
    except BadData:
        return {}
    is_unchanged = [record["id"], record["url"], record["variants"]] == [
        ended["id"],
        ended["chosen"]["url"],
        [],
    ]
    return ended | {"token": token} if is_unchanged else {}


def _store(row_id: int, members: Row) -> bool:
    """Store the members if the link is as the page showed it. Otherwise say why not, and return
    False."""
    try:
        if not members:
            raise AppError("changed_meanwhile")
        FORM.store(row_id, request.form.get("version"), load(Link.updates(), members))
    except AppError as error:
        is_old = error.code == "changed_meanwhile"
        flash("The link has changed since you opened this page." if is_old else error.message, "error")
        return False
    return True


@bp.post("/links/<id:row_id>/winner")
def link_winner(row_id: int) -> ResponseReturnValue:
    """End an experiment: the target of a variant becomes that of the link. A token in the URL of
    the next page has the previous target and variants, for its button "Undo"."""
    record = link_records.read(g.user_id, row_id)
    chosen: Row = next((row for row in record["variants"] if row["name"] == request.form.get("variant")), {})
    if not _store(row_id, chosen and {"url": chosen["url"], "variants": []}):
        return redirect(FORM.url("page", record), code=303)
    before = {name: record[name] for name in ("url", "variants")}
    token = keys.serializer(_SALT).dumps({"id": row_id, "chosen": chosen, "before": before})
    if len(token) <= _MAX_TOKEN:
        return redirect(FORM.url("page", record, ended=token), code=303)
    flash(f"All visitors now go to the target of {chosen['name']}.", "success")
    return redirect(FORM.url("page", record), code=303)


@bp.post("/links/<id:row_id>/resume")
def link_resume(row_id: int) -> ResponseReturnValue:
    record = link_records.read(g.user_id, row_id)
    if _store(row_id, _ended(record, request.form.get("ended")).get("before", {})):
        flash("The experiment goes on.", "success")
    return redirect(FORM.url("page", record), code=303)
