"""Members are declared once, as fields of a marshmallow schema. Whatever needs to know them asks here.

A subclass of `Resource` declares all members in the order of its records. Fields with `dump_only` are shown only, those
with `load_only` are sent only. Parsing is in the fields; what else there is to say of a member is in `member()`.
"""

from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol, Unpack

from marshmallow import fields, missing

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


def prose(module: str, **values: Any) -> str:
    """Return the text beside a module: what the documents say of a resource. Names in braces are values."""
    return Path(module).with_suffix(".md").read_text().strip().format(**values)


def with_statistics(row: Row) -> Row:
    details = {name: value for name, value in row.items() if name not in HIDDEN}
    return {"data": row["statistics"], "details": details}


def row_id() -> Id:
    return member(Id(dump_only=True), "", 17)


def created(shown: str = "record list export") -> Timestamp:
    return member(Timestamp(dump_only=True), "", "2026-11-21 09:30:00", shown=shown)


class Resource(New):
    """The members of a word, and what is said of it."""

    noun: ClassVar[str]  # in sentences
    called: ClassVar[str] = ""  # in responses, if not the noun
    about: ClassVar[str]
    path: ClassVar[str]  # path segment of one record
    plural: ClassVar[str]  # path segment of the list
    table: ClassVar[str]  # of its rows
    file: ClassVar[str] = ""  # of its exports, without the extension, if it is not `plural`
    also_shown: ClassVar[tuple[str, ...]] = ()  # in responses to writes; a client may send them back
    drops_defaults: ClassVar[bool] = False  # True if members with their default values are dropped from a create
    create_extras: ClassVar[tuple[str, ...]] = ("id",)  # beside the record, in the response to a create
    sent_on: ClassVar[str] = ""  # "create" or "update" in the schemas of bodies

    def __init__(self, only: tuple[str, ...] | None = None) -> None:
        declared: dict[str, Any] = self._declared_fields
        is_update = self.sent_on == "update"
        left_out = [
            name
            for name, field in declared.items()
            if self.sent_on and (field.dump_only or (is_update and field.metadata["fixed"]))
        ]
        super().__init__(only=only, exclude=left_out)

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        if self.sent_on == "update":
            field_obj.required, field_obj.load_default = field_obj.metadata["needed"], missing
        elif getattr(field_obj, "allow_empty", False) and field_obj.load_default is missing:
            field_obj.load_default = ""

    @classmethod
    def subject(cls) -> str:
        return cls.called or cls.noun[0].upper() + cls.noun[1:]

    @classmethod
    def file_name(cls) -> str:
        return cls.file or cls.plural

    @classmethod
    @cache
    def creates(cls) -> type[New]:
        return type(f"{cls.__name__}Create", (cls,), {"sent_on": "create"})

    @classmethod
    @cache
    def updates(cls) -> type[New]:
        return type(f"{cls.__name__}Update", (cls,), {"sent_on": "update", "unsent": (None,)})

    @classmethod
    @cache
    def defaults(cls) -> Row:
        fields = cls.creates()().fields.items()
        loaded = {name: field.load_default for name, field in fields if field.load_default is not missing}
        stored = {name: field.metadata["default"] for name, field in fields if field.metadata["default"]}
        return stored | {name: value for name, value in loaded.items() if not callable(value)}

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

    @classmethod
    @cache
    def _unsent(cls) -> Row:
        return dict.fromkeys(cls.creates()().fields)

    @classmethod
    def complete(cls, members: Row) -> Row:
        return cls._unsent() | members


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
        return cls.record(cls.rows.add(user_id, cls.complete(members)))

    @classmethod
    def change(cls, user_id: int, row_id: int, members: Row) -> Row:
        return cls.record(cls.rows.update(user_id, row_id, cls.complete(members)))

    @classmethod
    def delete(cls, user_id: int, row_id: int, /) -> None:
        cls.rows.delete(user_id, row_id)

    @classmethod
    def batch(cls, user_id: int, after: int) -> list[Row]:
        names = cls.shown("export")
        return [{name: row[name] for name in names} for row in cls.rows.batch(user_id, after)]
