"""The header Idempotency-Key: a repeated request gets the response to the first one and changes
nothing.

See draft-ietf-httpapi-idempotency-key-header. A response is encrypted, because some contain
secrets. The hash of the request is encrypted with it, because the body may contain a password.
"""

import hashlib
import random
import re
import zlib
from http import HTTPStatus

import orjson
from flask import Response

from linkmgr.core import keys
from linkmgr.core.errors import AppError
from linkmgr.core.web import idempotency_store, uploads
from linkmgr.core.web import request as web_request

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
MAX_LENGTH = 255
_TRIM_EVERY = 100  # responses, on average
_LARGE = 16 << 10  # bytes of a response after which the limits are always checked
# The memory of the defaults of zlib takes longer to prepare than most responses to compress
_WINDOW, _MEMORY = 13, 6
_NOT_STORED = (401, 409, 412, 422, 429)  # the request is not carried out, and may be later
_BARE = r"[!#-~][ -~]*"
_QUOTED = r'"((?:[ !#-[\]-~]|\\["\\])+)"'  # a string of RFC 8941


class Replay(Exception):
    """The request was made before."""

    def __init__(self, response: Response) -> None:
        self.response = response


class IdempotencyKey:
    def __init__(self, text: str) -> None:
        self.text, self.user_id = text, web_request.current().user_id
        self.request_hash = _request_hash()
        self.is_large = False

    def replay(self) -> None:
        self._replay(idempotency_store.find(self.user_id, self.text))

    def begin(self) -> None:
        """Replay what another request has stored since `replay` was called."""
        claim = idempotency_store.claim(self.user_id, self.text)
        if not claim["claimed"]:
            raise AppError("idempotency_key_in_use")
        self._replay(claim["response"])

    def _replay(self, sealed: str | None) -> None:
        if sealed is None:
            return
        stored = orjson.loads(zlib.decompress(keys.unseal_bytes(self.user_id, sealed)))
        request_hash, status, content_type, etag, body = stored
        if request_hash != self.request_hash:
            raise AppError("idempotency_key_reused")
        headers = {REPLAYED: "true"} | ({"ETag": etag} if etag else {})
        raise Replay(Response(body, status, headers, content_type=content_type))

    def store(self, response: Response) -> None:
        head = [self.request_hash, response.status_code, response.content_type, response.headers.get("ETag")]
        packer = zlib.compressobj(wbits=_WINDOW, memLevel=_MEMORY)
        packed = packer.compress(orjson.dumps([*head, response.get_data(as_text=True)])) + packer.flush()
        self.is_large = len(packed) > _LARGE
        idempotency_store.store(self.user_id, self.text, keys.seal_bytes(self.user_id, packed))

    def trim(self) -> None:
        if self.is_large or random.randrange(_TRIM_EVERY) == 0:  # noqa: S311
            idempotency_store.trim(self.user_id)


def parse() -> IdempotencyKey | None:
    """Return the key of the request, or None if it has none. A key means the same with and without
    quotes."""
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
    if key := request.caller.key:  # another key may not read the response
        head += f" key {key.id}".encode()
    body = uploads.receive().digest if request.operation.is_upload else request.get_data()
    return hashlib.sha256(head + body).hexdigest()
