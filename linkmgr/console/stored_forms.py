from abc import abstractmethod
from urllib.parse import unquote

from flask import flash, g, redirect, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.console import plan_use, queries
from linkmgr.console.forms import BOTH, PER_PAGE, Form
from linkmgr.console.plan_use import Usage
from linkmgr.core.database import tables, transaction
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields.query import page_number
from linkmgr.core.fields.resource import Stored
from linkmgr.public import interstitial


class FormWithDelete(Form):
    afterwards = "This cannot be undone."

    @abstractmethod
    def delete(self, user_id: int, row_id: int) -> None: ...

    def add_urls(self, path: str, new: str, edit: str, delete: str) -> None:
        self.path, name = path, path[1:]
        self.bp.add_url_rule(path, name, self.show_list)
        self.bp.add_url_rule(new, f"{name}_new", self.new_page, methods=BOTH)
        self.bp.add_url_rule(edit, f"{name}_edit", self.edit_page, methods=BOTH)
        self.bp.add_url_rule(delete, f"{name}_delete", self.delete_page, methods=BOTH)

    def say_deleted(self, _row_id: int) -> None:
        flash(f"{self.called} deleted.", "success")

    def question(self, row: Row) -> str:
        shown = row | {"shorturl": unquote(row["shorturl"])} if "shorturl" in row else row
        return f"{self.consequence.format_map(shown)} {self.afterwards}"

    def _ask(self, row_id: int, problem: str = "") -> str:
        """Ask whether to delete the row, for browsers that do not open the dialog."""
        return render_template(
            "console/delete.html", form=self, row=self.read(g.user_id, row_id), problem=problem
        )

    def delete_page(self, row_id: int) -> ResponseReturnValue:
        if request.method != "POST":
            return self._ask(row_id)
        if self.typed and request.form.get("typed", "").strip() != (
            name := self.read(g.user_id, row_id)[self.typed]
        ):
            return self._ask(row_id, f"Type {name} to delete this {self.noun}."), 400
        messages = self.refusal(lambda: self.delete(g.user_id, row_id))
        if messages:
            return self._ask(row_id, *messages.values()), 400
        self.say_deleted(row_id)
        return redirect(self.url(""), code=303)


class StoredForm(FormWithDelete):
    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        super().__init__(stored.resource, stored.words.noun)

    def read(self, user_id: int, row_id: int) -> Row:
        return self.stored.rows.read(user_id, row_id)

    def add(self, user_id: int, members: Row) -> Row:
        return self.stored.create(user_id, members)

    def change(self, user_id: int, row_id: int, members: Row) -> None:
        self.stored.change(user_id, row_id, members)

    def delete(self, user_id: int, row_id: int) -> None:
        self.stored.rows.delete(user_id, row_id)

    def show_list(self) -> str:
        page = self.stored.rows.index(g.user_id, limit=PER_PAGE, number=page_number(), after=None)
        return self.render_list(page._replace(rows=self.with_uses(page.rows)))

    def with_uses(self, rows: list[Row]) -> list[Row]:
        if not (self.used and rows):
            return rows
        states = queries.uses(g.user_id, [row["id"] for row in rows], path=self.stored.words.path)
        uses = {row["id"]: row for row in states}
        return [row | uses.get(row["id"], {}) for row in rows]

    @property
    def use(self) -> Usage | None:
        use = plan_use.use_of(g.account, self.stored.words.table)
        return use if use.limit is not None else None

    def preview_page(self, row_id: int = 0) -> Response:
        members = self.read(g.user_id, row_id) if row_id else self.from_form(request.values)
        return interstitial.preview(self.preview, members)

    def store(self, row_id: int, version: str | None, members: Row) -> None:
        def check() -> None:
            if tables.lock_version(g.user_id, self.stored.words.table, row_id) not in (version, None):
                raise AppError("changed_meanwhile")

        with transaction.lazily(check) as writes:
            self.change(g.user_id, row_id, members)
            writes.commit()
