"""The controls of forms. The type and the bounds of a field decide what a browser offers for it."""

from typing import Any, NamedTuple

from linkmgr.fields.base import Boolean, Choice, Color, Email, Integer, Password, Target, Text, Timestamp, Url
from linkmgr.fields.links import Expiry

_URL = {"inputmode": "url", "placeholder": "https://", "spellcheck": "false"}
_ONE_WORD = {"autocomplete": "off", "spellcheck": "false"}


class Control(NamedTuple):
    """`kind` is the type of an input, or textarea, select or checkbox."""

    label: str
    help: str
    kind: str
    attributes: dict[str, Any]
    options: dict[str, str]  # labels of a select, by value


def control(field: Any, label: str, about: str = "") -> Control:
    """Return the control of a field. The macro `control` of templates/console/controls.html draws it."""
    kind = "text"
    attributes: dict[str, Any] = {}
    match field:
        case Boolean():
            kind = "checkbox"
        case Integer():
            kind, attributes = "number", {"min": field.minimum, "max": field.maximum}
        case Timestamp() | Expiry():
            kind = "datetime-local"
        case Color(allow_empty=False):
            kind = "color"
        case Choice():
            labels = field.metadata.get("options") or {}
            options = {name: labels.get(name, name.capitalize()) for name in field.choices}
            return Control(label, about, "select", {}, options)
        case Email():
            kind, attributes = "email", {"maxlength": field.max_length, "autocomplete": "off"}
        case Password():
            kind, attributes = "password", {"maxlength": 1024, "autocomplete": "new-password"}
        case Url() | Target():
            attributes = {"maxlength": 2048, **_URL}
        case Text(multiline=True):
            kind, attributes = "textarea", {"maxlength": field.max_length, "rows": 3}
        case Text():
            attributes = {"maxlength": field.max_length, **_ONE_WORD}
    if getattr(field, "required", False):
        attributes["required"] = True
    return Control(label, about, kind, attributes, {})
