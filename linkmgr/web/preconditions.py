"""The header If-Match: change a row only if it has not changed since the client read it.

The ETag of a record is `"<version>-<hash>"`. Only the version is compared.
"""

import re

from linkmgr.errors import AppError
from linkmgr.repository import tables
from linkmgr.web import request as web_request
from linkmgr.web.auth import user_id

HEADER = "If-Match"
METHODS = ("PUT", "DELETE")
_TAG = r'(?:W/)?"[!#-~\x80-\xff]*"'
_TAGS = rf"{_TAG}(?:[ \t]*,[ \t]*{_TAG})*"
PATTERN = rf"^(?:\*|{_TAGS})$"
_VERSION = re.compile(r'(?<!W/)"([0-9]+)-[^"]*"')


def versions() -> list[str] | None:
    """Return the versions that the client accepts, or None if it accepts any. A weak ETag matches none (RFC 9110)."""
    request = web_request.current()
    header = request.headers.get(HEADER)
    if header is None or request.method not in METHODS or header == "*":
        return None
    if not re.fullmatch(_TAGS, header):
        raise AppError("etag_invalid")
    return _VERSION.findall(header)


def check(accepted: list[str]) -> None:
    """Raise changed_meanwhile if the row has another version. The view returns the 404 for a missing row."""
    request = web_request.current()
    version = tables.lock_version(user_id(), request.blueprint or "", request.view_args or {})
    if version is not None and version not in accepted:
        raise AppError("changed_meanwhile")
