"""Rows of an import, as readers return them to the job that stores them."""

from typing import Any, NamedTuple
from urllib.parse import urlsplit

# Members of the body of POST /api/url/add that a source can have, and three of ImportRow. A mapping names a column of
# the source for each.
LINK_MEMBERS = ("url", "custom", "domain", "metatitle", "description", "password", "expiry", "status", "type",
                "metadescription", "metaimage", "geotarget", "devicetarget", "languagetarget", "parameters",
                "deeplink")  # fmt: skip
MEMBERS = (*LINK_MEMBERS, "tags", "created", "clicks")

MAX_NAME = 200  # characters of the name of a row; an alias has at most 50


class RawVisit(NamedTuple):
    """A visit that the source has recorded. Texts are empty if the source does not know them."""

    time: str  # UTC, such as 2024-01-31 10:00:00
    referrer: str
    agent: str  # the User-Agent header
    country: str  # an ISO code of two capital letters
    address: str = ""  # the IP address, which is encrypted until the visit has a visitor


class ImportRow(NamedTuple):
    """A link, or visits of a link that another row of the same source has (`is_visits`)."""

    number: int  # the row in the source, from 1; a header line is not counted
    record: dict[str, Any]  # members of the body of POST /api/url/add
    tags: list[str]  # names of channels
    created: str | None  # UTC, such as 2024-01-31 10:00:00
    clicks: int | None  # total of the source, including those clicks that follow as raw visits
    visits: list[RawVisit]
    raw: dict[str, str]  # columns of the source, without passwords
    problem: str | None  # a sentence, if the row could not be read

    @property
    def kind(self) -> str:
        return "visits" if self.is_visits else "links"

    @property
    def host(self) -> str:
        """Return the host of the short URL in the source, or ""."""
        domain = str(self.record.get("domain") or "").strip().lower()
        try:
            return urlsplit(domain if "://" in domain else f"//{domain}").hostname or ""
        except ValueError:
            return ""

    @property
    def name(self) -> str:
        """Return the name in the source, to which visits refer, or ""."""
        return f"{self.host}/{self.record['custom']}"[:MAX_NAME] if self.record.get("custom") else ""

    @property
    def is_visits(self) -> bool:
        """Return True if `record` has only the alias, and the domain if the link has one, of the visited link."""
        return bool(self.visits) and "url" not in self.record


class ReadError(Exception):
    """A file or a service that cannot be read any further. The message is a complete sentence for the user.

    With `retry_after`, the service asks to be left alone for that many seconds. With `is_temporary`, it does not
    respond now.
    """

    def __init__(self, message: str, retry_after: int | None = None, *, is_temporary: bool = False) -> None:
        self.message, self.retry_after, self.is_temporary = message, retry_after, is_temporary
        super().__init__(message)
