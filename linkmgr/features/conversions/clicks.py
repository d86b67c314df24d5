"""Click ids: a text in the URL of the target that finds the visit.

An id has 24 characters: 5 bytes with the number of the link, 7 with the time of the visit in
microseconds, and 6 of a keyed digest of both (48 bits: at a million tries a second, a forged one is
expected after four years). So it says nothing of the visitor but when they clicked, and the visit
needs neither a column nor an index of its own: it is the one of the link at that time. Two visits
of a link in the same microsecond share an id.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta

from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.settings import settings
from linkmgr.visits import targets

LENGTH = 24
_SALT = "linkmgr clicks"
_LINK, _TIME, _MAC = 5, 7, 6  # bytes
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING = {"link": 0, "click": "-infinity"}


def click_id(link_id: int, at: float) -> str:
    """Return the id of a visit. `at` is in seconds since the epoch."""
    message = link_id.to_bytes(_LINK) + round(at * 1_000_000).to_bytes(_TIME)
    return urlsafe_b64encode(message + keys.mac(_SALT, message, _MAC)).decode()


def read(text: str) -> Row:
    """Return the `link` and the time, `click`, of the visit that an id stands for. An id that this
    service has not made is of no link."""
    try:
        content = urlsafe_b64decode(text.encode("ascii")) if len(text) == LENGTH else b""
    except ValueError:
        return _NOTHING
    message = content[: _LINK + _TIME]
    if len(content) != _LINK + _TIME + _MAC or not keys.is_mac(_SALT, message, content[-_MAC:]):
        return _NOTHING
    at = _EPOCH + timedelta(microseconds=int.from_bytes(message[_LINK:]))
    return {"link": int.from_bytes(message[:_LINK]), "click": at.isoformat()}


def add(url: str, link_id: int, at: float) -> str:
    """Return a target with the id of the visit of a link. A URL that would be too long stays as it
    is."""
    return targets.with_parameter(url, settings().click_parameter, click_id(link_id, at))
