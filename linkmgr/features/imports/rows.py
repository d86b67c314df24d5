"""Rows of an import, as readers return them to the job that stores them."""

import json
import re
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from linkmgr.core.fields.aliases import MAX_ALIAS
from linkmgr.core.settings import settings
from linkmgr.schemas.links import Link

_FIELDS: dict[str, Any] = Link.creates()().fields
_OF_ACCOUNT = ("campaign", "channel", "pixels")  # members that are ids of other rows
# Members of the body of POST /api/url/add that a source can have, and three of ImportRow. A mapping
# names a column of the source for each.
LINK_MEMBERS = ("url", *(name for name in _FIELDS if name not in ("url", *_OF_ACCOUNT)))
MEMBERS = (*LINK_MEMBERS, "tags", "created", "clicks")
# JSON in a CSV
NESTED = tuple(name for name in LINK_MEMBERS if _FIELDS[name].json["type"] in ("array", "object"))

MAX_NAME = 255 + MAX_ALIAS  # characters of the name of a row: a host, a slash and an alias
MAX_CHANNEL_NAME = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class RawVisit(NamedTuple):
    """A visit of the source. Texts are empty if the source does not know them."""

    at: str  # UTC, such as 2024-01-31 10:00:00
    referrer: str
    agent: str  # the User-Agent header
    country: str  # an ISO code of two capital letters
    address: str = ""  # the IP address, which is encrypted until the visit has a visitor


class ImportRow(NamedTuple):
    """A link, visits of a link that another row of the same source has, or a line of an exported
    account."""

    number: int  # the row in the source, from 1; a header line is not counted
    # Members of the body of POST /api/url/add, with a generated alias as `alias`; of visits only
    # the alias, and the domain if the link has one; or the members of the line
    members: dict[str, Any] = {}
    tags: list[str] = []  # names of channels
    created: str | None = None  # UTC, such as 2024-01-31 10:00:00
    clicks: int | None = None  # total of the source, including those clicks that follow as raw visits
    visits: list[RawVisit] = []
    raw: dict[str, str] = {}  # columns of the source, without passwords
    unreadable: str | None = (
        None  # the end of a sentence that begins with the place, if the row could not be read
    )
    code: str = "invalid"  # of the problem
    file: str = "links"  # or visits, or another file of an account
    is_mended: bool = False  # a line whose ids are those of the account
    place: str = ""  # where to find the row if it has no columns, such as "Line 3 of links.jsonl"

    @property
    def problem(self) -> str | None:
        return self.unreadable and f"{self.place or f'Row {self.number}'} {self.unreadable}"

    @property
    def size(self) -> int:
        """Return at least the number of bytes of the row as JSON."""
        return len(json.dumps(self))

    @property
    def is_visits(self) -> bool:
        return self.file == "visits" and not self.unreadable

    @property
    def host(self) -> str:
        domain = str(self.members.get("domain") or "").strip().lower()
        try:
            return urlsplit(domain if "://" in domain else f"//{domain}").hostname or ""
        except ValueError:
            return ""

    @property
    def foreign_host(self) -> str:
        host = self.host
        return "" if host == urlsplit(settings().base_url).hostname else host

    @property
    def channels(self) -> list[str]:
        names = (_CONTROL.sub(" ", tag).strip()[:MAX_CHANNEL_NAME].strip() for tag in self.tags)
        return [name for name in dict.fromkeys(names) if name]

    @property
    def name(self) -> str:
        """Return the name in the source, to which other rows refer, a digest of a row that could
        not be read, or ""."""
        if self.unreadable:  # a service may send it again, with other numbers of clicks
            texts = {column: text for column, text in self.raw.items() if not text.isdecimal()}
            return blake2b(repr(texts).encode(errors="surrogatepass"), digest_size=16).hexdigest()
        if isinstance(number := self.members.get("id"), int):
            return str(number)[:MAX_NAME]
        alias = self.members.get("custom") or self.members.get("alias")
        return f"{self.host}/{alias}"[:MAX_NAME] if alias else ""


class ReadError(Exception):
    """A file or a service that cannot be read any further. The message is a complete sentence for
    the user.

    With `retry_after`, the service asks to be left alone for that many seconds. With
    `is_temporary`, it does not respond now.
    """

    def __init__(self, message: str, retry_after: int | None = None, *, is_temporary: bool = False) -> None:
        self.message, self.retry_after, self.is_temporary = message, retry_after, is_temporary
        super().__init__(message)


class Unreadable(ValueError):
    """The end of a sentence that begins with "Row 7". Readers raise it for a row that ends the
    file."""

    code = "invalid"


class Inactive(Unreadable):
    """A link that is not open to all at its source."""

    code = "import_inactive"
