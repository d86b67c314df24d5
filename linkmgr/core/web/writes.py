"""Idempotency-Key and If-Match of all writes of the API.

Handlers know nothing of these headers. With one of them, the writes of a handler are one
transaction, which also stores the response, and is committed before it is sent. Authentication and
the rate limit come before, so their errors are not stored.

If-Match changes a row only if it has not changed since the client read it. The ETag of a record is
`"<version>-<hash>"`. Only the version is compared, also that of a weak ETag: a proxy that
compresses a response weakens its ETag, and the version is that of the row, not of its bytes.
"""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from flask import Response, current_app

from linkmgr.core.database import tables, transaction
from linkmgr.core.database.transaction import Transaction
from linkmgr.core.errors import AppError
from linkmgr.core.web import idempotency
from linkmgr.core.web import request as web_request
from linkmgr.core.web.idempotency import IdempotencyKey, Replay

METHODS = {"POST", "PUT", "DELETE"}
HEADER = "If-Match"
CHANGES = ("PUT", "DELETE")  # the methods that read If-Match
_TAG = r'(?:W/)?"[!#-~\x80-\xff]*"'
_TAGS = rf"{_TAG}(?:[ \t]*,[ \t]*{_TAG})*"
_VERSION = re.compile(r'"([0-9]+)-[^"]*"')

View = Callable[..., Any]


def _versions() -> list[str] | None:
    request = web_request.current()
    header = request.headers.get(HEADER)
    if header is None or request.method not in CHANGES or header == "*":
        return None
    if not re.fullmatch(_TAGS, header):
        raise AppError("etag_invalid")
    return _VERSION.findall(header)


def _check(accepted: list[str]) -> None:
    """Raise changed_meanwhile if the row has another version. The view returns the 404 for a
    missing row."""
    request = web_request.current()
    stated, ids = request.operation, request.view_args or {}
    if not stated.row:
        return
    # The row of a user is that of the path, or the caller's.
    if stated.row_id:
        row_id = stated.row_id(request.user_id, *ids.values())
    else:
        row_id = ids.get("user_id", request.user_id) if stated.row == "users" else next(iter(ids.values()))
    version = tables.lock_version(request.user_id, stated.row, row_id)
    if version is not None and version not in accepted:
        raise AppError("changed_meanwhile")


def _respond(view: View) -> Response:
    try:
        result = view()
    except Replay:
        raise
    except Exception as error:
        result = current_app.handle_user_exception(error)
    return current_app.make_response(result)


def _finish(writes: Transaction, key: IdempotencyKey | None, response: Response) -> None:
    """Commit the writes and the response. If the view failed, undo its writes and store the
    response only."""
    failed = response.status_code >= HTTPStatus.BAD_REQUEST
    if not idempotency.is_stored(response.status_code) or (failed and key is None):
        return
    if not writes.began:
        # The preconditions do not matter to a request that failed
        writes.begin(key.begin if failed and key else None)
    elif failed:
        writes.undo()
    if key is None:
        writes.commit()
        return
    with writes.committing():
        key.store(response)
    key.trim()


def carry_out(view: View) -> Any:
    """Call a view as the headers of the request say."""
    key, versions = idempotency.parse(), _versions()
    if key is None and versions is None:
        return view()

    def begin() -> None:
        if key:
            key.begin()
        if versions is not None:
            _check(versions)

    try:
        if key:
            key.replay()
        if versions is not None:  # before the body is validated (RFC 9110), and again in the transaction
            _check(versions)
        with transaction.lazily(begin) as writes:
            response = _respond(view)
            _finish(writes, key, response)
            return response
    except Replay as replay:
        return replay.response
