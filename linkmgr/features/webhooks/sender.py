"""Sends the deliveries of webhooks, many at a time in one thread, signed as in the Standard
Webhooks specification
(https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md)."""

import base64
import hashlib
import hmac
import secrets
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pycurl

from linkmgr.core.fields.urls import is_loopback, parse_ip
from linkmgr.core.outbound import fetch

DEADLINE = 15  # seconds
MAX_RESPONSE = 64 * 1024  # bytes that are read
MAX_KEPT = 1000  # characters of the response
PREFIX = "whsec_"
_REDIRECT, _ERROR = 300, 400
_PROBLEMS = {
    pycurl.E_COULDNT_RESOLVE_HOST: "The host name could not be resolved.",
    pycurl.E_OPERATION_TIMEDOUT: f"No response within {DEADLINE} seconds.",
    pycurl.E_PEER_FAILED_VERIFICATION: "The TLS certificate is not valid.",
    pycurl.E_COULDNT_CONNECT: "The host could not be reached.",
}


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"


def is_refused(host: str, port: int, *, is_admin: bool) -> bool:
    """Return True if webhooks of a user never call this host: an IP address that is not allowed, or
    localhost. Other names are resolved when an event is sent."""
    address = parse_ip(host)
    addresses = [str(address)] if address else ["127.0.0.1", "::1"] if is_loopback(host) else []
    networks = fetch.private_networks(is_admin=is_admin)
    return bool(addresses) and not any(fetch.is_allowed_in(networks, address, port) for address in addresses)


@dataclass
class Message:
    url: str
    id: str
    body: bytes
    secrets: list[str]
    is_admin: bool  # True if its user is an administrator


@dataclass
class Response:
    """`status` is None if there was no response. `text` is the beginning of its body, or why there
    was none. `retry_after` is the number of seconds for which the receiver asks not to be
    called."""

    status: int | None
    text: str
    milliseconds: int
    retry_after: int | None = None

    @property
    def is_success(self) -> bool:
        return self.status is not None and self.status < _REDIRECT


class _Transfer(fetch.Transfer):
    max_bytes = MAX_RESPONSE

    def __init__(self, delivery: Any, *, is_admin: bool) -> None:
        super().__init__(fetch.private_networks(is_admin=is_admin))
        self.delivery, self.curl, self._started = delivery, self.make_curl(), time.monotonic()

    def response(self, error: int | None) -> Response:
        milliseconds = int((time.monotonic() - self._started) * 1000)
        status = self.curl.getinfo(pycurl.RESPONSE_CODE) or None
        if error in (None, pycurl.E_WRITE_ERROR) and status:  # the rest of a long response does not matter
            text = self.received[: 4 * MAX_KEPT].decode(errors="replace").replace("\0", "\ufffd")[:MAX_KEPT]
            if _REDIRECT <= status < _ERROR:
                text = "Redirects are not followed. Use the final URL."
            return Response(status, text, milliseconds, None if status < _REDIRECT else self.retry_after)
        if self.is_refused:
            return Response(
                None, "The host has no public IP address, or the port is not 80 or 443.", milliseconds
            )
        return Response(
            None,
            _PROBLEMS.get(error or 0, "The receiver did not send a complete HTTP response."),
            milliseconds,
        )


class Sender:
    """The transfers of this process. Use it in one thread."""

    def __init__(self) -> None:
        self._multi = pycurl.CurlMulti()
        self._running: dict[Any, _Transfer] = {}

    @property
    def deliveries(self) -> list[Any]:
        return [transfer.delivery for transfer in self._running.values()]

    def start(self, delivery: Any, message: Message) -> None:
        transfer = _Transfer(delivery, is_admin=message.is_admin)
        curl = transfer.curl
        self._running[curl] = transfer
        timestamp = int(time.time())
        signatures = " ".join(
            signature(secret, message.id, timestamp, message.body) for secret in message.secrets
        )
        curl.setopt(pycurl.URL, message.url.encode())
        curl.setopt(pycurl.TIMEOUT, DEADLINE)
        curl.setopt(pycurl.POSTFIELDS, message.body)
        curl.setopt(
            pycurl.HTTPHEADER,
            [
                "Content-Type: application/json",
                "Expect:",
                f"webhook-id: {message.id}",
                f"webhook-timestamp: {timestamp}",
                f"webhook-signature: {signatures}",
            ],
        )
        self._multi.add_handle(curl)

    def wait(self, seconds: float) -> list[tuple[Any, Response]]:
        self._multi.perform()
        if not (results := self._finished()):
            self._multi.select(seconds)
            self._multi.perform()
            results = self._finished()
        return results

    def _finished(self) -> list[tuple[Any, Response]]:
        results, remaining = [], 1
        while remaining:
            remaining, succeeded, failed = self._multi.info_read()
            for curl, error in [
                *((curl, None) for curl in succeeded),
                *((curl, code) for curl, code, _ in failed),
            ]:
                transfer = self._running.pop(curl)
                self._multi.remove_handle(curl)
                with closing(curl), transfer.sockets:
                    results.append((transfer.delivery, transfer.response(error)))
        return results
