"""The pages of campaigns and channels: what is in one, its numbers, and the field that adds to
it."""

from abc import abstractmethod
from collections.abc import Container
from typing import Unpack

from flask import flash, g, redirect, render_template, request
from flask.typing import ResponseReturnValue

from linkmgr.console import charts, overview, periods, queries
from linkmgr.console.controls import lines
from linkmgr.console.forms import PER_PAGE
from linkmgr.console.stored_forms import StoredForm
from linkmgr.core.database.paging import Page, Paging
from linkmgr.core.database.statements import Row
from linkmgr.core.fields.query import page_number, query_choice
from linkmgr.core.fields.short_urls import parse_item_url
from linkmgr.core.web import pool
from linkmgr.repository import channels

ORDERS = {"date": "Newest first", "-clicks": "Most {}s", "-change": "Gained most", "change": "Lost most"}
_PROPOSED = 30  # of each resource
_MAX_URL = 2048


class CountedForm(StoredForm):
    """A resource whose list has the clicks of each row in a period, with the change since the time
    before."""

    def show_list(self) -> str:
        """Show the newest rows first, or the clicks that were asked for. An order compares the MANY
        newest rows."""
        period, order = periods.requested()._replace(units=[]), query_choice("order", tuple(ORDERS))
        order = order or ("date" if request.args.keys().isdisjoint(("period", "from", "to")) else "-clicks")
        number, is_newest = page_number(), order == "date"
        limit, first = (PER_PAGE, number) if is_newest else (queries.MANY, 1)
        listed = self.stored.rows.index(g.user_id, limit=limit, number=first, after=None)
        rows = self._counted(listed.rows, period)
        if not is_newest:
            rows = periods.by_clicks(rows, order)[(number - 1) * PER_PAGE : number * PER_PAGE]
        total = listed.total if is_newest else min(listed.total, queries.MANY)
        page = Page(self.with_uses(rows), total, PER_PAGE, number, None)
        return self.render_list(
            page,
            total=listed.total,
            period=period,
            order=order,
            orders=ORDERS,
            kept=period.query | {"order": order},
            counted_noun=periods.noun_of(self.stored.words.path),
        )

    def _counted(self, rows: list[Row], period: periods.Period) -> list[Row]:
        if not rows:
            return rows
        pool.take_for(g.account["used"].get("links", 0), "stats_busy")
        ids, subject = [row["id"] for row in rows], self.stored.words.path
        counts = overview.of_groups(g.user_id, subject, ids, times=period.with_before())
        by_id = {row["id"]: row for row in counts}
        return [row | by_id[row["id"]] for row in rows]

    def selection(self, row: Row) -> Row:
        return {self.stored.words.path: row["id"]}


class GroupForm(CountedForm):
    page_template: str
    types: Container[str]  # of what can be added, see `channels.ITEMS`
    unknown: str  # the message for other URLs

    @abstractmethod
    def members(self, user_id: int, row_id: int, times: dict[str, str], **paging: Unpack[Paging]) -> Page:
        """List what is in a group, with the clicks of a period."""

    @abstractmethod
    def assign(self, user_id: int, row_id: int, item: Row) -> None: ...

    def _show(self, row_id: int, typed: str = "", problem: str = "") -> str:
        pool.take_for(g.account["used"].get("links", 0), "stats_busy")
        row = queries.group(g.user_id, self.stored.words.path, row_id, limit=_PROPOSED)
        numbers = periods.numbers(self.stored.words.path, row_id)
        times = numbers["period"].times()
        page = self.members(g.user_id, row_id, times, limit=PER_PAGE, number=page_number(), after=None)
        for member in page.rows:
            charts.add_spark(member, member["days"] or {})
        most = queries.MANY if self.stored.words.path == "campaign" else page.total
        return render_template(
            self.page_template,
            form=self,
            row=row,
            page=page._replace(total=min(page.total, most)),
            number=page.total,
            many=queries.MANY,
            numbers_of=numbers,
            typed=typed,
            problem=problem,
        )

    def page(self, row_id: int) -> ResponseReturnValue:
        if request.method != "POST":
            return self._show(row_id)
        typed = lines(request.form.get("item", "")).strip()[:_MAX_URL]
        item = channels.find_item(g.user_id, **parse_item_url(typed))
        if item is None or item["type"] not in self.types:
            return self._show(row_id, typed, self.unknown), 400
        self.assign(g.user_id, row_id, item)
        flash(f"Added to the {self.noun}.", "success")
        return redirect(self.url("page", {"id": row_id}), code=303)
