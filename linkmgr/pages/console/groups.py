"""The pages of campaigns and channels: what is in one, its numbers, and the field that adds to it."""

from collections.abc import Callable, Container
from functools import partial
from typing import NamedTuple

from flask import flash, g, redirect, render_template, request
from flask.typing import ResponseReturnValue

from linkmgr.db.statements import Page, Row
from linkmgr.fields.query import page_number
from linkmgr.fields.short_urls import parse_item_url
from linkmgr.pages.console import periods
from linkmgr.pages.console.controls import lines
from linkmgr.pages.console.forms import PER_PAGE, Form
from linkmgr.pages.console.frame import bp
from linkmgr.repository import channels, console_queries

_PROPOSED = 30  # of each kind
_MAX_URL = 2048


class Group(NamedTuple):
    form: Form
    members: Callable[..., Page]  # (user_id, id, **paging)
    types: Container[str]  # of what can be added, see `channels.ITEMS`
    add: Callable[[int, int, Row], None]  # (user_id, id, item)
    unknown: str  # the message for other URLs

    def register(self) -> None:
        rule, name = f"/{self.form.plural}/<id:row_id>", self.form.name
        bp.add_url_rule(rule, name, partial(_show, self))
        bp.add_url_rule(rule, f"{name}_assign", partial(_add, self), methods=["POST"])


def _show(group: Group, row_id: int, typed: str = "", problem: str = "") -> str:
    """Show a campaign or a channel. Statements: the row with proposals, its members, and their numbers."""
    row = console_queries.group(g.user_id, group.form.name, row_id, limit=_PROPOSED)
    page = group.members(g.user_id, row_id, limit=PER_PAGE, number=page_number(), after=None)
    return render_template(
        f"console/{group.form.name}.html",
        form=group.form,
        row=row,
        page=page._replace(total=min(page.total, console_queries.MANY)) if group.form.name == "campaign" else page,
        number=page.total,
        many=console_queries.MANY,
        numbers_of=periods.numbers(group.form.name, row_id),
        typed=typed,
        problem=problem,
    )


def _add(group: Group, row_id: int) -> ResponseReturnValue:
    """Add the item with the URL that was typed."""
    typed = lines(request.form.get("item", "")).strip()[:_MAX_URL]
    item = channels.find_item(g.user_id, **parse_item_url(typed))
    if item is None or item["type"] not in group.types:
        return _show(group, row_id, typed, group.unknown), 400
    group.add(g.user_id, row_id, item)
    flash(f"Added to the {group.form.noun}.", "success")
    return redirect(group.form.url("page", {"id": row_id}), code=303)
