"""Response envelope and JSON encoding."""

from collections.abc import Iterator
from typing import Any

import orjson
from flask import Response, stream_with_context
from flask.json.provider import JSONProvider

from linkmgr.db.statements import Page, Row
from linkmgr.web import request as web_request

Json = dict[str, Any]


class OrjsonProvider(JSONProvider):
    """Flask encodes the dictionaries that handlers return with this provider."""

    def dumps(self, obj: Any, **_: Any) -> str:
        return orjson.dumps(obj).decode()

    def loads(self, s: str | bytes, **_: Any) -> Any:
        return orjson.loads(s)

    def response(self, *args: Any, **kwargs: Any) -> Response:
        return Response(orjson.dumps(self._prepare_response_obj(args, kwargs)), mimetype="application/json")


def ok(message: str | None = None, **members: Any) -> Json:
    response: Json = {"error": 0}
    if message is not None:
        response["message"] = message
    response |= members
    if warnings := web_request.current().warnings:
        response["warnings"] = warnings
    return response


def streamed(chunks: Iterator[list[Row]]) -> Response:
    """Stream `data`, a list that is too long for memory.

    An error before the first chunk becomes an ordinary error response. A later one closes the connection before the
    response is complete.
    """
    return Response(stream_with_context(_encode(next(chunks, []), chunks)), mimetype="application/json")


def _encode(first: list[Row], others: Iterator[list[Row]]) -> Iterator[bytes]:
    yield b'{"error":0,"data":[' + orjson.dumps(first)[1:-1]
    for rows in others:
        yield b"," + orjson.dumps(rows)[1:-1]
    yield b"]}"


def listing(key: str, page: Page) -> Json:
    last = max(1, -(-page.total // page.limit))
    return ok(
        data={
            "result": page.total,
            "perpage": page.limit,
            "currentpage": page.number,
            "nextpage": page.number + 1 if page.number < last else 0,
            "maxpage": last,
            key: page.rows,
        }
    )
