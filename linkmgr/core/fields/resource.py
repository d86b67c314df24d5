"""Members are declared once, as fields of a marshmallow schema. Whatever needs to know them asks
here.

A subclass of `Resource` declares all members in the order of its records. Fields with `dump_only`
are shown only, those with `load_only` are sent only. Parsing is in the fields; what else there is
to say of a member is in `member()`.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Protocol, Unpack

from marshmallow import Schema, fields, missing

from linkmgr.core.database.paging import Page, Paging
from linkmgr.core.database.statements import Row
from linkmgr.core.fields.base import Id, Timestamp
from linkmgr.core.fields.bodies import Body, load
from linkmgr.core.fields.member import member
from linkmgr.core.web.responses import record

# Responses that show a member, if not all do
READ, DETAIL, EXPORT = "record list", "record export", "export"


def row_id() -> Id:
    return member(Id(dump_only=True), "", 17)


def created(shown: str = "record list export") -> Timestamp:
    return member(Timestamp(dump_only=True), "", "2026-11-21 09:30:00", shown=shown)


def updated(shown: str = "record list export") -> Timestamp:
    return member(
        Timestamp(dump_only=True),
        "The time of the last change of the row.",
        "2026-11-21 09:30:00",
        shown=shown,
    )


class Resource(Schema):
    body: ClassVar[type[Body]] = Body  # of its creates and updates
    component: ClassVar[str] = (
        ""  # the beginning of their names in the document, if it is not that of the class
    )
    # In responses to writes, so that a client may send them back. True if an update cannot change
    # them.
    also_shown: ClassVar[dict[str, bool]] = {}

    @classmethod
    @cache
    def creates(cls) -> type[Body]:
        sent = {name: copy(field) for name, field in cls._declared_fields.items() if not field.dump_only}
        absent = {name: "" if getattr(field, "allow_empty", False) else None for name, field in sent.items()}
        return cls._body_of("Create", sent, absent=absent)

    @classmethod
    @cache
    def updates(cls) -> type[Body]:
        declared: dict[str, Any] = cls._declared_fields
        sent = {
            name: copy(field)
            for name, field in declared.items()
            if not (field.dump_only or field.metadata["fixed"])
        }
        for field in sent.values():
            field.required, field.load_default = field.metadata["needed"], missing
        return cls._body_of("Update", sent, absent=dict.fromkeys(sent), is_update=True)

    @classmethod
    def _body_of(cls, suffix: str, sent: dict[str, Any], **attributes: Any) -> type[Body]:
        shown = {
            name: field.metadata for name, field in cls._declared_fields.items() if field.metadata["shown"]
        }
        readable = {name: bool(marks["fixed"]) for name, marks in shown.items()} | cls.also_shown
        return type(
            f"{cls.component or cls.__name__}{suffix}",
            (cls.body,),
            sent | {"readable": readable} | attributes,
        )

    @classmethod
    @cache
    def defaults(cls) -> Row:
        body = cls.creates()
        defaults = {name: value for name, value in body.absent.items() if value is not None}
        for name, field in body().fields.items():
            value = field.metadata["default"] or None if field.load_default is missing else field.load_default
            if value is not None and not callable(value):
                defaults[name] = value
        return defaults

    @classmethod
    @cache
    def controls(cls) -> dict[str, fields.Field[Any]]:
        return {name: field for name, field in cls.creates()().fields.items() if field.metadata["label"]}

    @classmethod
    def labels(cls) -> dict[str, str]:
        return {name: str(field.metadata["label"]) for name, field in cls.controls().items()}

    @classmethod
    @cache
    def shown(cls, shown_in: str = "record") -> tuple[str, ...]:
        return tuple(name for name, field in cls().fields.items() if shown_in in field.metadata["shown"])


@dataclass(frozen=True)
class Words:
    noun: str  # in sentences
    path: str  # path segment of one record
    plural: str  # path segment of the list
    table: str  # of its rows
    file: str = ""  # of its exports, without the extension, if it is not `plural`

    @property
    def file_name(self) -> str:
        return self.file or self.plural


class Rows(Protocol):
    """A module of linkmgr/repository. Its rows have at least the members of the resource, and
    `version`."""

    def index(self, user_id: int, **paging: Unpack[Paging]) -> Page: ...
    def read(self, user_id: int, row_id: int, /) -> Row: ...
    def delete(self, user_id: int, row_id: int, /) -> None: ...
    def batch(self, user_id: int, after: int, /) -> list[Row]: ...


@dataclass(frozen=True)
class Stored:
    """A resource with rows of its own, for callers that treat all of them alike: forms, exports,
    imports and events."""

    resource: type[Resource]
    words: Words
    rows: Rows
    create: Callable[[int, Row], Row]  # of a user, with a loaded body
    change: Callable[[int, int, Row], Row]  # of a user and the id of a row, with a loaded body

    def add(self, user_id: int, body: Row) -> int:
        return int(self.create(user_id, load(self.resource.creates(), body))["id"])

    def record(self, user_id: int, row_id: int) -> Row:
        return record(self.resource, self.rows.read(user_id, row_id))

    def exported(self, user_id: int, after: int) -> list[Row]:
        return [record(self.resource, row, "export") for row in self.rows.batch(user_id, after)]
