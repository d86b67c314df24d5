"""The controls of forms. The type and the bounds of a field decide what a browser offers for it,
how its value is read from a form, a stored value as it would be typed, and whether it was changed.

Lists are sorted, so that the order of checkboxes is no difference. Members with `parts` are rows of
these controls.
"""

import re
from typing import Any, NamedTuple

import orjson
from werkzeug.datastructures import MultiDict

from linkmgr.console import signed_in
from linkmgr.core.database.statements import Row
from linkmgr.core.fields import base
from linkmgr.core.fields.colors import to_hex
from linkmgr.core.fields.external import Metadata
from linkmgr.core.fields.links import DeepLink, IdOrString, Ids, LinkType, Start
from linkmgr.features.scoped_keys.schema import Networks
from linkmgr.schemas.domains import DomainUrl
from linkmgr.schemas.plans import Feature

FormData = MultiDict[str, str]

_BARE = re.compile(r"[\w-]+(?:\.[\w-]+)+(?:[:/?#]\S*)?")  # a URL without its scheme
_URL = {"inputmode": "url", "placeholder": "https://", "spellcheck": "false"}
_ONE_WORD = {"autocomplete": "off", "spellcheck": "false"}


class Control(NamedTuple):
    """`widget` is the type of an input, or textarea, select or checkbox."""

    label: str
    help: str
    widget: str
    attributes: dict[str, Any]
    options: dict[str, str]  # labels of a select, by value


def control(field: Any) -> Control:
    widget, label, about = "text", field.metadata["label"], field.metadata["description"].replace("`", "")
    attributes: dict[str, Any] = {}
    options: dict[str, str] = field.metadata["options"] or {}
    match field:
        case base.Boolean():
            widget = "checkbox"
        case base.Integer():
            widget, attributes = "number", {"min": field.minimum, "max": field.maximum}
        case base.Timestamp() | Start():
            widget = "datetime-local"
        case base.Color(allow_empty=False):
            widget = "color"
        case base.Choice():
            widget, options = "select", {name: options.get(name, name.capitalize()) for name in field.choices}
        case base.Email():
            widget, attributes = "email", {"maxlength": field.max_length, "autocomplete": "off"}
        case base.Password():
            widget, attributes = "password", {"maxlength": 1024, "autocomplete": "new-password"}
        case base.Url() | base.Target() | DomainUrl():
            attributes = {"maxlength": 2048, **_URL}
        case Metadata():
            widget, attributes = "textarea", {"rows": 3, "spellcheck": "false"}
        case base.Text(multiline=True):
            widget, attributes = "textarea", {"maxlength": field.max_length, "rows": 3}
        case base.Text():
            attributes = {"maxlength": field.max_length, **_ONE_WORD}
    if getattr(field, "required", False):
        attributes["required"] = True
    return Control(label, about, widget, attributes, options)


def lines(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\0", "").strip("\n")  # no text of PostgreSQL has a NUL character


def with_scheme(text: str) -> str:
    text = text.strip()
    return f"https://{text}" if _BARE.fullmatch(text) else text


def to_number(text: str) -> int | str:
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else text


def _objects(form: FormData, name: str, parts: tuple[str, ...]) -> list[Row]:
    def clean(part: str, text: str) -> str | int:
        if part == "weight":
            return to_number(text)
        if part in ("title", "value"):
            return text
        return with_scheme(text) if part in ("link", "url") else text.strip()

    columns = [map(lines, form.getlist(f"{name}.{part}")) for part in parts]
    texts = [row for row in zip(*columns, strict=False) if "".join(row).strip()]
    return [{part: clean(part, text) for part, text in zip(parts, row, strict=True)} for row in texts]


def _object(text: str) -> Any:
    """Return what a JSON text says, or other text as it is, for its message."""
    try:
        return orjson.loads(text) if text.strip() else {}
    except orjson.JSONDecodeError:
        return text


def json_text(value: Any) -> Any:
    return (orjson.dumps(value).decode() if value else "") if isinstance(value, dict) else value


def read(field: Any, name: str, form: FormData, default: Any = "") -> Any:
    """Return the value of a member in a form, of the type that the API takes, or the default in an
    empty form. Other text in place of a number is kept for its message."""
    text = lines(form.get(name, str(default)))
    value: Any = text
    match field:
        case base.Boolean():
            value = name in form
        case _ if default and not form and not isinstance(default, str | int):
            value = default
        case Networks():
            value = text.replace(",", " ").split()
        case base.Array() | Ids():
            value = sorted(map(to_number, {*form.getlist(name)}), key=str)
        case DeepLink():
            urls = {store: with_scheme(form.get(f"{name}.{store}", "")) for store in ("apple", "google")}
            stores = {store: url for store, url in urls.items() if url}
            value = stores | ({"auto": True} if form.get(f"{name}.auto") else {})
        case Feature():
            count = {"count": form.get(f"{name}.count", "").strip() or "0"} if field.has_count else {}
            value = {"enabled": "1" if form.get(f"{name}.enabled") else "0"} | count
        case base.Url() | base.Target() | DomainUrl():
            value = with_scheme(text)
        case base.Timestamp() | Start():
            value = signed_in.from_control(text)
        case base.Integer() | base.Id():
            value = to_number(text)
        case Metadata():
            value = _object(text)
        case _ if hasattr(field, "parts"):
            value = _objects(form, name, field.parts)
    return value


def as_typed(field: Any, value: Any) -> Any:
    """Return a stored value as `read` returns it from a form that was left as it was."""
    match field:
        case Networks():
            pass
        case base.Array() | Ids():
            value = sorted(value, key=str)
        case DeepLink():
            value = {name: part for name, part in value.items() if part}
        case base.Color() if value:
            value = to_hex(value)
        case IdOrString() | LinkType():
            value = str(value or "")
        case base.Integer():
            value = value or 0
    return "" if value is None else value


def kept(typed: Any, stored: Any, *, one_line: bool = False) -> Any:
    """Return the stored value if its control was left as it was, or else what was typed. The values
    of a list have controls of one line, where browsers remove line breaks."""
    match typed, stored:
        case dict(), dict():
            return {name: kept(value, stored.get(name), one_line=one_line) for name, value in typed.items()}
        case list(), list():
            pairs = zip(typed, stored, strict=False)
            return [kept(*pair, one_line=True) for pair in pairs] + typed[len(stored) :]
        case str(), str():
            text = lines(stored)
            return stored if typed == (text.replace("\n", "") if one_line else text) else typed
    return typed
