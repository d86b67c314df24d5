"""The members of a link's body: each type is read here once, and becomes what schema.sql keeps of it.

Elements of arrays that are not of their form are ignored, as clients expect.  A target that is named but may not be
visited is refused: nobody should believe that it works.
"""

import math
import re
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

from flask import current_app
from marshmallow import ValidationError, fields

from linkmgr.fields.base import MAX_ID, Matching, Text
from linkmgr.fields.urls import MAX_URL, is_own_host, normalize_target, split_ascii, split_http, strict_host
from linkmgr.settings import settings

NO_ID = -1  # what no row has, for an id that none can have
MAX_NAME = 100

# --- aliases

# Without vowels, the digits and letters that stand for them, and what is taken for another character; and never
# three letters in a row: such an alias cannot spell anything.
_LETTERS, _DIGITS = "bcdfghkmnpqrtvwxzBCDFGHKMNPQRTVWXZ", "256789"
_PATTERN = (_LETTERS, _LETTERS, _DIGITS, _LETTERS, _LETTERS, _DIGITS, _LETTERS, _LETTERS)

# What visitors and machines look for under the name of a service, beside the words that it has addresses for.
_WELL_KNOWN = re.compile(
    "about|admin|administrator|assets|blog|contact|dashboard|docs|favicon|help|home|index|legal|logout|mail|openapi|"
    "privacy|register|robots|root|security|settings|signin|signup|sitemap|status|support|terms|user|users|www"
)


def new_alias() -> str:
    """35 random bits."""
    number, alias = secrets.randbelow(math.prod(map(len, _PATTERN))), ""
    for characters in _PATTERN:
        number, place = divmod(number, len(characters))
        alias += characters[place]
    return alias


def _is_reserved(alias: str) -> bool:
    word = alias.lower()
    routes = current_app.url_map.iter_rules()
    return bool(_WELL_KNOWN.fullmatch(word)) or any(route.rule.split("/", 2)[1].lower() == word for route in routes)


class Alias(Matching):
    """A chosen name of a link or a bio page."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("[A-Za-z0-9_-]{3,50}", "3 to 50 letters, digits, '_' or '-'", **kwargs)

    def clean(self, text: str) -> str:
        if _is_reserved(super().clean(text)):
            raise ValidationError("must not be a word that the service uses itself")
        return text


# --- ids


def _id(value: Any) -> int | None:
    """An integer or a numeric string; None: neither."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,20}", value, re.ASCII):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_ID else NO_ID


class IdOrString(fields.Field[int]):
    """An id that may be a numeric string; 0 and "" are none."""

    default_error_messages = {"invalid": "must be an id"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        found = 0 if value == "" else _id(value)
        if found is None:
            raise self.make_error("invalid")
        return found


class Ids(fields.Field[list[int]]):
    default_error_messages = {"invalid": "must be an array of ids"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[int]:
        if not isinstance(value, list):
            raise self.make_error("invalid")
        return list(dict.fromkeys(found for each in value if (found := _id(each)) is not None))


class LinkType(fields.Field[dict[str, Any]]):
    """direct, frame, splash, a splash page's id or overlay-<id>, as the three columns that keep it."""

    default_error_messages = {"invalid": "must be direct, frame, splash, the id of a splash page, or overlay-<id>"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, Any]:
        kept = {"type": value or "direct", "splash_id": None, "overlay_id": None}
        if value in ("", "direct", "frame", "splash"):
            return kept
        if (splash_id := _id(value)) is not None:
            return kept | {"type": "splash", "splash_id": splash_id}
        if isinstance(value, str) and value.startswith("overlay-"):
            overlay_id = _id(value.removeprefix("overlay-"))
            if overlay_id is not None:
                return kept | {"type": "overlay", "overlay_id": overlay_id}
        raise self.make_error("invalid")


# --- targets


def _link(url: str) -> str:
    try:
        return normalize_target(url)
    except ValidationError as error:
        raise ValidationError(f"holds a link that {error.messages[0]}") from None


def _name(value: Any) -> str:
    """As what is compared with the visitor's; "": it is none."""
    name = value.strip().lower() if isinstance(value, str) else ""
    return name if len(name) <= MAX_NAME else ""


class Targets(fields.Field[dict[str, str]]):
    """An array of {<named>, link}, as an object from the lower-case name to the URL."""

    default_error_messages = {"invalid": "must be an array of objects with {named} and link"}

    def __init__(self, named: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.named = named

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, str]:
        if not isinstance(value, list):
            raise self.make_error("invalid", named=self.named)
        found = {}
        for each in value:
            match each:
                case {"link": str(url), **others} if url and (name := _name(others.get(self.named))):
                    found[name] = _link(url)
        return found


class Parameters(fields.Field[list[list[str]]]):
    """An array of {name, value}, as an array of [name, value]."""

    default_error_messages = {
        "invalid": "must be an array of objects with name and value",
        "long": f"must make a query of at most {MAX_URL} characters",
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[list[str]]:
        if not isinstance(value, list):
            raise self.make_error("invalid")
        found = []
        for each in value:
            match each:
                case {"name": str(name), "value": str() | int() | float() as said} if (
                    name.strip() and len(name) <= MAX_NAME and not isinstance(said, bool)
                ):
                    found.append([name.strip(), str(said)])
        if len(urlencode([(name, said) for name, said in found])) > MAX_URL:
            raise self.make_error("long")
        return found


class DeepLink(fields.Field[dict[str, Any]]):
    """{auto, apple, google}: whether to open the app (false: do not), and its address in each store.  What PHP makes of
    an object without members, an empty array, is taken too."""

    default_error_messages = {
        "invalid": "must be an object with auto, apple and google",
        "auto": "must have true or false as auto",
        "store": "must have a URL as {store}",
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, Any]:
        if value == []:
            return {}
        if not isinstance(value, dict):
            raise self.make_error("invalid")
        auto = value.get("auto")
        if not (auto is None or isinstance(auto, bool)):
            raise self.make_error("auto")
        stores = {store: link for store in ("apple", "google") if (link := self._store(value, store))}
        return stores | ({"auto": auto} if auto is True or (auto is False and stores) else {})

    def _store(self, value: dict[str, Any], store: str) -> str | None:
        url = value.get(store)
        if not (url is None or isinstance(url, str)):
            raise self.make_error("store", store=store)
        return _link(url) if url else None


class Image(Text):
    """The address of a picture, which may also be ours."""

    def clean(self, text: str) -> str:
        return split_ascii(text).geturl()


def hosts_of(loaded: dict[str, Any]) -> list[str]:
    """Where the link may lead, for the refusal of branded domains."""
    stores = [url for store, url in loaded.get("deeplink", {}).items() if store != "auto"]
    named = [url for kind in ("geotarget", "devicetarget", "languagetarget") for url in loaded.get(kind, {}).values()]
    urls = [*named, *stores, *([loaded["url"]] if "url" in loaded else [])]
    return list({urlsplit(url).hostname or "" for url in urls})


# --- the rest


class OwnDomain(Text):
    """The host of one of the user's domains, which may stand with its scheme; "" is our own."""

    def clean(self, text: str) -> str:
        if text.rstrip("/") in (settings().base_url, urlsplit(settings().base_url).netloc):
            return ""
        host = split_http(text if "://" in text else f"https://{text}").hostname or ""
        name = host if is_own_host(host) else strict_host(host)
        return "" if is_own_host(name) else name


class LinkPassword(Text):
    def clean(self, text: str) -> str:
        if not 1 <= len(text) <= 1024:  # noqa: PLR2004
            raise ValidationError("must be 1 to 1024 characters")
        return text


class Expiry(Text):
    """A time in any of three writings, without a zone in UTC; a date alone lasts until its end.  One that has
    passed is taken: the link is over."""

    FORM = re.compile(
        r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII | re.IGNORECASE
    )

    def clean(self, text: str) -> str:
        if not self.FORM.fullmatch(text):
            raise ValidationError("must be a time such as 2030-12-31 23:59:59")
        try:
            time = datetime.fromisoformat(text.upper())
            if len(text) == len("2030-12-31"):
                time += timedelta(days=1, seconds=-1)
            in_utc = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValidationError("must be a time such as 2030-12-31 23:59:59") from None
        return in_utc.replace(microsecond=0).isoformat(" ")
