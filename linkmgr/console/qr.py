import base64
import binascii
from contextlib import suppress

from flask import Response, flash, g, render_template, request, url_for

from linkmgr.console import charts, periods, queries
from linkmgr.console.controls import FormData, lines, with_scheme
from linkmgr.console.forms import PAGE, PER_PAGE
from linkmgr.console.frame import bp
from linkmgr.console.link_changes import restorable
from linkmgr.console.stored_forms import StoredForm
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields import colors
from linkmgr.core.fields import qr as qr_data
from linkmgr.core.fields.bodies import problems
from linkmgr.core.fields.query import page_number
from linkmgr.features.statistics import visit_list
from linkmgr.public import qr as qr_page
from linkmgr.qr import image as qr_image
from linkmgr.qr import logos
from linkmgr.repository import qr, qr_bin
from linkmgr.schemas.qr import BLACK, QR_CODES, WHITE, QrCode, change_code, create_code

MAX_LOGO = 32 << 10  # bytes of an upload, so that the form with its text is below the limit of a body
_LATEST = 10
_GRAY_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGOYBgAAmACXII84hQAAAABJRU5ErkJggg=="
)
TYPES = {"link": "Link", "text": "Text", "vcard": "Contact", "email": "E-mail", "phone": "Phone", "sms": "SMS",
         "wifi": "Wi-Fi"}  # fmt: skip


@bp.get("/qrs/<id:row_id>/image")
def qr_download(row_id: int) -> Response:
    code = _code(qr.read_from_replica(g.user_id, row_id))
    response = qr_page.image(code)
    response.headers["Content-Disposition"] = f'attachment; filename="{code}.{qr_page.requested_format()}"'
    return response


def _code(row: Row) -> str:
    return str(row["link"]).rsplit("/", 1)[1]


# --- the form


class QrForm(StoredForm):
    list_template = "console/qrs.html"
    template = "console/qr_form.html"
    after = PAGE
    example = (
        "A QR code on a poster or a package opens a page, a contact or a Wi-Fi network. Except for "
        "Wi-Fi, you can change the content after the code is printed, and see how often it is "
        "scanned."
    )
    consequence = (
        "People who scan a printed copy will see a page that says the code does not exist. Only a "
        "printed Wi-Fi code still works."
    )
    afterwards = f"You can restore it for {qr_bin.DAYS} days."

    def show_list(self) -> str:
        page = qr.index(g.user_id, limit=PER_PAGE, number=page_number(), after=None)
        days, ids = charts.spark_days(g.zone), [row["id"] for row in page.rows]
        codes = {row["id"]: row for row in queries.of_codes(g.user_id, ids, days=days)} if ids else {}
        for row in page.rows:
            if code := codes.get(row["id"]):  # else it was deleted since
                content = qr_data.default_name(code["type"], code["data"])
                row |= {
                    "type": code["type"],
                    "content": content,
                    "image": qr_page.thumbnail(_code(row), code),
                }
                charts.add_spark(row, code["days"])
        return self.render_list(page)

    def page(self, row_id: int) -> str:
        row = qr.read(g.user_id, row_id)
        visits = visit_list.index(g.user_id, row_id, what="QR code", limit=_LATEST, after=None, bots=[False])
        return render_template(
            "console/qr.html",
            form=self,
            row=row,
            # On the host of the console, whatever the base URL is
            path=url_for("qr_image.image", code=_code(row)),
            content=qr_data.default_name(row["type"], row["data"]),
            types=TYPES,
            formats=qr_image.FORMATS,
            sizes=(qr_image.MIN_SIZE, qr_image.MAX_SIZE),
            visits=visits.rows,
            numbers_of=periods.numbers("qr", row_id),
        )

    def delete(self, user_id: int, row_id: int) -> None:
        qr_bin.put(user_id, row_id)

    def say_deleted(self, row_id: int) -> None:
        flash("QR code deleted.", restorable([row_id], of="qrs"))

    def add(self, user_id: int, members: Row) -> Row:
        return create_code(user_id, members, _image(members["logo"]))

    def change(self, user_id: int, row_id: int, members: Row) -> None:
        change_code(user_id, row_id, members, _image(members["logo"] or ""))

    def check(self, members: Row) -> dict[str, str]:
        code_type = members["type"]
        messages = qr_data.sentences(code_type, members["data"]) if code_type in TYPES else {}
        named = {f"data.{code_type}.{member}": text for member, text in messages.items()}
        too_large = f"Logo must be at most {MAX_LOGO >> 10} KiB. Choose a smaller image, or enter its URL."
        return named | ({"logo": too_large} if len(_upload()) > MAX_LOGO else {})

    def choices(self) -> Row:
        kept = base64.b64encode(_upload()).decode() if len(_upload()) <= MAX_LOGO else ""
        shared = {"types": TYPES, "data": qr_data.LABELS, "hex": colors.to_hex, "upload": logos.UPLOAD}
        return shared | {"preview": _preview, "kept_logo": kept}

    def from_form(self, form: FormData) -> Row:
        code_type = form.get("type") or "link"
        return {
            "type": lines(code_type),
            "data": {
                name: _data(name, lines(form.get(f"data.{code_type}.{name}", "")))
                for name in qr_data.LABELS.get(code_type, ())
            },
            "name": lines(form.get("name", "")),
            "background": colors.to_rgb(lines(form.get("background") or WHITE)),
            "foreground": colors.to_rgb(lines(form.get("foreground") or BLACK)),
            "logo": _logo(form),
        }

    def control_of(self, field: str) -> str:
        """Return the control of the target for errors of the data: only a target depends on what is
        stored."""
        return "data.link.link" if field == "data" else super().control_of(field)

    def from_row(self, row: Row) -> Row:
        data = row["data"] if isinstance(row["data"], dict) else {row["type"]: row["data"]}
        return super().from_row(row) | {"data": data}

    def changes(self, record: Row, stored: Row) -> Row:
        changes = super().changes(record, stored)
        return changes and changes | {"type": record["type"]}


def _data(name: str, text: str) -> str:
    return with_scheme(text) if name in ("link", "site") else text


def _logo(form: FormData) -> str:
    """Return the name of the logo. `g.logo` is the content of an uploaded one, which a form that is
    shown again has."""
    file = request.files.get("logo.file")
    with suppress(binascii.Error, ValueError):
        g.logo = file.read() if file else base64.b64decode(form.get("logo.data", ""), validate=True)
    if form.get("logo.remove"):
        g.logo = b""
        return ""
    return logos.upload_name(_upload()) if _upload() else lines(form.get("logo", "")).strip()


def _upload() -> bytes:
    return bytes(g.get("logo", b""))


def _image(logo: str = "") -> bytes:
    return logos.reencode(_upload()) if _upload() else logos.load(logo)


def _preview(record: Row, row: Row | None) -> Row:
    wrong = problems(QrCode.creates(), record) | FORM.check(record)
    if {"foreground", "background"} & wrong.keys():
        return {"image": "", "contrast": 0}
    code = _code(row) if row else "x" * qr_data.CODE_LENGTH
    image, data = "", record["data"]
    with suppress(AppError):
        code_type = "text" if wrong else record["type"]  # only the image of a network has its data
        data = qr_data.normalize(code_type, data) if code_type == "wifi" else data
        logo = _preview_logo(record, code if row and record["logo"] == row["logo"] else None)
        image = qr_page.preview(code, record | {"type": code_type, "data": data}, logo)
    return {"image": image} | colors.rating(record["foreground"], record["background"])


def _preview_logo(record: Row, code: str | None) -> bytes | None:
    """Return the uploaded logo, or that of the stored code. One at a URL is fetched only when the
    form is saved."""
    if code and record["logo"]:
        stored: bytes | None = qr.image_source(None, code, with_logo=True)["logo"]
        return stored
    return _image() or (_GRAY_PIXEL if record["logo"] else None)


FORM = QrForm(QR_CODES)
FORM.add_urls("/qrs", "/qrs/new", "/qrs/<id:row_id>/edit", "/qrs/<id:row_id>/delete")
bp.add_url_rule("/qrs/<id:row_id>", "qr", FORM.page)
