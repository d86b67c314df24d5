"""QR codes: the list, the designer, and the page of one code."""

import base64
import binascii
import hashlib
import re
from contextlib import suppress
from typing import Any

from flask import Response, g, render_template, request

from linkmgr.api import qr as api
from linkmgr.db.statements import Row
from linkmgr.fields import colors
from linkmgr.fields import qr as qr_data
from linkmgr.fields.base import page_number, problems
from linkmgr.pages import qr as qr_page
from linkmgr.pages.console import forms, periods
from linkmgr.pages.console.forms import Form, FormData, lines
from linkmgr.pages.console.frame import bp
from linkmgr.qr import image as qr_image
from linkmgr.qr import logos
from linkmgr.repository import overviews, qr, visit_list
from linkmgr.settings import settings
from linkmgr.web.errors import AppError

PER_PAGE = 15
MAX_LOGO = (
    32 << 10
)  # bytes of an upload: the form has it twice when it is shown again, and the limit of a body is 64 KiB
_LATEST = 10
UPLOAD = "upload:"  # begins the names of uploaded logos, which neither a file nor a URL can have
TYPES = {"link": "Link", "text": "Text", "vcard": "Contact", "email": "E-mail", "phone": "Phone", "sms": "SMS",
         "wifi": "Wi-Fi"}  # fmt: skip
# By type: the members of the data with their labels. Types that are a text have one member with their own name.
DATA = {
    "link": {"link": "Target"},
    "text": {"text": "Text"},
    "phone": {"phone": "Phone number"},
    "vcard": {"fname": "First name", "lname": "Last name", "org": "Organization", "phone": "Phone", "cell": "Mobile",
              "fax": "Fax", "email": "E-mail", "site": "Web site", "street": "Street", "city": "City",
              "state": "State", "zip": "Postal code", "country": "Country"},
    "email": {"email": "Recipient", "subject": "Subject", "body": "Message"},
    "sms": {"phone": "Phone number", "message": "Message"},
    "wifi": {"ssid": "Network", "encryption": "Security", "password": "Password"},
}  # fmt: skip
LABELS = {"type": "Type", "data": "Content", "name": "Name", "foreground": "Code", "background": "Background",
          "logo": "Logo"}  # fmt: skip
FIELDS = {"colours_too_close": "foreground", "short_link_unknown": "data.link.link", "link_branded": "data.link.link",
          "logo_unusable": "logo", "logo_missing": "logo"} | dict.fromkeys(
    ("fetch_refused", "fetch_unresolved", "fetch_unreachable", "fetch_timed_out", "fetch_too_large", "fetch_status"),
    "logo",
)  # fmt: skip


@bp.get("/qrs")
def qrs() -> str:
    """Show one page of the list. Statements: the list with its total, and data and scans of its codes."""
    page = qr.index(g.user_id, limit=PER_PAGE, number=page_number(), after=None)
    days, ids = periods.spark_days(), [row["id"] for row in page.rows]
    codes = {row["id"]: row for row in overviews.of_codes(g.user_id, ids, since=days[0])} if ids else {}
    for row in page.rows:
        code = codes.get(row["id"], {"type": "text", "data": "", "days": {}})  # deleted since
        row |= {"type": code["type"], "content": qr_data.default_name(code["type"], code["data"]), "path": _path(row)}
        periods.add_spark(row, days, code["days"])
    return render_template("console/qrs.html", page=page, types=TYPES)


@bp.get("/qrs/<id:row_id>")
def qr_code(row_id: int) -> str:
    """Show a code. Statements: the code, its numbers, and its latest scans."""
    row = qr.read_current(g.user_id, row_id)
    visits = visit_list.index(g.user_id, row_id, what="QR code", limit=_LATEST, after=None, bots=[False])
    return render_template(
        "console/qr.html",
        row=row,
        path=_path(row),
        content=qr_data.default_name(row["type"], row["data"]),
        types=TYPES,
        formats=qr_image.FORMATS,
        sizes=(qr_image.MIN_SIZE, qr_image.MAX_SIZE),
        visits=visits.rows,
        numbers_of=periods.numbers(target_id=row_id, noun="scan"),
    )


@bp.get("/qrs/<id:row_id>/image")
def qr_download(row_id: int) -> Response:
    code = _path(qr.read(g.user_id, row_id)).rsplit("/", 1)[1]
    response = qr_page.image(code)
    response.headers["Content-Disposition"] = f'attachment; filename="{code}.{qr_page.requested_format()}"'
    return response


def _path(row: Row) -> str:
    """Return the path of the image, so that the console shows it from its own host."""
    return str(row["link"]).removeprefix(settings().base_url)


# --- the form


def _from_form(form: FormData) -> Row:
    kind = form.get("type") or "link"
    members = DATA.get(kind, {})
    return {
        "type": kind,
        "data": {member: lines(form.get(f"data.{kind}.{member}", "")) for member in members},
        "name": lines(form.get("name", "")),
        "background": _rgb(form.get("background") or api.WHITE),
        "foreground": _rgb(form.get("foreground") or api.BLACK),
        "logo": _logo(form),
    }


def _rgb(color: str) -> str:
    is_hex = re.fullmatch("#[0-9A-Fa-f]{6}", color)
    return f"rgb({','.join(map(str, colors.parts_of(color)))})" if is_hex else lines(color)


def _hex(color: str) -> str:
    """Return the color as inputs have it, or "" if it is none."""
    with suppress(ValueError):
        return f"#{bytes(colors.parts_of(color)).hex()}"
    return ""


def _logo(form: FormData) -> str:
    """Return the name of the logo. The content of an uploaded one is `g.logo`; a form that is shown again has it."""
    file = request.files.get("logo.file")
    try:
        g.logo = file.read() if file else base64.b64decode(form.get("logo.data", ""), validate=True)
    except (binascii.Error, ValueError):
        g.logo = b""
    if form.get("logo.remove"):
        g.logo = b""
        return ""
    return f"{UPLOAD}{hashlib.sha256(g.logo).hexdigest()[:16]}" if g.logo else lines(form.get("logo", "")).strip()


def _from_row(row: Row) -> Row:
    data = row["data"] if isinstance(row["data"], dict) else {row["type"]: row["data"]}
    return {name: row[name] for name in LABELS} | {"data": {member: lines(text) for member, text in data.items()}}


def _changes(record: Row, stored: Row) -> Row:
    """Return the members that differ. The API needs the data with any of them."""
    changes = forms.differing(record, stored)
    return changes and changes | {"type": stored["type"], "data": record["data"]}


def _check(members: Row) -> dict[str, str]:
    kind = members["type"]
    if kind not in DATA:
        return {}
    found = qr_data.data_problems(kind, members["data"])
    messages = {
        f"data.{kind}.{member or kind}": f"{DATA[kind][member or kind]} {_in_words(kind, text)}."
        for member, text in found.items()
    }
    if len(_uploaded()) > MAX_LOGO:
        messages["logo"] = f"Logo must be at most {MAX_LOGO >> 10} KiB. Choose a smaller image, or enter its URL."
    return messages


def _in_words(kind: str, problem: str) -> str:
    """Replace the members that a message of the API names by their labels."""
    text = re.sub(r"data\.(\w+)", lambda match: DATA[kind][match[1]].lower(), problem)
    return text.replace("is nopass", "is None")


def _uploaded() -> bytes:
    return bytes(g.get("logo", b""))


def _image() -> bytes | None:
    return logos.reencode(_uploaded()) if _uploaded() else None


def _preview(record: Row, row: Row | None) -> Row:
    """Return the image of what was typed as data, and the contrast of its colors."""
    wrong = problems(api.NewQr, record) | _check(record)
    pair = [record["foreground"], record["background"]]
    if {"foreground", "background"} & wrong.keys():
        return {"image": "", "contrast": 0, "logo": ""}
    front, back = map(colors.parts_of, pair)
    code = _path(row).rsplit("/", 1)[1] if row else "x" * qr_data.CODE_LENGTH
    try:
        logo = _logo_of(record, code if row and record["logo"] == row["logo"] else None)
        is_wifi = record["type"] == "wifi" and not wrong
        data = qr_data.normalize("wifi", record["data"]) if is_wifi else None
        payload = qr_data.payload("wifi" if is_wifi else "text", data, f"{settings().base_url}/q/{code}")
        spec = qr_image.image_spec(payload, *pair, b"" if logo else None, form="svg", max_pixels=qr_image.DEFAULT_SIZE)
        image = base64.b64encode(qr_image.render(spec, logo)).decode()
    except AppError:
        image = ""
    contrast = colors.contrast(front, back)
    return {
        "image": f"data:image/svg+xml;base64,{image}" if image else "",
        "contrast": contrast,
        "is_low": contrast < colors.MIN_CONTRAST,
        "better": _hex(colors.readable(*pair)),
        "is_inverted": colors.contrast(front, (0, 0, 0)) > colors.contrast(back, (0, 0, 0)),
    }


def _logo_of(record: Row, code: str | None) -> bytes | None:
    """Return the uploaded logo, or that of the stored code. One at a URL is fetched only when the form is saved."""
    if code and record["logo"]:
        stored: bytes | None = qr.image_source(None, code, with_logo=True)["logo"]
        return stored
    return _image() or (_PLACEHOLDER if record["logo"] else None)


_PLACEHOLDER = base64.b64decode(  # a gray pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGOYBgAAmACXII84hQAAAABJRU5ErkJggg=="
)


def _choices() -> Row:
    kept = base64.b64encode(_uploaded()).decode() if 0 < len(_uploaded()) <= MAX_LOGO else ""
    return {"types": TYPES, "data": DATA, "preview": _preview, "hex": _hex, "kept_logo": kept, "upload": UPLOAD}


def _add(user_id: int, members: Row) -> Row:
    return api.create(user_id, members, _image())


def _change(user_id: int, row_id: int, members: Row) -> Any:
    api.change(user_id, row_id, members, _image())


FORM = Form(
    name="qr",
    plural="qrs",
    noun="QR code",
    blueprint="qr",
    id_name="qr_id",
    new=api.NewQr,
    changed=api.QrChanges,
    from_form=_from_form,
    from_row=_from_row,
    read=qr.read_current,
    add=_add,
    change=_change,
    delete=qr.delete,
    labels=LABELS,
    fields=FIELDS,
    changes=_changes,
    check=_check,
    choices=_choices,
    after="qr_code",
).register()
