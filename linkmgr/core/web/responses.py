"""Response envelope, JSON encoding and ETags."""

from hashlib import blake2b
from typing import Any, Protocol

import orjson
from flask import Response
from flask.json.provider import JSONProvider
from werkzeug.http import parse_etags

from linkmgr.core.database.paging import Page
from linkmgr.core.web import request as web_request

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


def _etag(version: str, body: bytes) -> str:
    """Return the version of a row and a digest of its response, which also has members that change
    without the row."""
    return f"{version}-{blake2b(body, digest_size=8).hexdigest()}"


def with_record(members: Json) -> Json:
    """Return the members of a response with the record under one name, beside those that the
    specification has."""
    return members | {"record": members.get("details", members.get("data", members))}


def versioned(version: str, **members: Any) -> Response:
    """Return a single read with its ETag, or 304 if the client has this version of the response."""
    body = orjson.dumps(ok() | with_record(members))
    etag = _etag(version, body)
    request = web_request.current()
    condition = request.headers.get("If-None-Match")
    if condition and request.method != "POST" and parse_etags(condition).contains_weak(etag):
        response = Response(status=304)
    else:
        response = Response(body, mimetype="application/json")
    response.headers["ETag"] = f'"{etag}"'
    return response


def warn_fixed(record: Json, verb: str = "changed") -> None:
    for name, value in web_request.current().fixed:
        if name in record and record[name] != value:
            web_request.warn(f"The member '{name}' cannot be {verb} and was ignored.")


def updated(
    message: str | None, version: str, also: Json | None = None, *, verb: str = "changed", **members: Any
) -> Response:
    """Return an updated record with the message, `also`, and the ETag of its read with the same
    `members`."""
    members = with_record(members)
    if web_request.current().fixed:
        warn_fixed((also or {}) | members["record"], verb)
    response = Response(orjson.dumps(ok(message) | (also or {}) | members), mimetype="application/json")
    response.set_etag(_etag(version, orjson.dumps({"error": 0} | members)))  # a read has no warnings
    return response


class Resource(Protocol):
    def shown(self, shown_in: str = ..., /) -> tuple[str, ...]: ...


def record(resource: Resource, row: Json, shown_in: str = "record") -> Json:
    return {name: row[name] for name in resource.shown(shown_in)}


def reading(resource: Resource, row: Json) -> Response:
    return versioned(row["version"], data=record(resource, row))


def created(resource: Resource, row: Json, *others: str) -> Response:
    """Return a created row as its read does, and beside it its id and the `others` that the
    specification names."""
    beside = {name: row[name] for name in ("id", *others)}
    return updated(None, row["version"], beside, verb="set", data=record(resource, row))


def changed(message: str, resource: Resource, row: Json) -> Response:
    return updated(message, row["version"], data=record(resource, row))


def with_statistics(resource: Resource, row: Json) -> Json:
    statistics = {"data": row["statistics"]} if "statistics" in row else {}
    return {"details": record(resource, row)} | statistics


def listing(key: str, page: Page, resource: Resource | None = None) -> Json:
    names = resource.shown("list") if resource else None
    rows = [{name: row[name] for name in names} for row in page.rows] if names else page.rows
    last = max(1, -(-page.total // page.limit))
    data: Json = {"result": page.total, "perpage": page.limit}
    if page.number is not None:
        if page.next:  # also on the last page, if that has ended at its bytes
            last = max(last, page.number + 1)
        data |= {"currentpage": page.number, "nextpage": page.number + 1 if page.number < last else 0}
    data |= {"maxpage": last, key: rows}
    if page.next is not None:
        data["next"] = str(page.next)
    return ok(data=data)
