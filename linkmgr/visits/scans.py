"""Marks in the query of short URLs that tell scans from clicks, and count one visitor once.

The QR code of a link has the mark OWN. A QR code that leads to a short URL of its owner counts the
scan, so its redirect adds a signed mark, with which the link does not count the same visitor again.
It is for one path of one user and works for MAX_AGE, so that nobody can hide the clicks of a link
with it.
"""

from typing import Any
from urllib.parse import urlsplit

from itsdangerous import BadSignature

from linkmgr.core import keys

OWN = "qr"
MAX_AGE = 600  # seconds; a visitor may type the password of the link first
_COUNTED = "scanned"
_SALT = "linkmgr scans"


def as_counted(url: str, user_id: int) -> str:
    mark = keys.serializer(_SALT).dumps([user_id, urlsplit(url).path])
    return f"{url}?{_COUNTED}={mark}"


def is_counted(environ: dict[str, Any], user_id: int) -> bool:
    name, _, mark = environ["QUERY_STRING"].partition("=")
    if name != _COUNTED:
        return False
    try:
        return bool(keys.serializer(_SALT).loads(mark, max_age=MAX_AGE) == [user_id, environ["PATH_INFO"]])
    except BadSignature:
        return False


def without_marks(query: str) -> str:
    return "&".join(part for part in query.split("&") if part != OWN and not part.startswith(f"{_COUNTED}="))


def is_of_own_code(environ: dict[str, Any]) -> bool:
    return OWN in environ["QUERY_STRING"].split("&")
