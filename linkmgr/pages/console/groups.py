"""The pages of campaigns and channels: what is in one, its numbers, and the field that adds to it."""

from collections.abc import Container
from typing import Unpack

from flask import flash, g, redirect, render_template, request
from flask.typing import ResponseReturnValue

from linkmgr.db.statements import Page, Paging, Row
from linkmgr.fields.query import page_number
from linkmgr.fields.short_urls import parse_item_url
from linkmgr.pages.console import periods
from linkmgr.pages.console.controls import lines
from linkmgr.pages.console.forms import PER_PAGE
from linkmgr.pages.console.stored_forms import StoredForm
from linkmgr.repository import channels, console_queries
from linkmgr.request import pool

_PROPOSED = 30  # of each resource
_MAX_URL = 2048


class GroupForm(StoredForm):
    page_template: str
    types: Container[str]  # of what can be added, see `channels.ITEMS`
    unknown: str  # the message for other URLs

    def members(self, user_id: int, row_id: int, **paging: Unpack[Paging]) -> Page:
        raise NotImplementedError

    def assign(self, user_id: int, row_id: int, item: Row) -> None:
        raise NotImplementedError

    def page(self, row_id: int) -> ResponseReturnValue:
        return self._assign(row_id) if request.method == "POST" else self._show(row_id)

    def _show(self, row_id: int, typed: str = "", problem: str = "") -> str:
        pool.take_for(g.account["used"].get("links", 0), "stats_busy")
        row = console_queries.group(g.user_id, self.stored.words.path, row_id, limit=_PROPOSED)
        page = self.members(g.user_id, row_id, limit=PER_PAGE, number=page_number(), after=None)
        return render_template(
            self.page_template,
            form=self,
            row=row,
            page=page._replace(total=min(page.total, console_queries.MANY))
            if self.stored.words.path == "campaign"
            else page,
            number=page.total,
            many=console_queries.MANY,
            numbers_of=periods.numbers(self.stored.words.path, row_id),
            typed=typed,
            problem=problem,
        )

    def _assign(self, row_id: int) -> ResponseReturnValue:
        typed = lines(request.form.get("item", "")).strip()[:_MAX_URL]
        item = channels.find_item(g.user_id, **parse_item_url(typed))
        if item is None or item["type"] not in self.types:
            return self._show(row_id, typed, self.unknown), 400
        self.assign(g.user_id, row_id, item)
        flash(f"Added to the {self.noun}.", "success")
        return redirect(self.url("page", {"id": row_id}), code=303)
