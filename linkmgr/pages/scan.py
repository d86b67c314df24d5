"""/q/<code>: where the pictures of QR codes lead."""

import re
from typing import Any
from urllib.parse import quote, urlencode

from flask import Blueprint, Response, make_response, redirect, render_template
from werkzeug.exceptions import NotFound

from linkmgr.pages import branded, loops
from linkmgr.qr.vcard import vcard
from linkmgr.repository import public
from linkmgr.visits import record
from linkmgr.web.errors import AppError

bp = Blueprint("scan", __name__)


@bp.get("/q/<word:code>")
def scan(code: str) -> Response:
    found = public.qr_code(branded.host(), code)
    if found is None:
        raise AppError("image_missing")
    if found["type"] == "link":
        loops.refuse(found["data"], branded=found["target_branded"])
    record.record(found["id"], found["user_id"])
    response = make_response(_answer(found["type"], found["data"]))
    response.headers["Cache-Control"] = "no-store"  # so that every scan arrives here
    return response


@loops.hop("scan.scan")
def _target(host: str | None, code: str) -> str | None:
    found = public.qr_code(host, code)
    if found is None:
        raise NotFound
    return str(found["data"]) if found["type"] == "link" else None


def _answer(kind: str, data: Any) -> Any:
    match kind:
        case "link":
            return redirect(data, code=302)
        case "vcard":
            return _card(data)
        case "text" | "wifi":
            return render_template(f"scan_{kind}.html", data=data)
        case _:
            return render_template("scan_contact.html", kind=kind, data=data, address=_ADDRESSES[kind](data))


def _card(data: dict[str, str]) -> Response:
    name = " ".join(filter(None, (data["fname"], data["lname"]))) or data["org"]
    plain = re.sub("[^A-Za-z0-9_-]+", "-", name).strip("-") or "contact"
    response = Response(vcard(data), mimetype="text/vcard")
    response.headers["Content-Disposition"] = (
        f"attachment; filename=\"{plain}.vcf\"; filename*=UTF-8''{quote(name, safe='')}.vcf"
    )
    return response


def _query(**members: str) -> str:
    """The members that are not empty, as what stands behind the '?'.  Lines end as in a message."""
    given = {name: value.replace("\r\n", "\n").replace("\n", "\r\n") for name, value in members.items() if value}
    return urlencode(given, quote_via=quote, safe="")


def _number(phone: str) -> str:
    if phone.lstrip().startswith("+"):
        phone = phone.replace("(0)", "", 1)  # is dialled within the country only
    return quote(re.sub("[^0-9+*#]", "", phone), safe="+*")


def _mailto(data: dict[str, str]) -> str:
    query = _query(subject=data["subject"], body=data["body"])
    return f"mailto:{quote(data['email'], safe='@')}{query and '?'}{query}"


def _sms(data: dict[str, str]) -> str:
    body = _query(body=data["message"])
    # iPhones look for the text behind '&', others behind '?'.
    return f"sms:{_number(data['phone'])}{body and '?&'}{body}"


_ADDRESSES = {"email": _mailto, "phone": lambda data: f"tel:{_number(data)}", "sms": _sms}
