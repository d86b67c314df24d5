"""The header Idempotency-Key: a repeated request gets the answer to the first one and changes nothing.

See draft-ietf-httpapi-idempotency-key-header. An answer is encrypted, because some contain secrets. The hash of the
request is encrypted with it, because the body may contain a password.
"""

import hashlib
import random
import re
import zlib
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import orjson
from flask import Response, current_app

from linkmgr import keys
from linkmgr.errors import AppError
from linkmgr.repository import idempotency
from linkmgr.web import request as web_request
from linkmgr.web import uploads
from linkmgr.web.auth import caller, user_id
from linkmgr.web.responses import Json

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
MAX_LENGTH = 255
MAX_STORED = 16 << 10  # bytes of a compressed response; of a larger one, the small members are stored
_SMALL = 1024  # bytes of a member
_TRIM_EVERY = 100  # answers, on average
_INCOMPLETE = "The first response is too large to be stored. This one has its short members and the current record."
_NOT_STORED = (401, 409, 412, 422, 429)  # the request is not carried out, and may be later
_BARE = r"[!#-~][ -~]*"
_QUOTED = r'"((?:[ !#-[\]-~]|\\["\\])+)"'  # a string of RFC 8941
PATTERN = f"^(?:{_BARE}|{_QUOTED})$"


class Replay(Exception):
    """The request was answered before."""

    def __init__(self, response: Response) -> None:
        self.response = response


class IdempotencyKey:
    """The key of the current request."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.request_hash = _request_hash()

    def replay(self) -> None:
        """Raise Replay if the request was answered before."""
        sealed = idempotency.find(user_id(), self.text)
        if sealed is None:
            return
        request_hash, status, content_type, etag, body, small = orjson.loads(
            zlib.decompress(keys.unseal_bytes(user_id(), sealed))
        )
        if request_hash != self.request_hash:
            raise AppError("idempotency_key_reused")
        if body is None:
            body, current_etag = _composed(*small)
            etag = current_etag or etag
        headers = {REPLAYED: "true"} | ({"ETag": etag} if etag else {})
        raise Replay(Response(body, status, headers, content_type=content_type))

    def begin(self) -> None:
        """Lock the key until the transaction ends, and check again that there is no answer."""
        if not idempotency.lock(user_id(), self.text):
            raise AppError("idempotency_key_in_use")
        self.replay()

    def store(self, response: Response) -> None:
        head = [self.request_hash, response.status_code, response.content_type, response.headers.get("ETag")]
        body = response.get_data()
        packed = zlib.compress(orjson.dumps([*head, body.decode(), None]))
        if len(packed) > MAX_STORED:
            packed = zlib.compress(orjson.dumps([*head, None, [_small_members(body), _digest(body)]]))
        idempotency.store(user_id(), self.text, keys.seal_bytes(user_id(), packed))

    def trim(self) -> None:
        """Now and then, drop the oldest answers of the user beyond its limits."""
        if random.randrange(_TRIM_EVERY) == 0:  # noqa: S311
            idempotency.trim(user_id())


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _small_members(body: bytes) -> Json:
    """Return the short members. Long lists are empty: the results of a bulk request cannot be read again."""
    members: Json = orjson.loads(body)
    is_small = {name: len(orjson.dumps(value)) <= _SMALL for name, value in members.items()}
    return {
        name: value if is_small[name] else []
        for name, value in members.items()
        if is_small[name] or isinstance(value, list)
    }


def _composed(small: Json, digest: str) -> tuple[bytes, str | None]:
    """Return a response of the stored members and the record as its GET shows it, and the ETag of the latter."""
    read = _read_again(small.get("id"))
    record = (read.get_json() if read else None) or {}
    composed = small | {name: value for name, value in record.items() if name not in small}
    body = orjson.dumps(composed)
    if _digest(body) != digest:
        body = orjson.dumps(composed | {"warnings": [*composed.get("warnings", ()), _INCOMPLETE]})
    return body, read.headers.get("ETag") if read else None


def _read_again(new_id: int | None) -> Response | None:
    """Return the GET of the row that the request named or created, or None if there is none, or no more."""
    request = web_request.current()
    view: Callable[..., Any] | None = current_app.view_functions.get(f"{request.blueprint}.read")
    if view is None:
        return None
    [rule] = current_app.url_map.iter_rules(f"{request.blueprint}.read")
    ids = request.view_args or ({} if new_id is None else dict.fromkeys(rule.arguments, new_id))
    if ids.keys() != rule.arguments:
        return None
    try:
        return current_app.make_response(view(**ids))
    except AppError:
        return None


def parse() -> IdempotencyKey | None:
    """Return the key of the request, or None if it has none. A key means the same with and without quotes."""
    header = web_request.current().headers.get(HEADER)
    if header is None:
        return None
    quoted = re.fullmatch(_QUOTED, header)
    text = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else header
    if len(text) > MAX_LENGTH or not (quoted or re.fullmatch(_BARE, text)):
        raise AppError("idempotency_key_invalid")
    return IdempotencyKey(text)


def is_stored(status: int) -> bool:
    return status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in _NOT_STORED


def _request_hash() -> str:
    request = web_request.current()
    head = repr((request.method, request.environ["PATH_INFO"], request.query_string)).encode()
    if key := caller().key:  # another key may not read the answer
        head += f" key {key.id}".encode()
    body = uploads.receive().digest if request.endpoint in uploads.ENDPOINTS else request.body()
    return hashlib.sha256(head + body).hexdigest()
