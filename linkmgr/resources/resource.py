"""Members are declared once, as fields of a marshmallow schema. Whatever needs to know them asks here.

A subclass of `Resource` declares all members in the order of its records. Fields with `dump_only` are shown only, those
with `load_only` are sent only. Parsing is in the fields; what else there is to say of a member is in `member()`.
"""

from copy import copy
from functools import cache
from typing import Any, ClassVar, Protocol, Unpack

from marshmallow import Schema, fields, missing, post_load

from linkmgr.db.statements import Page, Paging, Row
from linkmgr.fields.base import Id, Timestamp
from linkmgr.fields.bodies import New, load
from linkmgr.fields.member import member

# The places that show a member, if it is not shown everywhere
READ, DETAIL, EXPORT = "record list", "record export", "export"
HIDDEN = ("version", "statistics", "is_new")  # of a row, which a record does not have


class Rows(Protocol):
    """A module of linkmgr/repository. Its rows have at least the members of the resource, and `version`."""

    def index(self, user_id: int, **paging: Unpack[Paging]) -> Page: ...
    def read(self, user_id: int, row_id: int, /) -> Row: ...
    def add(self, user_id: int, members: Row, /) -> Row: ...
    def update(self, user_id: int, row_id: int, members: Row, /) -> Row: ...
    def delete(self, user_id: int, row_id: int, /) -> None: ...
    def batch(self, user_id: int, after: int, /) -> list[Row]: ...


def with_statistics(row: Row) -> Row:
    details = {name: value for name, value in row.items() if name not in HIDDEN}
    return {"data": row["statistics"], "details": details}


def row_id() -> Id:
    return member(Id(dump_only=True), "", 17)


def created(shown: str = "record list export") -> Timestamp:
    return member(Timestamp(dump_only=True), "", "2026-11-21 09:30:00", shown=shown)


class Body(New):
    """Body of a create or an update. When loaded, it has all its members: those that were not sent are None, or the ""
    of a text that a create may leave empty."""

    is_update: ClassVar[bool] = False
    absent: ClassVar[Row] = {}  # the members of a body that sends none

    @post_load
    def complete(self, loaded: Row, **_: Any) -> Row:
        return self.absent | loaded


class Resource(Schema):
    """The members of a word, and what is said of it."""

    body: ClassVar[type[Body]] = Body  # of its creates and updates

    noun: ClassVar[str]  # in sentences
    called: ClassVar[str] = ""  # in responses, if not the noun
    path: ClassVar[str]  # path segment of one record
    plural: ClassVar[str]  # path segment of the list
    table: ClassVar[str]  # of its rows
    file: ClassVar[str] = ""  # of its exports, without the extension, if it is not `plural`
    # In responses to writes, so that a client may send them back. True if an update cannot change them.
    also_shown: ClassVar[dict[str, bool]] = {}
    create_extras: ClassVar[tuple[str, ...]] = ("id",)  # beside the record, in the response to a create

    @classmethod
    def subject(cls) -> str:
        return cls.called or cls.noun[0].upper() + cls.noun[1:]

    @classmethod
    def file_name(cls) -> str:
        return cls.file or cls.plural

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
            name: copy(field) for name, field in declared.items() if not (field.dump_only or field.metadata["fixed"])
        }
        for field in sent.values():
            field.required, field.load_default = field.metadata["needed"], missing
        return cls._body_of("Update", sent, absent=dict.fromkeys(sent), is_update=True, unsent=(None,))

    @classmethod
    def _body_of(cls, suffix: str, sent: dict[str, Any], **attributes: Any) -> type[Body]:
        shown = {name: field.metadata for name, field in cls._declared_fields.items() if field.metadata["shown"]}
        readable = {name: bool(marks["fixed"]) for name, marks in shown.items()} | cls.also_shown
        return type(f"{cls.__name__}{suffix}", (cls.body,), sent | {"readable": readable} | attributes)

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
    def shown(cls, place: str = "record") -> tuple[str, ...]:
        return tuple(name for name, field in cls().fields.items() if place in field.metadata["shown"])

    @classmethod
    def record(cls, row: Row) -> Row:
        return {name: row[name] for name in (*cls.shown(), "version")}

    @classmethod
    def as_read(cls, row: Row) -> Row:
        """Return the members of the response to a single read, which creates and updates have too."""
        return {"data": {name: row[name] for name in cls.shown()}}

    @classmethod
    def extra_members(cls, row: Row, *, is_new: bool) -> Row:
        return {name: row[name] for name in cls.create_extras} if is_new else {}


class Stored(Resource):
    """A resource with rows of its own, which the API, the console, exports and imports read and write in one way."""

    rows: Rows

    @classmethod
    def index(cls, user_id: int, **paging: Unpack[Paging]) -> Page:
        page = cls.rows.index(user_id, **paging)
        names = cls.shown("list")
        page.rows[:] = [{name: row[name] for name in names} for row in page.rows]
        return page

    @classmethod
    def read(cls, user_id: int, row_id: int, /) -> Row:
        return cls.record(cls.rows.read(user_id, row_id))

    @classmethod
    def show(cls, user_id: int, row_id: int, /) -> Row:
        """Return the record for a single read, which may lag."""
        return cls.read(user_id, row_id)

    @classmethod
    def add(cls, user_id: int, body: Row) -> int:
        return int(cls.create(user_id, load(cls.creates(), body))["id"])

    @classmethod
    def create(cls, user_id: int, members: Row) -> Row:
        return cls.record(cls.rows.add(user_id, members))

    @classmethod
    def change(cls, user_id: int, row_id: int, members: Row) -> Row:
        return cls.record(cls.rows.update(user_id, row_id, members))

    @classmethod
    def delete(cls, user_id: int, row_id: int, /) -> None:
        cls.rows.delete(user_id, row_id)

    @classmethod
    def batch(cls, user_id: int, after: int) -> list[Row]:
        names = cls.shown("export")
        return [{name: row[name] for name in names} for row in cls.rows.batch(user_id, after)]
