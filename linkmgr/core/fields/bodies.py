"""JSON bodies of requests, loaded by schemas."""

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any, ClassVar

from marshmallow import EXCLUDE, Schema, ValidationError, missing, post_load, pre_load
from werkzeug.exceptions import BadRequest

from linkmgr.core.errors import AppError
from linkmgr.core.fields import strict_json
from linkmgr.core.fields.problems import join_problems, problems_of
from linkmgr.core.fields.unknown import warn_unknown
from linkmgr.core.web import request as web_request

_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def parse() -> dict[str, Any]:
    """Return the JSON object in the body, whatever its content type: curl and others send the one
    of a form."""
    request = web_request.current()
    raw, is_form = request.get_data(), (request.content_type or "").lower().startswith(_FORMS)
    if is_form and not raw.strip():
        raise AppError("not_json")
    try:
        return strict_json.parse(raw)
    except strict_json.NotJson as error:
        if is_form:
            raise AppError("not_json") from None
        raise AppError("invalid", problems=str(error)) from None


def parse_if_any() -> dict[str, Any]:
    """Return the JSON object in the body of an operation that takes none, to which clients send
    anything."""
    with suppress(AppError, BadRequest):
        return parse()
    return {}


def changes_of(schema: type[Schema], read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Ignore an invalid member that is stored like that already: an alias may have become reserved
    since, or an overlay may have another type. `read` returns the stored record. Valid bodies do
    not need it."""
    sent = parse()
    try:
        return load(schema, sent)
    except AppError:
        stored: dict[str, Any] = {}
        with suppress(AppError):  # without a record, the error is the same
            stored = read()
        problems = _instance(schema).validate(sent)
        unchanged = {
            name
            for name in problems
            if name in sent and name in stored and _is_same(sent[name], stored[name])
        }
        return load(schema, {name: value for name, value in sent.items() if name not in unchanged})


def _is_same(sent: Any, stored: Any) -> bool:
    return type(sent) is type(stored) and bool(sent == stored)  # 1 is not true


@lru_cache(maxsize=256)
def _instance(schema: type[Schema], only: tuple[str, ...] | None = None) -> Schema:
    """Return the instance of a schema, or one of some of its members. Creating one copies all
    fields, which takes ten times as long as loading a body."""
    return schema(only=only)


def members_of(schema: type[Schema]) -> Collection[str]:
    return _instance(schema).load_fields


@cache
def _always_loaded(schema: type[Schema]) -> frozenset[str]:
    fields = _instance(schema).load_fields.items()
    return frozenset(name for name, field in fields if field.required or field.load_default is not missing)


def _instance_for(schema: type[Schema], members: dict[str, Any]) -> Schema:
    """Return an instance without the members that were not sent, because marshmallow visits every
    field. Its order is the declared one, as is that of the problems."""
    always = _always_loaded(schema)
    names = [name for name in _instance(schema).load_fields if name in members or name in always]
    return _instance(schema, tuple(names))


def load(schema: type[Schema], members: dict[str, Any]) -> dict[str, Any]:
    defined = _instance(schema).fields
    try:
        loaded: dict[str, Any] = _instance_for(schema, members).load(members)
    except ValidationError as error:
        raise problems_of(dict(error.messages_dict), defined, members) from None
    if not members.keys() <= defined.keys():
        warn_unknown(schema, defined, members)
    return loaded


def problems(schema: type[Schema], members: dict[str, Any]) -> dict[str, str]:
    messages = _instance(schema).validate(members)
    return {name: join_problems({"_schema": texts}) for name, texts in messages.items()}


_UNSENT = (None, "")  # in a create


class New(Schema):
    """Body of a create. null and "" mean not sent."""

    class Meta:
        unknown = EXCLUDE

    @pre_load
    def drop_unsent(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {name: value for name, value in data.items() if value not in _UNSENT}


class Body(New):
    """Body of a create or an update. When loaded, it has all its members: those that were not sent
    are None, or the "" of a text that a create may leave empty. In an update, "" clears an optional
    text, and null removes a member that has `removed`."""

    is_update: ClassVar[bool] = False
    absent: ClassVar[dict[str, Any]] = {}  # the members of a body that sends none
    # Members that reads show, so that a client may send them back. True if they cannot be changed.
    readable: ClassVar[dict[str, bool]] = {}

    @pre_load
    def drop_unsent(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        if not self.is_update:
            return {name: value for name, value in data.items() if value not in _UNSENT}
        nulls = [name for name, value in data.items() if value is None and name in self.fields]
        removed = {name: self.fields[name].metadata.get("removed") for name in nulls}
        for name in [name for name, value in removed.items() if value is None]:
            web_request.warn(f"The member '{name}' is null, which means not sent, so it was not changed.")
        return {name: value for name, value in (data | removed).items() if value is not None}

    @post_load
    def complete(self, loaded: dict[str, Any], **_: Any) -> dict[str, Any]:
        return self.absent | loaded
