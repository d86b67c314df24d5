"""/api/qr"""

from linkmgr.api import qr
from linkmgr.fields import qr as qr_data
from linkmgr.openapi.model import PAGING, Member, Operation, Resource
from linkmgr.openapi.operations.stats import visits_of
from linkmgr.openapi.schemas import (
    ID,
    TIMESTAMP,
    JsonSchema,
    choice,
    done,
    listing,
    number,
    or_null,
    own_url,
    record,
    ref,
    success,
    text,
)
from linkmgr.outbound.fetch import DEADLINE, MAX_CONCURRENT, MAX_REDIRECTS
from linkmgr.qr import logos
from linkmgr.qr.image import DEFAULT_SIZE, MAX_SIZE, MIN_SIZE

_CODES = (*logos.ERRORS, "colours_too_close", "link_branded", "short_link_unknown")

_CODE: dict[str, JsonSchema] = {
    "id": ID,
    "link": own_url("qr/bcd234fgh567"),
    "scans": number(12),
    "name": text("Poster"),
    "date": TIMESTAMP,
}

RESOURCE = Resource(
    name="QR codes",
    description=f"""\
`link` is the URL of the image: a PNG of at most {DEFAULT_SIZE} pixels. `?size=` ({MIN_SIZE} to {MAX_SIZE} pixels) and
`?format=svg` or `?format=pdf` change that; a PDF has 96 pixels per inch. Each module of the code is a whole number
of pixels, so the image can be smaller than `size`. A `size` that is too small for the code is a 400 that names the
smallest one.

The image encodes a URL of this service that counts the scan and then acts by type, so an update also reaches printed
codes. Only an image of the type `wifi` encodes the data itself.

A logo is fetched from public IP addresses only, from port 80 or 443, within {DEADLINE:g} seconds and over at most
{MAX_REDIRECTS} redirects. A process of the service fetches at most {MAX_CONCURRENT} URLs and renders one image at a
time. If more are requested, the response can be a 503.

The form of `data` depends on the type:

- `text`: a string of at most 4096 characters.
- `link`: a URL. On this service and on branded domains only the short URL of a link or bio page, such as the `shorturl`
  of `POST /api/url/add`.
- `phone`: a phone number of 2 to 40 digits, spaces and `+ * # ( ) . / -`.
- `vcard`, `email`, `sms`, `wifi`: an object, see below. `email` and `sms` also take the recipient alone.""",
    members={
        "type": Member("text", "The type of the data. It cannot be changed."),
        "data": Member("Hello", "The content of the code."),
        "name": Member("Poster", "Its name in lists. Without it, the name is derived from the data."),
        "background": Member(
            qr.WHITE, "The color behind the code. The contrast must be at least 3 to 1; the error names colors that do."
        ),
        "foreground": Member("rgb(0,0,128)", "The color of the code."),
        "logo": Member(
            "https://example.com/logo.png",
            "An image for the center: a URL that is fetched once, or the name of a file in the folder `logos/` of the "
            "service. PNG or JPEG, at most 1 MiB and 4 megapixels. An update with the same `logo` keeps the stored "
            "image. A logo that was uploaded in the console has a name such as `upload:0f3a`.",
        ),
    },
    nested={
        qr_data.VcardData: {
            "fname": Member("Dana", "First name. It, `lname` or `org` is required."),
            "lname": Member("Miller", "Last name."),
            "org": Member("Example Ltd", "Organization."),
            "phone": Member("+49 30 123456"),
            "cell": Member("+49 170 123456", "Mobile phone."),
            "fax": Member("+49 30 123457"),
            "email": Member("dana@example.com"),
            "site": Member("https://example.com", "Website, with or without its scheme."),
            "street": Member("Main Street 1"),
            "city": Member("Berlin"),
            "state": Member("Berlin"),
            "zip": Member("10115"),
            "country": Member("Germany"),
        },
        qr_data.EmailData: {
            "email": Member("dana@example.com", "The recipient."),
            "subject": Member("Hello"),
            "body": Member("How are you?"),
        },
        qr_data.SmsData: {
            "phone": Member("+49 170 123456", "The recipient."),
            "message": Member("I am here."),
        },
        qr_data.WifiData: {
            "ssid": Member("Guests", "The name of the network, at most 32 bytes."),
            "encryption": Member("WPA", "Without it: `WPA` with a password, else `nopass`."),
            "password": Member("correct horse", "At most 64 bytes. Required unless `encryption` is `nopass`."),
        },
    },
    records={
        "QrCodeListed": record(**_CODE),
        "QrCode": record(
            **_CODE,
            type=choice("text", *qr_data.TYPES[1:]),
            data={"type": ["string", "object"], "examples": ["Hello"]},
            background=text(qr.WHITE),
            foreground=text("rgb(0,0,128)"),
            logo=or_null(text("https://example.com/logo.png"))
            | {"description": "As it was sent. `null` for a logo that was stored before the service kept this."},
        ),
    },
    tables={
        "Data of the type vcard": "VcardData",
        "Data of the type email": "EmailData",
        "Data of the type sms": "SmsData",
        "Data of the type wifi": "WifiData",
    },
    operations=(
        Operation("GET", "/api/qr", "List QR codes", listing("qrs", "QrCodeListed"), query=PAGING),
        Operation(
            "GET",
            "/api/qr/{qr_id}",
            "Read a QR code and its statistics",
            success(details=ref("QrCode"), data=ref("Statistics")),
            tagged=True,
        ),
        visits_of("/api/qr/{qr_id}/visits", "QR code"),
        Operation(
            "POST",
            "/api/qr/add",
            "Add a QR code",
            success(id=ID, link=own_url("qr/bcd234fgh567")),
            qr.QrCodeCreate,
            {"type": "link", "data": "https://example.com/", "name": "Poster", "foreground": "rgb(0,0,128)"},
            codes=_CODES,
        ),
        Operation(
            "PUT",
            "/api/qr/{qr_id}/update",
            "Change a QR code",
            success(message=text("QR has been updated successfully."), details=ref("QrCode"), data=ref("Statistics")),
            qr.QrCodeUpdate,
            {"data": "https://example.com/winter"},
            codes=_CODES,
            tagged=True,
        ),
        Operation(
            "DELETE", "/api/qr/{qr_id}/delete", "Delete a QR code", done("QR Code has been deleted successfully.")
        ),
    ),
)
