"""What a successful answer looks like, and how it becomes bytes."""

from collections.abc import Iterator
from typing import Any

import orjson
from flask import Response, stream_with_context
from flask.json.provider import JSONProvider

from linkmgr.db.statements import Page, Row

Json = dict[str, Any]


class OrjsonProvider(JSONProvider):
    """The provider that Flask uses for dictionaries that handlers return, and for test clients."""

    def dumps(self, obj: Any, **_: Any) -> str:
        return orjson.dumps(obj).decode()

    def loads(self, s: str | bytes, **_: Any) -> Any:
        return orjson.loads(s)

    def response(self, *args: Any, **kwargs: Any) -> Response:
        return Response(orjson.dumps(self._prepare_response_obj(args, kwargs)), mimetype="application/json")


def ok(message: str | None = None, **members: Any) -> Json:
    answer: Json = {"error": 0}
    if message is not None:
        answer["message"] = message
    return answer | members


def streamed(chunks: Iterator[list[Row]]) -> Response:
    """`data` as a list that is too long to be in memory whole.  What fails before its first rows is an answer like
    any other; later it breaks off the answer, which a client sees."""
    return Response(stream_with_context(_written(next(chunks, []), chunks)), mimetype="application/json")


def _written(first: list[Row], others: Iterator[list[Row]]) -> Iterator[bytes]:
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
