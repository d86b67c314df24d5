"""Requests to the API of another service, with a user's token."""

from contextlib import closing
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pycurl

from linkmgr.core.errors import AppError
from linkmgr.core.outbound.fetch import Fetch, private_networks
from linkmgr.core.web import pool

DEADLINE = 10.0  # seconds; a page of a large installation takes longer than a front page


class ServiceResponse(NamedTuple):
    status: int
    body: bytes
    location: str  # of a redirect, else empty
    retry_after: int | None  # seconds


class ServiceRequest(Fetch):
    """A GET request, or a POST request with a form. It follows no redirects, which could take the
    token elsewhere."""

    def __init__(
        self, url: str, headers: dict[str, str], form: dict[str, str] | None, *, is_admin: bool
    ) -> None:
        super().__init__(url, private_networks(is_admin=is_admin))
        self._headers, self._form = headers, form

    def send(self) -> ServiceResponse:
        pool.take("fetch_busy")
        with self.sockets, closing(self.make_curl()) as curl:
            status, location = self._hop(curl, self._url, DEADLINE)
        return ServiceResponse(
            status, bytes(self.received), (location or b"").decode("ascii", "replace"), self.retry_after
        )

    def make_curl(self) -> Any:
        curl = super().make_curl()
        curl.setopt(pycurl.HTTPHEADER, [f"{name}: {value}" for name, value in self._headers.items()])
        if self._form is not None:
            curl.setopt(pycurl.POSTFIELDS, urlencode(self._form))
        return curl

    def _error(self, code: str, **values: object) -> AppError:
        return super()._error(code, **values | {"deadline": DEADLINE})
