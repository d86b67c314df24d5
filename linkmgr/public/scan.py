"""/q/<code>: the target of a scanned QR code. /q/<code>/vcard: the file of a contact."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

from flask import Blueprint, Response, redirect, render_template, request
from flask.typing import ResponseReturnValue

from linkmgr.core.errors import AppError
from linkmgr.core.web import security_headers
from linkmgr.public import branded, loops
from linkmgr.qr.vcard import vcard
from linkmgr.repository import public
from linkmgr.visits import counting, scans
from linkmgr.visits.blocked import blocked

bp = Blueprint("scan", __name__)
bp.after_request(security_headers.prevent_caching)


def _target(host: str | None, code: str) -> str | None:
    row = public.qr_code(host, code)
    return str(row["data"]) if row["type"] == "link" else None


@bp.get("/q/<code:code>")
@loops.hop(_target)
def scan(code: str) -> ResponseReturnValue:
    row = public.qr_code(branded.host(), code)
    target = row["data"] if row["type"] == "link" else ""
    if target:
        if blocked().has_host(target):
            raise AppError("blocked")
        loops.refuse(target, branded=row["target_branded"])
    counting.count(request.environ, row["id"], row["user_id"], is_scan=True, target=target)
    if row["is_own_link"] and loops.is_on_our_hosts(row["data"], branded=row["target_branded"]):
        return redirect(scans.as_counted(row["data"], row["user_id"]), code=302)
    return _respond(row["type"], row["data"])


@bp.get("/q/<code:code>/vcard")
def save_contact(code: str) -> Response:
    """Return the contact as a file. The scan was counted on the page before."""
    row = public.qr_code(branded.host(), code)
    if row["type"] != "vcard":
        raise AppError("image_missing")
    return _vcard(row["data"])


def _respond(code_type: str, data: Any) -> ResponseReturnValue:
    match code_type:
        case "link":
            return redirect(data, code=302)
        case "vcard":
            return render_template(
                "scan_vcard.html", data=data, name=_full_name(data), call=_call, mail=_mailto
            )
        case _:
            uri = _URIS[code_type](data) if code_type in _URIS else ""
            return render_template("scan.html", code_type=code_type, data=data, uri=uri)


def _full_name(data: dict[str, str]) -> str:
    return " ".join(filter(None, (data["fname"], data["lname"]))) or data["org"]


def _vcard(data: dict[str, str]) -> Response:
    name = _full_name(data)
    ascii_name = re.sub("[^A-Za-z0-9_-]+", "-", name).strip("-") or "contact"
    response = Response(vcard(data), mimetype="text/vcard")
    response.headers["Content-Disposition"] = (
        f"attachment; filename=\"{ascii_name}.vcf\"; filename*=UTF-8''{quote(name, safe='')}.vcf"
    )
    return response


def _query(**members: str) -> str:
    """Encode the members that are not empty as a query string, with CRLF line endings as in
    e-mail."""
    values = {
        name: value.replace("\r\n", "\n").replace("\n", "\r\n") for name, value in members.items() if value
    }
    return urlencode(values, quote_via=quote, safe="")


def _number(phone: str) -> str:
    if phone.lstrip().startswith("+"):
        phone = phone.replace("(0)", "", 1)  # used for domestic calls only
    return quote(re.sub("[^0-9+*#]", "", phone), safe="+*")


def _call(phone: str) -> str:
    return f"tel:{_number(phone)}"


def _mailto(data: dict[str, str]) -> str:
    query = _query(subject=data.get("subject", ""), body=data.get("body", ""))
    return f"mailto:{quote(data['email'], safe='@')}{query and '?'}{query}"


def _sms(data: dict[str, str]) -> str:
    body = _query(body=data["message"])
    # iPhones read the text after '&', other phones after '?'.
    return f"sms:{_number(data['phone'])}{body and '?&'}{body}"


_URIS: dict[str, Callable[[Any], str]] = {"email": _mailto, "phone": _call, "sms": _sms}
