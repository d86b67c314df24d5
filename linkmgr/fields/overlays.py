"""Messages of overlays that are not plain text: images and polls."""

from typing import Any

from marshmallow import ValidationError

from linkmgr.fields.urls import split_ascii

MAX_CHOICES = 10


def split_image(message: str) -> tuple[str, str]:
    """Return the URL of an image, which is the first line, and its caption."""
    url, _, caption = message.partition("\n")
    return url.strip(), caption.strip()


def choices(message: str) -> tuple[str, ...]:
    """Return the choices of a poll: the lines after the question, or Yes and No if there are none."""
    return _choice_lines(message)[:MAX_CHOICES] or ("Yes", "No")


def _choice_lines(message: str) -> tuple[str, ...]:
    # splitlines() also splits at other characters, such as form feeds.
    lines = [line.strip() for line in message.replace("\r", "\n").split("\n")]
    return tuple(dict.fromkeys([line for line in lines if line][1:]))


def check_message(overlay_type: str | None, message: str | None) -> None:
    """Raise an error if the type cannot show the message. The schema of an update may have only one of them."""
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
    return [name for name in ("choice", "name", "email", "message") if any(name in answer for answer in answers)]
