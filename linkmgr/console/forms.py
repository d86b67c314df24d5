"""The pages that create, change and delete a row: the same for all resources.

The fields of a form are the members of the bodies of the API, and their messages are those of the
API. A form and a stored row become the same record: the body that the API takes, with all members.
Their difference is what an update sends. A control that was left unchanged is no difference,
although browsers change line breaks and a local time can stand for two UTC times. The field
`version` stands for the header If-Match.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlencode

from flask import Blueprint, g, redirect, render_template, request
from flask.typing import ResponseReturnValue
from marshmallow import Schema

from linkmgr.console import controls, frame, signed_in
from linkmgr.console.controls import FormData
from linkmgr.console.plan_use import Usage
from linkmgr.core import errors
from linkmgr.core.database.paging import Page
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields.base import Timestamp
from linkmgr.core.fields.bodies import load, problems
from linkmgr.core.fields.links import Start
from linkmgr.core.fields.query import query_id
from linkmgr.core.fields.resource import Resource
from linkmgr.core.fields.urls import MAX_URL

PER_PAGE = 25  # rows of a list
_REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.SERVICE_UNAVAILABLE)
GENERAL = ""  # the name of a message that is about no field
PAGE, EDIT, LIST = "page", "edit", ""  # what shows a stored row
BOTH = ("GET", "POST")  # the methods of pages with a form
AGAIN = "again"  # the name of buttons that show the form again, for example with a preview


class Form(ABC):
    """The list, the form and the page of a resource, at the URLs that its module states. Each
    resource is a subclass, which states its sentences and overrides the methods that differ."""

    bp: Blueprint = frame.bp
    path: str  # of the list, below that of the blueprint. All URLs of the form begin with it.
    list_template, template = "console/list.html", "console/form.html"
    after = EDIT  # shows a stored row: its PAGE, its form, or the LIST
    noun = ""  # that of the resource by default
    consequence = ""  # what a delete does to others; `{name}` is that member of the row
    typed = ""  # the member of the row that must be typed before a delete
    unique: tuple[str, ...] = ()  # members that a duplicate leaves out
    example = ""  # what the resource is for, shown while there is none
    used = ""  # the noun of what uses a row
    can_duplicate = True
    preview = ""  # the page that is shown beside the form, see pages/interstitial.py

    @abstractmethod
    def show_list(self) -> str: ...

    @abstractmethod
    def read(self, user_id: int, row_id: int) -> Row: ...

    @abstractmethod
    def add(self, user_id: int, members: Row) -> Row: ...

    @abstractmethod
    def change(self, user_id: int, row_id: int, members: Row) -> None: ...

    def values_of_new(self) -> Row:
        return self.resource.defaults()

    def check(self, _members: Row) -> dict[str, str]:
        """Return messages by member, besides those of the API."""
        return {}

    def choices(self) -> Row:
        return {}

    def options(self) -> dict[str, dict[str, str]]:
        return {}

    def show_new(self, row: Row) -> ResponseReturnValue:
        """Respond to a create. What is shown only once is in this response, so that no URL of the
        browser's history shows it."""
        return redirect(self.url("page", row), code=303)

    def __init__(self, resource: type[Resource], noun: str) -> None:
        self.resource = resource
        self.noun = self.noun or noun
        self.defaults = self.values_of_new()
        self.called = f"{self.noun[0].upper()}{self.noun[1:]}"  # as it begins a sentence
        self.heading = f"{self.called}s"
        self.controls = {name: controls.control(field) for name, field in resource.controls().items()}
        self.fixed = resource.creates()().fields.keys() - resource.updates()().fields.keys()  # not changed

    def new_page(self) -> ResponseReturnValue:
        if request.method == "POST":
            return self._add()
        record = self.from_form(request.args)
        if original := int(query_id("from") or 0):
            copied = self.from_row(self.read(g.user_id, original))
            record |= {name: value for name, value in copied.items() if name not in self.unique}
        return self._render(record)

    def edit_page(self, row_id: int) -> ResponseReturnValue:
        if request.method == "POST":
            return self._save(row_id)
        row = self.read(g.user_id, row_id)
        return self._render(self.from_row(row), row=row)

    def from_form(self, form: FormData) -> Row:
        return {
            name: controls.read(field, name, form, self.defaults.get(name, ""))
            for name, field in self.resource.controls().items()
        }

    def from_row(self, row: Row) -> Row:
        return {
            name: controls.as_typed(field, row.get(name)) for name, field in self.resource.controls().items()
        }

    def changes(self, record: Row, stored: Row) -> Row:
        fields = self.resource.updates()().fields
        changes = {name: record[name] for name in fields if record[name] != stored[name]}
        changes |= {
            name: "" for name in fields if fields[name].load_only and f"{name}.remove" in request.form
        }
        return changes and {name: record[name] for name in fields if fields[name].required} | changes

    def render_list(self, page: Page, **values: Any) -> str:
        return render_template(self.list_template, page=page, form=self, **(values | self.choices()))

    def url(self, action: str, row: Row | None = None, **query: Any) -> str:
        """Return the URL of an action, of what shows a row for "page", or of the list for "". The
        URLs of rows carry the query of the list as `back`, so that they lead back to the same
        page of it."""
        action = self.after if action == PAGE else action
        path = of_list = f"{self.bp.url_prefix}{self.path}"
        is_list = request.path == of_list
        back = request.query_string.decode(errors="replace") if is_list else request.args.get("back", "")
        back = back[:MAX_URL]
        if row and action:
            path, query = f"{path}/{row['id']}", query | ({"back": back} if back else {})
        elif not (action or is_list):
            query = dict(parse_qsl(back))
        path += f"/{action}" if action and action != PAGE else ""
        return f"{path}?{urlencode(query)}" if query else path

    def title(self, row: Row) -> str:
        return str(
            row.get("title") or row.get("name") or row.get("host") or row.get("alias") or row["username"]
        )

    @property
    def use(self) -> Usage | None:
        return None

    def _render(
        self,
        record: Row,
        *,
        row: Row | None = None,
        messages: dict[str, str] | None = None,
        stored: Row | None = None,
    ) -> str:
        g.has_frame = bool(self.preview)
        return render_template(
            self.template,
            form=self,
            row=row,
            record=record,
            problems=messages or {},
            stored=stored,
            options=self.options(),
            **self.choices(),
        )

    def _add(self) -> ResponseReturnValue:
        added: Row = {}
        record = self.from_form(request.form)
        if AGAIN in request.form:
            return self._render(record)
        schema = self.resource.creates()
        messages = self._submit(schema, record, lambda members: added.update(self.add(g.user_id, members)))
        if messages:
            return self._render(record, messages=messages), 400
        is_new = added.get("is_new", True)  # a link of a URL alone may be one that there was
        frame.flash_with_warnings(
            f"{self.called} created." if is_new else f"You already have this {self.noun}.",
            self.resource.labels(),
        )
        return self.show_new(added)

    def _save(self, row_id: int) -> ResponseReturnValue:
        row = self.read(g.user_id, row_id)
        stored, version = self.from_row(row), request.form.get("version")
        record = self._typed(stored)
        if AGAIN in request.form:
            return self._render(record, row=row | {"version": version})
        changes = self.changes(record, stored)
        try:
            messages = {}
            if version != row.get("version"):
                raise AppError("changed_meanwhile")
            if changes:
                schema = self.resource.updates()
                messages = self._submit(schema, changes, lambda members: self.store(row_id, version, members))
        except AppError as error:
            if error.code != "changed_meanwhile":
                raise
            row = self.read(g.user_id, row_id)
            return self._render(record, row=row, stored=self.from_row(row)), 412
        if messages:
            return self._render(record, row=row, messages=messages), 400
        frame.flash_with_warnings("Changes saved.", self.resource.labels())
        return redirect(self.url("page", row), code=303)

    def _typed(self, stored: Row) -> Row:
        record = {
            name: controls.kept(value, stored[name]) for name, value in self.from_form(request.form).items()
        }
        for name, member in self.resource.creates()().fields.items():
            if isinstance(member, Timestamp | Start) and record[name] == signed_in.displayed_time(
                stored[name]
            ):
                record[name] = stored[name]
        return record

    def store(self, row_id: int, _version: str | None, members: Row) -> None:
        self.change(g.user_id, row_id, members)

    def _submit(self, schema: type[Schema], members: Row, store: Callable[[Row], Any]) -> dict[str, str]:
        refused = problems(schema, members).items()
        messages = {name: f"{self.controls[name].label} {problem}." for name, problem in refused}
        messages |= self.check(members)
        if messages:
            return messages
        return self.refusal(lambda: store(load(schema, members)))

    def refusal(self, write: Callable[[], Any]) -> dict[str, str]:
        error = errors.refusal(write)
        if error and error.status not in _REFUSED:
            raise error
        if error is None:
            return {}
        labels = self.resource.labels()
        names = re.match("([a-z0-9_]+(?: and [a-z0-9_]+)*)?", error.message)[0]  # type: ignore[index]
        worded = (
            " and ".join(labels.get(name, name) for name in names.split(" and "))
            + error.message[len(names) :]
        )
        problems = error.problems(self.controls)
        return {self.control_of(problems[0]["field"]) if problems else GENERAL: worded}

    def control_of(self, field: str) -> str:
        return field if field in self.controls else GENERAL
