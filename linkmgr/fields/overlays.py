"""What the message of an overlay holds besides text: the address of a picture, or a poll."""

from marshmallow import ValidationError

from linkmgr.fields.urls import split_ascii

MAX_CHOICES = 10


def picture(message: str) -> tuple[str, str]:
    """Of an image: the address, which is the first line, and the text below it."""
    address, _, caption = message.partition("\n")
    return address.strip(), caption.strip()


def choices(message: str) -> tuple[str, ...]:
    """Of a poll: the lines after the first, which is the question; to a question alone, yes and no."""
    return _written(message)[:MAX_CHOICES] or ("Yes", "No")


def _written(message: str) -> tuple[str, ...]:
    # Not splitlines: it also splits at characters that stand inside of a line.
    lines = [line.strip() for line in message.replace("\r", "\n").split("\n")]
    return tuple(dict.fromkeys([line for line in lines if line][1:]))


def check(kind: str | None, message: str | None) -> None:
    """Refuses a message that its type cannot show, as far as both are known."""
    if kind == "poll" and len(_written(message or "")) > MAX_CHOICES:
        raise ValidationError(f"must hold a question and at most {MAX_CHOICES} choices, each on its line", "message")
    if kind == "image" and message:
        try:
            split_ascii(picture(message)[0])
        except ValidationError:
            raise ValidationError("must begin with the URL of a picture, on a line of its own", "message") from None
