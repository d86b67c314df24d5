"""Bodies of imports: a service, or a file with rules, as the API, the console and the commands read
them."""

from urllib.parse import SplitResult, urlsplit

import orjson
from marshmallow import ValidationError

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.base import Choice, Target, Text
from linkmgr.core.fields.bodies import New, load
from linkmgr.core.fields.member import member
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.urls import MAX_URL, is_own_host, split_ascii
from linkmgr.core.settings import settings
from linkmgr.core.web import uploads
from linkmgr.features.imports import requests, services
from linkmgr.features.imports.requests import File, Service
from linkmgr.features.imports.rows import MEMBERS

RULES = ("skip", "rename", "update")  # for aliases that are in use
_MAX_TOKEN = 1000
_PORTS = {"http": 80, "https": 443}


class ServiceAddress(Target):
    """The URL of another service, which may be another program of this machine."""

    def clean(self, text: str) -> str:
        parts, own = split_ascii(text), urlsplit(settings().base_url)
        if is_own_host(parts.hostname or "") and _port(parts) == _port(own):
            raise ValidationError("must not point to this service")
        return parts.geturl()


def _port(parts: SplitResult) -> int:
    return parts.port or _PORTS[parts.scheme]


class ServiceToRead(New):
    """A service whose links are read. A body without these members is a file."""

    source = member(Choice(services.SERVICES, required=True), "The service.", "bitly")
    address = member(
        ServiceAddress(MAX_URL), "The URL of the service. Bitly needs none.", "https://s.example.com"
    )
    token = member(
        Text(_MAX_TOKEN, required=True),
        "A key of its API. It is stored encrypted until the import ends.",
        "4dc54f6c1b",
    )


class ImportRules(New):
    """Parameters of the query, or fields of a form."""

    source = member(
        Choice(("auto", *requests.SOURCES), load_default="auto"),
        "The service that a file comes from, if it is not recognized by its columns.",
        "auto",
    )
    mapping = member(
        Text(10_000, multiline=True, load_default="{}"),
        "A JSON object with the name of the column for each member. The members are those of the body of "
        "`POST /api/url/add`, `tags`, `created` and `clicks`. The columns of other members are recognized or guessed; "
        '`""` is no column. The name of a column with `null` ignores it, for one that may close links.',
        '{"url": "Target", "custom": "Name", "visibility": null}',
    )
    on_conflict = member(
        Choice(RULES, load_default=RULES[0]),
        "The rule for a row whose alias one of your links has: `skip` keeps the link, `rename` "
        "creates another one with the alias and a number, `update` writes the members of the row "
        "to the link. With `skip` and `update`, an alias of another user is a failure. With "
        "`skip`, so is the alias of an earlier row with another URL. A link moves here if you do "
        "not have its domain. If its alias then is the one of a link of another host, the row is a "
        "failure with all rules, or skipped if both links have the same URL.",
        RULES[0],
    )
    dry_run = member(Choice(("0", "1"), load_default="0"), "`1`: store nothing.", "0")


def parse_mapping(text: str) -> requests.Mapping:
    try:
        mapping = orjson.loads(text)
    except orjson.JSONDecodeError:
        mapping = None
    if not isinstance(mapping, dict) or not all(
        isinstance(column, str | None) for column in mapping.values()
    ):
        raise invalid('mapping must be a JSON object such as {"url": "Target"}')
    if unknown := {member for member, column in mapping.items() if column is not None} - set(MEMBERS):
        raise invalid(f"mapping must have only {', '.join(MEMBERS)}; remove {', '.join(unknown)}")
    if any("\0" in (column or member) for member, column in mapping.items()):
        raise invalid("mapping must name columns without NUL characters")
    return mapping


def service_of(loaded: Row) -> Service:
    if loaded["source"] != "bitly" and "address" not in loaded:
        raise invalid("address is required for this source", "required")
    return Service(loaded["source"], loaded.get("address", ""), loaded["token"])


def service(members: Row) -> Service:
    return service_of(
        load(ServiceToRead, {name: members[name] for name in members.keys() & ServiceToRead().fields})
    )


def rules_of(members: Row) -> Row:
    return load(ImportRules, {name: members[name] for name in ImportRules().fields if name in members})


def recognize(upload: uploads.Upload, rules: Row) -> File:
    source = None if rules["source"] == "auto" else rules["source"]
    mapping = parse_mapping(rules["mapping"])
    return requests.recognize(upload.file, upload.size, upload.name, source, mapping)
