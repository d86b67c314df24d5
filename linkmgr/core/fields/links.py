"""Field types of a link's body, converted to what the database stores.

Malformed elements of arrays are ignored, as clients expect. A target that is not allowed is an
error, so that its owner does not believe that it works.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit

from marshmallow import Schema, ValidationError, fields, missing

from linkmgr.core.fields.base import MAX_ID, Target, Text, Timestamp
from linkmgr.core.fields.member import JsonSchema, url_json
from linkmgr.core.fields.times import parse_time, pattern
from linkmgr.core.fields.unknown import warn_unknown
from linkmgr.core.fields.urls import MAX_URL, is_own_host, normalize_target, split_http, strict_host
from linkmgr.core.settings import settings
from linkmgr.core.web.request import MAX_WARNINGS, can_warn, default_domain, warn

NO_ID = -1  # replaces an id that no row can have
MAX_NAME = 100
# The document has one type for each member: generated clients handle unions badly.
_ID: JsonSchema = {
    "type": "integer",
    "minimum": 0,
    "maximum": MAX_ID,
    "description": "An id, also as a string.",
}

# --- ids


def parse_id(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch("[0-9]{1,20}", value, re.ASCII):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_ID else NO_ID


class IdOrString(fields.Field[int]):
    """An id, also as a numeric string. 0 and "" mean none."""

    json: ClassVar[JsonSchema] = _ID | {"description": "An id, also as a string. 0 means none."}
    json_shown: ClassVar[JsonSchema] = {"type": "integer", "minimum": 1}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        row_id = 0 if value == "" else parse_id(value)
        if row_id is None:
            raise ValidationError("must be an id such as 17")
        return row_id


class Ids(fields.Field[list[int]]):
    json: ClassVar[JsonSchema] = {"type": "array", "items": _ID}
    json_shown: ClassVar[JsonSchema] = {"type": "array", "items": {"type": "integer", "minimum": 1}}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[int]:
        if not isinstance(value, list):
            raise ValidationError("must be an array of ids such as [17, 18]")
        ids = [parse_id(item) for item in value]
        if None in ids:
            warn(f"{attr}: an element that is not an id was ignored.")
        return sorted({row_id for row_id in ids if row_id is not None})


class IdOrIds(Ids):
    """One id or an array of ids. 0, "" and an array without valid ids mean that none was sent, but
    [] means none."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        ids = value if isinstance(value, list) else [] if value == "" else [parse_id(value)]
        if None in ids:
            raise ValidationError("must be an id such as 17, or an array of ids such as [17, 18]")
        valid = [row_id for row_id in super()._deserialize(ids, attr, data, **kwargs) if row_id]
        return valid if valid or value == [] else missing


class LinkType(fields.Field[dict[str, Any]]):
    """direct, frame, splash, the id of a splash page, or overlay-<id>, as the three columns that
    store it."""

    DIRECT: ClassVar[dict[str, Any]] = {"type": "direct", "splash_id": None, "overlay_id": None}
    json: ClassVar[JsonSchema] = {
        "type": "string",
        "pattern": "^(?:direct|frame|splash|(?:overlay-)?[0-9]{1,20})?$",
        "description": "An id also as an integer.",
    }
    json_shown: ClassVar[JsonSchema] = {
        "type": "string",
        "pattern": "^(?:direct|frame|splash|(?:overlay-)?[0-9]+)$",
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, Any]:
        columns = self.DIRECT | {"type": value or "direct"}
        if value in ("", "direct", "frame", "splash"):
            return columns
        if (splash_id := parse_id(value)) is not None:
            return columns | {"type": "splash", "splash_id": splash_id}
        if isinstance(value, str) and value.startswith("overlay-"):
            overlay_id = parse_id(value.removeprefix("overlay-"))
            if overlay_id is not None:
                return columns | {"type": "overlay", "overlay_id": overlay_id}
        raise ValidationError("must be direct, frame, splash, the id of a splash page, or overlay-<id>")


# --- targets


def _array(about: dict[str, JsonSchema]) -> JsonSchema:
    return {"type": "array", "items": {"type": "object", "properties": about, "required": list(about)}}


def _name(example: str, **about: str) -> JsonSchema:
    return {"type": "string", "minLength": 1, "maxLength": MAX_NAME, "examples": [example], **about}


def _normalize_link(url: str) -> str:
    try:
        return normalize_target(url)
    except ValidationError as error:
        raise ValidationError(f"contains an invalid link: it {error.messages[0]}") from None


def _normalize_label(value: Any) -> str:
    label = value.strip().lower() if isinstance(value, str) else ""
    return label if len(label) <= MAX_NAME else ""


class Targets(fields.Field[dict[str, str]]):
    """An array of {<selector>, link}, as an object that maps lower-case labels to URLs."""

    def __init__(self, selector: str, problem: Callable[[str], str | None], about: str, example: str) -> None:
        """`problem` returns the reason why a label matches no visitor, or None."""
        super().__init__()
        self.selector, self.problem = selector, problem
        self.parts = (selector, "link")
        link = Target.json | {"examples": [f"https://example.com/{example.lower()}"]}
        self.json = _array(
            {selector: _name(example, description=f"{about} Case does not matter."), "link": link}
        )

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, str]:
        if not isinstance(value, list):
            raise ValidationError(f"must be an array of objects with {self.selector} and link")
        targets = {}
        for item in value:
            match item:
                case {"link": str(url), **others} if url and (
                    label := _normalize_label(others.get(self.selector))
                ):
                    targets[label] = _normalize_link(url)
                case _:
                    warn(f"{attr}: an element without {self.selector} and link was ignored.")
        for label in islice(targets, MAX_WARNINGS):
            if can_warn() and (problem := self.problem(label)):
                warn(f"{attr}: '{label}' {problem}")
        return targets


class Parameters(fields.Field[list[list[str]]]):
    """An array of {name, value}, as an array of [name, value]."""

    parts = ("name", "value")
    _VALUE: ClassVar[JsonSchema] = {
        "type": "string",
        "description": "A number becomes text.",
        "examples": ["newsletter"],
    }
    json: ClassVar[JsonSchema] = _array({"name": _name("utm_source"), "value": _VALUE})

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[list[str]]:
        if not isinstance(value, list):
            raise ValidationError("must be an array of objects with name and value")
        pairs = []
        for item in value:
            match item:
                case {"name": str(name), "value": str() | int() | float() as text} if (
                    name.strip() and len(name) <= MAX_NAME and not isinstance(text, bool)
                ):
                    pairs.append([name.strip(), str(text)])
                case _:
                    warn(f"{attr}: an element without name and value was ignored.")
        if len(urlencode([(name, text) for name, text in pairs])) > MAX_URL:
            raise ValidationError(f"must make a query string of at most {MAX_URL} characters")
        return pairs


class DeepLink(fields.Field[dict[str, Any]]):
    """{auto, apple, google}: a switch, and the URL of the app in each store.

    An empty array is an empty object, because PHP encodes one like that.
    """

    json: ClassVar[JsonSchema] = {
        "type": "object",
        "properties": {
            "auto": {
                "type": "boolean",
                "description": "false keeps the URLs without using them.",
                "examples": [True],
            },
            "apple": url_json("The app in the App Store, for iPhone and iPad.")
            | {"examples": ["https://apps.apple.com/app/id1"]},
            "google": url_json("The app in Google Play, for Android.")
            | {"examples": ["https://play.google.com/store"]},
        },
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, Any]:
        if value == []:
            return {}
        if not isinstance(value, dict):
            raise ValidationError("must be an object with auto, apple and google")
        auto = value.get("auto")
        if not (auto is None or isinstance(auto, bool)):
            raise ValidationError("must be an object whose auto is true or false")
        warn_unknown(Schema, ("auto", "apple", "google"), value, f"{attr}.")
        stores = {store: link for store in ("apple", "google") if (link := self._store(value, store))}
        return stores | ({"auto": auto} if auto is True or (auto is False and stores) else {})

    def _store(self, value: dict[str, Any], store: str) -> str | None:
        url = value.get(store)
        if not (url is None or isinstance(url, str)):
            raise ValidationError(f"must be an object whose {store} is a URL")
        return _normalize_link(url) if url else None


# --- other members


class OwnDomain(Text):
    """The host of a branded domain, with or without its scheme. "" is the host of this service."""

    json: ClassVar[JsonSchema] = {
        "type": "string",
        "maxLength": MAX_URL,
        "description": "One of your branded domains, with or without its scheme.",
    }
    json_shown: ClassVar[JsonSchema] = {"type": "string", "pattern": "^https?://"}

    def clean(self, text: str) -> str:
        if text.rstrip("/") in (settings().base_url, urlsplit(settings().base_url).netloc):
            return ""
        host = split_http(text if "://" in text else f"https://{text}").hostname or ""
        name = host if is_own_host(host) else strict_host(host)
        return "" if is_own_host(name) else name


class LinkDomain(OwnDomain):
    """The same, and `default` is the default domain of the account that calls the API."""

    def clean(self, text: str) -> str:
        return super().clean((default_domain() or settings().base_url) if text == "default" else text)


class Start(Text):
    """A time in any form of `times`."""

    end_of_day = False
    json_shown = Timestamp.json

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        return super()._deserialize(value, attr, data, **kwargs) or None

    @property
    def json(self) -> JsonSchema:
        part = "end" if self.end_of_day else "beginning"
        about = f"A date alone means the {part} of that day."
        return {"type": "string", "pattern": f"^(?:{pattern()})$", "description": about}

    def clean(self, text: str) -> str:
        with suppress(ValueError, OverflowError):
            return parse_time(text, end_of_day=self.end_of_day).replace(microsecond=0).isoformat(" ")
        raise ValidationError("must be a time such as 2030-12-31 23:59:59")


class Expiry(Start):
    """A time in the past is allowed and ends the link."""

    end_of_day = True

    def clean(self, text: str) -> str:
        time = super().clean(text)
        if datetime.fromisoformat(time) < datetime.now(UTC):
            warn("The member 'expiry' is in the past, so the link has expired.")
        return time
