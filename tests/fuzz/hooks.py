"""Hooks for schemathesis: responses that are no failures, and users that it must not delete."""

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4

import schemathesis
from hypothesis import strategies
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.core.transport import Response
from schemathesis.generation.case import Case
from schemathesis.hooks import HookContext
from schemathesis.openapi.checks import JsonSchemaError, UndefinedContentType

from linkmgr.core.fields.base import MAX_ID
from linkmgr.core.web import idempotency
from tests.fuzz.run import FIRST_USER
from tests.support.document import document, validator

AnyCase = Case[Any]

# Members of a link. Malformed elements are ignored, as clients expect.
ARRAYS = ("pixels", "channel", "geotarget", "devicetarget", "languagetarget", "parameters")
ELEMENTS = ("conversions", "qrs", "urls")  # of bulk requests


# Most syntactically valid URLs contain a host name that cannot exist.
_HOSTS = ("shop.example", "www.shop.example:8080", "xn--mnchen-3ya.example", "192.0.2.1", "[2001:db8::1]")
_ENDS = ("", "/", "/a/b.html?c=d&e=%20#f", "/%00", "?")
_URLS = strategies.builds("{}://{}{}".format, *map(strategies.sampled_from, (("http", "https"), _HOSTS, _ENDS)))
schemathesis.openapi.format("iri", _URLS)
schemathesis.openapi.format("iri-reference", _URLS)  # a URL or ""


def _schema(case: AnyCase) -> str:
    operation = document()["paths"][case.operation.path][case.operation.method.lower()]
    return str(operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2])


def _read(body: Any, created: bool) -> Any:
    """Return the members that the service reads, of the elements of a bulk request too. None means not sent, on create
    "" too, and PHP sends [] for an empty object."""
    if isinstance(body, list):
        return [_read(element, created) for element in body]
    if not isinstance(body, dict):
        return body
    unsent: list[Any] = [None, "", []] if created else [None, []]
    members = {name: value for name, value in body.items() if name not in ARRAYS and value not in unsent}
    return members | {name: _read(members[name], created) for name in ELEMENTS if name in members}


@schemathesis.hook
def filter_failure(context: HookContext, failure: Failure, case: AnyCase, response: Response) -> bool:
    """Ignore values that the service accepts on purpose although the document does not allow them, and files that
    `format` asks for, because the document describes CSVs at paths of their own."""
    query = dict(parse_qsl(urlsplit(str(response.request.url)).query, True))
    if isinstance(failure, UndefinedContentType | JsonSchemaError):
        return "format" not in query
    if not isinstance(failure, AcceptedNegativeData):
        return True
    if case.operation.path == "/api/imports":  # the body is a file of any content
        return False
    if not isinstance(case.body, dict):
        # Not sent, or an id that no row can have, which is not found
        return not any(value == "" or (value.isdecimal() and int(value) > MAX_ID) for value in query.values())
    if response.json().get("failed"):  # bulk: the service has refused elements
        return False
    schema = _schema(case)
    created = case.method == "POST" or schema == "Subscription"  # the only update that is read like a create
    return not validator(schema).is_valid(_read(case.body, created))


@schemathesis.hook
def before_call(context: HookContext, case: AnyCase, kwargs: dict[str, Any]) -> None:
    """Send a new key instead of a valid one, which an earlier request may have had."""
    headers = case.headers
    if headers and re.fullmatch("[!-~][ -~]*", str(headers.get(idempotency.HEADER, ""))):
        headers[idempotency.HEADER] = str(uuid4())


@schemathesis.hook
def filter_case(context: HookContext, case: AnyCase) -> bool:
    """Leave out headers that no client can send, and keep the tenants and the administrator with their plans."""
    if any(ord(character) > 0xFF for value in (case.headers or {}).values() for character in str(value)):
        return False
    named = str((case.path_parameters or {}).get("user_id", ""))
    return case.method == "GET" or not named.isdigit() or not FIRST_USER <= int(named) < FIRST_USER + 10
