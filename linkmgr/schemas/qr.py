from typing import Any, ClassVar

from marshmallow import fields

from linkmgr.core.database import transaction
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields import colors
from linkmgr.core.fields import qr as qr_data
from linkmgr.core.fields.base import Choice, Matching, Shown, Text
from linkmgr.core.fields.member import JsonSchema, member
from linkmgr.core.fields.resource import DETAIL, EXPORT, Resource, Stored, Words, created, row_id, updated
from linkmgr.core.fields.urls import MAX_URL
from linkmgr.core.web.request import warn
from linkmgr.qr import logos
from linkmgr.repository import qr

WHITE, BLACK = "rgb(255,255,255)", "rgb(0,0,0)"
_PART = " *(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9]) *"
_COUNT = {"type": "integer", "minimum": 0}


class Rgb(Matching):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(rf"rgb\({_PART},{_PART},{_PART}\)", "a color such as rgb(255,128,0)", **kwargs)

    def clean(self, text: str) -> str:
        return super().clean(text).replace(" ", "")


class Data(fields.Raw):
    """Any value. `code_to_row` and `change_code` validate it, because its form depends on the
    type."""

    default_error_messages = {"required": "is required"}
    nested = tuple(qr_data.OBJECTS.values())
    json: ClassVar[JsonSchema] = {
        "description": "A string for text, link and phone; an object for vcard, email, sms and "
        "wifi, or an array of its members. For email and sms also the recipient alone.",
    }
    json_shown: ClassVar[JsonSchema] = {}


class QrCode(Resource):
    id = row_id()
    code = member(Shown({"type": "string"}), "", "bcd234fgh567", shown=EXPORT)
    link = member(
        Shown({"type": "string", "pattern": "^https?://"}), "", "https://go.example.org/qr/bcd234fgh567"
    )
    name = member(
        Text(),
        "Its name in lists. Without it, the name is derived from the data, and follows it.",
        "Poster",
        label="Name",
    )
    type = member(
        Choice(qr_data.TYPES, required=True),
        "The type of the data. It cannot be changed.",
        "text",
        label="Type",
        fixed=True,
        shown=DETAIL,
    )
    data = member(
        Data(required=True), "The content of the code.", "Hello", label="Content", needed=True, shown=DETAIL
    )
    background = member(
        Rgb(load_default=WHITE),
        "The color behind the code. A contrast of less than 3 to 1, or a code that is lighter than "
        "it, causes a warning that names better colors. Cameras cannot scan a contrast of less "
        f"than {colors.MIN_SCANNED} to 1, which is an error.",
        WHITE,
        label="Background",
        shown=DETAIL,
    )
    foreground = member(
        Rgb(load_default=BLACK), "The color of the code.", "rgb(0,0,128)", label="Code", shown=DETAIL
    )
    logo = member(
        Text(MAX_URL, allow_empty=True),
        "An image for the center: a URL that is fetched once, or the name of a file in the folder "
        "`logos/` of the service. PNG or JPEG, at most 1 MiB and 4 megapixels. A URL that cannot "
        "be fetched causes a warning, and the code is stored without it. An update with the same "
        "`logo` keeps the stored image. A logo that was uploaded in the console has a name such as "
        "`upload:0f3a`.",
        "https://example.com/logo.png",
        label="Logo",
        shown=DETAIL,
    )
    date = created()
    updated = updated()
    scans = member(Shown(_COUNT), "", 12)
    uniquescans = member(Shown(_COUNT), "", 9, shown=EXPORT)
    channel = member(
        Shown({"type": "array", "items": {"type": "integer"}}), "The ids of its channels.", [17], shown=EXPORT
    )


def create_code(user_id: int, members: Row, image: bytes | None = None) -> Row:
    """Store a QR code. `image` is the logo if it was uploaded; `logo` is then its name."""
    return qr.add(user_id, code_to_row(members, image) | {"code": qr_data.new_code()})


def change_code(user_id: int, qr_id: int, members: Row, image: bytes | None = None) -> Row:
    """If a color was sent, check both while the row is locked, and undo the change if they are too
    similar."""
    stored = qr.read(user_id, qr_id)
    if members["logo"] == stored["logo"]:
        members["logo"] = None  # keep the image instead of fetching it again
    row = _prepare(stored["type"], members, image)
    old, new = (qr_data.default_name(stored["type"], code["data"]) for code in (stored, row))
    with transaction.in_transaction():
        code = qr.update(user_id, qr_id, row | {"old_name": old, "new_name": new})
        if members["foreground"] or members["background"]:
            _check_colors(code)
    return code


def code_to_row(new: Row, image: bytes | AppError | None = None) -> Row:
    """Return the arguments of `qr.add` for the body of a create. `image` is the logo, or why it was
    not loaded."""
    row = _prepare(new["type"], new | {"logo": new["logo"] or None}, image)
    _check_colors(row)
    return row | {"name": row["name"] or qr_data.default_name(new["type"], row["data"])}


def _prepare(code_type: str, members: Row, image: bytes | AppError | None) -> Row:
    data = qr_data.normalize(code_type, members["data"])
    row = members | {"data": data, "own_alias": qr_data.own_alias(code_type, data)}
    return row if (source := row.pop("logo")) is None else row | _logo(source, image)


def _logo(source: str, image: bytes | AppError | None) -> Row:
    try:
        if isinstance(image, AppError):
            raise image
        return {"logo": image or logos.load(source), "logo_source": source}
    except AppError as error:
        if error.code not in logos.UNREACHABLE:
            raise
        warn(f"The logo was ignored. {error.message}")
        return {}


def _check_colors(code: Row) -> None:
    pair = code["foreground"], code["background"]
    too_close = AppError("colours_too_close", **colors.scan_advice(*pair))
    if colors.contrast(*pair) < colors.MIN_SCANNED:
        raise too_close
    if colors.contrast(*pair) < colors.MIN_CONTRAST:
        warn(too_close.message)
    elif colors.is_inverted(*pair):
        change = colors.scan_advice(*pair)["change"]
        warn(f"Many readers cannot scan a light code on a dark background. Change {change}.")


QR_CODES = Stored(
    QrCode,
    Words("QR code", path="qr", plural="qr", table="kept_qrs"),
    rows=qr,
    create=create_code,
    change=change_code,
)
