from contextlib import suppress
from typing import Any

from marshmallow import ValidationError, validates_schema

from linkmgr.core.database import transaction
from linkmgr.core.database.statements import Row
from linkmgr.core.fields import colors
from linkmgr.core.fields.base import Choice, Color, Target, Text
from linkmgr.core.fields.bodies import Body
from linkmgr.core.fields.member import member
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.resource import DETAIL, Resource, Stored, Words, created, row_id, updated
from linkmgr.core.fields.urls import split_ascii
from linkmgr.repository import overlay

TYPES = ("contact", "poll", "message", "newsletter", "image", "coupon")
POSITIONS = ("top", "bottom", "left", "right", "center")
MAX_CHOICES = 10  # of a poll
_PAIRS = (("type", "message"), ("color", "background"))


class Message(Text):
    """Text whose first line is stored in ASCII if it is a URL."""

    def clean(self, text: str) -> str:
        first, newline, rest = text.partition("\n")
        with suppress(ValidationError):
            text = split_ascii(first.strip()).geturl() + newline + rest
        return super().clean(text)


class OverlayBody(Body):
    @validates_schema
    def check_message(self, data: dict[str, Any], **_: Any) -> None:
        _check_type(data.get("type"), data.get("message"))


class Overlay(Resource):
    body = OverlayBody

    id = row_id()
    type = member(Choice(TYPES, required=True), "The type of the overlay.", "message", label="Type")
    name = member(Text(required=True), "Its name in lists. Visitors do not see it.", "Sale", label="Name")
    message = member(
        Message(2000, multiline=True, allow_empty=True),
        "The text. Its first line is the heading, or what the type needs.",
        "Everything must go.",
        label="Text",
        shown=DETAIL,
    )
    link = member(
        Target(allow_empty=True),
        "The URL that the button or the image opens.",
        "https://example.com/sale",
        label="Link",
        shown=DETAIL,
    )
    label = member(
        Text(allow_empty=True),
        "The text of the button, the code of a `coupon`, or the alternative text of an `image`.",
        "Have a look",
        label="Label",
        shown=DETAIL,
    )
    position = member(
        Choice(POSITIONS, load_default="bottom"),
        "Where the overlay is shown.",
        "top",
        label="Position",
        shown=DETAIL,
    )
    color = member(
        Color(load_default="#ffffff"), "The color of the text.", "#ffffff", label="Text color", shown=DETAIL
    )
    background = member(
        Color(load_default="#1d4ed8"),
        "The color behind the text. The contrast must be at least 3 to 1; the error names colors that do.",
        "#1d4ed8",
        label="Background color",
        shown=DETAIL,
    )
    date = created()
    updated = updated()


def create_overlay(user_id: int, members: Row) -> Row:
    _check_colors(members)
    return overlay.add(user_id, members)


def change_overlay(user_id: int, overlay_id: int, members: Row) -> Row:
    """If only a type or only a message was sent, or only one of the colors, check it with the
    stored other one while the row is locked, and undo the change if they do not suit each other."""
    sent = {name for name, value in members.items() if value is not None}
    if all((one in sent) == (other in sent) for one, other in _PAIRS):
        if "color" in sent:
            _check_colors(members)
        return overlay.update(user_id, overlay_id, members)
    before = overlay.read(user_id, overlay_id)
    with transaction.in_transaction():
        after = overlay.update(user_id, overlay_id, members)
        _check_message(before, after)
        if {"color", "background"} & sent:
            _check_colors(after)
    return after


def _check_colors(members: Row) -> None:
    colors.check_text(members["color"], members["background"])


def _check_message(before: Row, after: Row) -> None:
    """Check the message for the type. What was stored already remains valid."""
    if (after["type"], after["message"]) == (before["type"], before["message"]):
        return
    try:
        _check_type(after["type"], after["message"])
    except ValidationError as error:
        raise invalid(f"message {error.messages[0]}") from None


OVERLAYS = Stored(
    Overlay,
    Words("CTA overlay", path="overlay", plural="overlay", table="overlays", file="overlays"),
    rows=overlay,
    create=create_overlay,
    change=change_overlay,
)


# --- messages that are not plain text: images and polls


def split_image(message: str) -> tuple[str, str]:
    url, _, caption = message.partition("\n")
    return url.strip(), caption.strip()


def list_choices(message: str) -> tuple[str, ...]:
    return _choice_lines(message)[:MAX_CHOICES] or ("Yes", "No")


def _choice_lines(message: str) -> tuple[str, ...]:
    # splitlines() also splits at other characters, such as form feeds.
    lines = [line.strip() for line in message.replace("\r", "\n").split("\n")]
    return tuple(dict.fromkeys([line for line in lines if line][1:]))


def _check_type(overlay_type: str | None, message: str | None) -> None:
    """Raise an error if the type cannot show the message. The schema of an update may have only one
    of them."""
    if overlay_type == "poll" and len(_choice_lines(message or "")) > MAX_CHOICES:
        raise ValidationError(
            f"must have a question and at most {MAX_CHOICES} choices, each on its own line", "message"
        )
    if overlay_type == "image" and message:
        try:
            split_ascii(split_image(message)[0])
        except ValidationError:
            raise ValidationError("must begin with the URL of an image on its own line", "message") from None


def answer_columns(answers: list[dict[str, Any]]) -> list[str]:
    """Return the members of answers. They differ if the overlay had another type before."""
    return [
        name for name in ("choice", "name", "email", "message") if any(name in answer for answer in answers)
    ]
