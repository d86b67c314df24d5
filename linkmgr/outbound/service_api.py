"""Requests to the API of another service, with a user's token."""

from contextlib import closing
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pycurl
from werkzeug.http import parse_date

from linkmgr.errors import AppError
from linkmgr.outbound.fetch import Fetch, is_allowed_or_private
from linkmgr.request import pool

DEADLINE = 10.0  # seconds; a page of a large installation takes longer than a front page
MAX_RETRY_SECONDS = 3600


class ServiceResponse(NamedTuple):
    status: int
    body: bytes
    location: str  # of a redirect, else empty
    retry_after: int | None  # seconds


class ServiceRequest(Fetch):
    """A GET request, or a POST request with a form. It follows no redirects, which could take the token elsewhere."""

    def __init__(self, url: str, headers: dict[str, str], form: dict[str, str] | None = None) -> None:
        super().__init__(url)
        self._headers, self._form, self._retry_after = headers, form, ""

    def send(self) -> ServiceResponse:
        pool.take("fetch_busy")
        with self.sockets, closing(self.make_curl()) as curl:
            status, location = self._hop(curl, self._url, DEADLINE)
        return ServiceResponse(
            status, bytes(self.received), (location or b"").decode("ascii", "replace"), _seconds(self._retry_after)
        )

    may_connect = staticmethod(is_allowed_or_private)

    def make_curl(self) -> Any:
        curl = super().make_curl()
        curl.setopt(pycurl.HTTPHEADER, [f"{name}: {value}" for name, value in self._headers.items()])
        curl.setopt(pycurl.HEADERFUNCTION, self._read_header)
        if self._form is not None:
            curl.setopt(pycurl.POSTFIELDS, urlencode(self._form))
        return curl

    def _read_header(self, line: bytes) -> None:
        name, _, value = line.decode("latin-1").partition(":")
        if name.lower() == "retry-after":
            self._retry_after = value.strip()

    def _error(self, code: str, **values: object) -> AppError:
        return super()._error(code, **values | {"deadline": DEADLINE})


def _seconds(retry_after: str) -> int | None:
    """Return the seconds of Retry-After, which is a number of seconds or a date."""
    if retry_after.isdecimal():
        seconds = int(retry_after[:9])
    elif time := parse_date(retry_after):
        seconds = int((time - datetime.now(UTC)).total_seconds())
    else:
        return None
    return min(max(1, seconds), MAX_RETRY_SECONDS)
