"""What comes in: the body, the paging, and the types of their members.

Each type has its rule once.  A message is the end of a sentence that begins with the member's name.
"""

import re
from datetime import datetime
from functools import cache
from typing import Any

from flask import request
from marshmallow import EXCLUDE, Schema, ValidationError, fields, pre_load, validate

from linkmgr.fields import strict_json
from linkmgr.fields.urls import normalize_target
from linkmgr.web import request as web_request
from linkmgr.web.errors import AppError

MAX_ID = 2**63 - 1
DEFAULT_LIMIT, MAX_LIMIT = 15, 1000
MAX_PAGE = 10**18 - 1  # so that neither PostgreSQL nor the JSON of a client overflows
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


# --- the body


def _parsed() -> dict[str, Any]:
    request = web_request.current()
    if (request.content_type or "").lower().startswith(_FORMS):
        raise AppError("not_json")
    return strict_json.parse(request.body())


def sentences(messages: dict[str, Any]) -> str:
    return "; ".join(
        f"{'' if member == '_schema' else member + ' '}{found}"
        for member, problems in messages.items()
        for found in (problems if isinstance(problems, list) else [sentences(problems)])
    )


def body(schema: type[Schema]) -> dict[str, Any]:
    """The members of the body that were sent and that the schema names."""
    return checked(schema, _parsed())


@cache
def _made(schema: type[Schema]) -> Schema:
    """One of each: making it copies all of its fields, which takes longer than to check a body."""
    return schema()


def checked(schema: type[Schema], members: dict[str, Any]) -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = _made(schema).load(members)
    except ValidationError as error:
        raise AppError("invalid", problems=sentences(dict(error.messages_dict))) from None
    return loaded


class Changes(Schema):
    """The body of an update: null means not sent, and "" empties an optional text."""

    class Meta:
        unknown = EXCLUDE

    @pre_load
    def drop_unsent(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {name: value for name, value in data.items() if value is not None}


class New(Schema):
    """The body of a create: null and "" mean not sent."""

    class Meta:
        unknown = EXCLUDE

    @pre_load
    def drop_unsent(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {name: value for name, value in data.items() if value is not None and value != ""}


# --- paging and the query


def paging() -> dict[str, int]:
    """The query's `limit`, at most 1000, and `page` as the keywords of `database.page`."""
    limit = _query_integer("limit", DEFAULT_LIMIT)
    return {"limit": min(limit, MAX_LIMIT), "number": page_number()}


def page_number() -> int:
    """The query's `page`, for lists whose pages have one length."""
    number = _query_integer("page", 1)
    if number > MAX_PAGE:
        raise AppError("invalid", problems=f"page must be at most {MAX_PAGE}")
    return number


def _query_once(name: str) -> str:
    values = request.args.getlist(name)
    if len(values) > 1:
        raise AppError("invalid", problems=f"{name} must stand in the query once")
    return values[0] if values else ""


def _query_integer(name: str, default: int) -> int:
    text = _query_once(name)
    if not text:
        return default
    if not re.fullmatch("[1-9][0-9]*", text, re.ASCII):
        raise AppError("invalid", problems=f"{name} must be a whole number from 1")
    return int(text[: len(str(MAX_PAGE)) + 1])  # enough digits to tell that it is too large


def query_text(name: str, longest: int = 255) -> str | None:
    text = _query_once(name)
    if len(text) > longest or not strict_json.storable(text):
        raise AppError("invalid", problems=f"{name} must be at most {longest} characters, without a NUL")
    return text or None


def query_choice(name: str, choices: tuple[str, ...]) -> str | None:
    text = query_text(name)
    if text is not None and text not in choices:
        raise AppError("invalid", problems=f"{name} must be one of {', '.join(choices)}")
    return text


# --- the types


class Text(fields.String):
    """One line of text, not blank.  `emptied`: "" is taken too, and empties the text."""

    default_error_messages = {"required": "is required", "invalid": "must be a string"}

    def __init__(self, longest: int = 255, *, emptied: bool = False, lines: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.longest, self.emptied, self.lines = longest, emptied, lines

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        if text == "" and self.emptied:
            return text
        return self.clean(text)

    def clean(self, text: str) -> str:
        if not text.strip():
            raise ValidationError("must not be empty")
        if len(text) > self.longest:
            raise ValidationError(f"must be at most {self.longest} characters")
        if _CONTROL.search(text.replace("\n", "").replace("\r", "").replace("\t", "") if self.lines else text):
            raise ValidationError("must not hold control characters")
        return text


class Matching(Text):
    """Text of a form; `described` ends the sentence "must be"."""

    def __init__(self, pattern: str, described: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pattern, self.described = re.compile(pattern, re.ASCII), described

    def clean(self, text: str) -> str:
        if not self.pattern.fullmatch(text):
            raise ValidationError(f"must be {self.described}")
        return text


class Choice(Text):
    def __init__(self, choices: tuple[str, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.choices = choices

    def clean(self, text: str) -> str:
        if text not in self.choices:
            raise ValidationError(f"must be one of {', '.join(self.choices)}")
        return text


class Color(Matching):
    """#rgb or #rrggbb."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("#(?:[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})", "a colour such as #f50 or #ff5500", **kwargs)


class Email(Text):
    def clean(self, text: str) -> str:
        return str(validate.Email(error="must be a valid e-mail address")(super().clean(text)))


class Password(Text):
    """5 to 1024 characters, any of them (specification, section 8)."""

    def clean(self, text: str) -> str:
        if not 5 <= len(text) <= 1024:  # noqa: PLR2004
            raise ValidationError("must be 5 to 1024 characters")
        return text


class Timestamp(Text):
    """YYYY-MM-DD HH:MM:SS, in UTC."""

    def clean(self, text: str) -> str:
        # strptime also takes "2030-1-1 1:2:3" and other digits: only its own writing of the time is the form.
        try:
            exact = datetime.strptime(text, "%Y-%m-%d %H:%M:%S").isoformat(" ") == text
        except ValueError:
            exact = False
        if not exact:
            raise ValidationError("must be a time such as 2030-12-31 23:59:59")
        return text + "+00"


class Boolean(fields.Field[bool]):
    default_error_messages = {"required": "is required", "invalid": "must be true or false"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid")
        return value


class Integer(fields.Field[int]):
    default_error_messages = {"required": "is required", "invalid": "must be an integer from {least} to {most}"}

    def __init__(self, least: int, most: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.least, self.most = least, most

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not self.least <= value <= self.most:
            raise self.make_error("invalid", least=self.least, most=self.most)
        return value


class Id(fields.Field[int]):
    """An id that a body names; one that no row can have is simply not found."""

    default_error_messages = {"required": "is required", "invalid": "must be an integer"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.make_error("invalid")
        return value if 0 < value <= MAX_ID else 0


class Target(Text):
    """Where a visitor is sent: an absolute http or https URL, in ASCII, that is not one of ours."""

    def clean(self, text: str) -> str:
        return normalize_target(text)
