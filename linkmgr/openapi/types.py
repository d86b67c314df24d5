"""JSON Schemas of the members of bodies: one function per field type.

properties.py adds the properties of the single member. Descriptions state what JSON Schema cannot express, such as that
a URL must not be on this service.
"""

from functools import singledispatch
from typing import Any

from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import fields

from linkmgr.api import keys, qr
from linkmgr.fields import base, bulk, links, times, webhooks
from linkmgr.fields import qr as qr_data
from linkmgr.fields.base import MAX_ID
from linkmgr.fields.urls import MAX_URL
from linkmgr.openapi.schemas import ID, JsonSchema, ref
from linkmgr.resources import bio, domains
from linkmgr.web import scopes

# Characters that a text on one line and a multiline text must not contain
_NOT_IN_LINE = "\\u0000-\\u001f\\u007f"
_NOT_IN_LINES = "\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f"
_ID: JsonSchema = {
    "type": ["integer", "string"],
    "minimum": 0,
    "pattern": "^[0-9]{0,20}$",
    "description": "An id, also as a string.",
}


def _url(description: str) -> JsonSchema:
    form = {"format": "iri", "pattern": "^https?://", "maxLength": MAX_URL}
    return {"type": "string", **form, "description": description}


def _array(*required: str, **members: JsonSchema) -> JsonSchema:
    """Return the schema of an array of objects. The service ignores elements that do not have this form."""
    return {"type": "array", "items": {"type": "object", "properties": members, "required": list(required)}}


def _name(description: str, example: str) -> JsonSchema:
    name = {"type": "string", "minLength": 1, "maxLength": links.MAX_NAME, "examples": [example]}
    return name | ({"description": description} if description else {})


_TARGETS = {  # description and example of the selector, by its name
    "location": ("A country: its English name or its ISO code.", "Germany"),
    "device": (
        "A device: a model, a maker, a system with or without its version (`iphone`, `windows 10`, `android tablet`, "
        "`mac`), or `phone`, `tablet` or `desktop`.",
        "iphone",
    ),
    "language": ("A language: its code or its English name.", "fr"),
}


def allow_empty(schema: JsonSchema) -> JsonSchema:
    """Allow the empty string."""
    if schema.get("format") == "iri":
        return {"anyOf": [schema, {"type": "string", "maxLength": 0}]}
    pattern = {"pattern": f"^$|{schema['pattern']}"} if "pattern" in schema else {}
    return schema | pattern | ({"minLength": 0} if "minLength" in schema else {})


@singledispatch
def schema_of(field: fields.Field[Any], _converter: OpenAPIConverter | None) -> JsonSchema:
    raise TypeError(f"{type(field).__name__} has no schema in linkmgr/openapi/types.py")


@schema_of.register
def _text(field: base.Text, _: OpenAPIConverter) -> JsonSchema:
    excluded = _NOT_IN_LINES if field.multiline else _NOT_IN_LINE
    pattern = f"^[^{excluded}]*[^\\s{excluded}][^{excluded}]*$"
    return {"type": "string", "maxLength": field.max_length, "pattern": pattern}


@schema_of.register
def _matching(field: base.Matching, _: OpenAPIConverter) -> JsonSchema:
    description = field.description[0].upper() + field.description[1:]
    return {"type": "string", "pattern": f"^(?:{field.pattern.pattern})$", "description": f"{description}."}


@schema_of.register
def _choice(field: base.Choice, _: OpenAPIConverter) -> JsonSchema:
    return {"type": "string", "enum": list(field.choices)}


@schema_of.register
def _email(field: base.Email, _: OpenAPIConverter) -> JsonSchema:
    return {"type": "string", "format": "email", "maxLength": field.max_length}


@schema_of.register
def _password(_field: base.Password, _: OpenAPIConverter) -> JsonSchema:
    return {"type": "string", "format": "password", "minLength": 5, "maxLength": 1024}


@schema_of.register
def _timestamp(_field: base.Timestamp, _: OpenAPIConverter) -> JsonSchema:
    day, time = "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])", "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    return {"type": "string", "pattern": f"^{day} {time}$", "description": "UTC."}


@schema_of.register
def _boolean(_field: base.Boolean, _: OpenAPIConverter) -> JsonSchema:
    return {"type": "boolean"}


@schema_of.register
def _integer(field: base.Integer, _: OpenAPIConverter) -> JsonSchema:
    return {"type": "integer", "minimum": field.minimum, "maximum": field.maximum}


@schema_of.register
def _row_id(_field: base.Id, _: OpenAPIConverter) -> JsonSchema:
    return {"type": "integer", "minimum": 1, "maximum": MAX_ID}


@schema_of.register(base.Target)
@schema_of.register(base.Url)
def _target(field: base.Text, _: OpenAPIConverter) -> JsonSchema:
    condition = " that is not on this service" if isinstance(field, base.Target) else ""
    return _url(f"An absolute http or https URL{condition}.")


@schema_of.register
def _domain(_field: domains.DomainUrl, _: OpenAPIConverter) -> JsonSchema:
    return _url("A public host name that points to this service, with http:// or https://.") | {
        "pattern": r"^https?://[^\s\\@:/?#]+/?$"
    }


@schema_of.register
def _links(_field: bio.Links, converter: OpenAPIConverter | None) -> JsonSchema:
    item = converter.resolve_nested_schema(bio.BioLink) if converter else ref("BioLink")  # type: ignore[no-untyped-call]
    return {"type": "array", "items": item, "maxItems": bio.MAX_LINKS}


@schema_of.register
def _events(_field: webhooks.Events, _: OpenAPIConverter) -> JsonSchema:
    return {"type": "array", "items": {"type": "string", "enum": list(webhooks.PATTERNS)}, "minItems": 1}


@schema_of.register
def _of_shown(field: base.Shown, _: OpenAPIConverter) -> JsonSchema:
    return field.json


# --- members of QR codes


@schema_of.register
def _data(_field: qr.Data, converter: OpenAPIConverter) -> JsonSchema:
    objects = [converter.resolve_nested_schema(schema) for schema in qr_data.OBJECTS.values()]  # type: ignore[no-untyped-call]
    return {
        "anyOf": [{"type": "string", "minLength": 1, "maxLength": 4096}, *objects],
        "description": "A string for text, link and phone; an object for vcard, email, sms and wifi. For email and sms "
        "also the recipient alone.",
    }


@schema_of.register
def _site(_field: qr_data.Site, _: OpenAPIConverter) -> JsonSchema:
    return {"type": "string", "maxLength": MAX_URL, "pattern": r"^[^\s\\@]+$"}


@schema_of.register
def _encryption(_field: qr_data.Encryption, _: OpenAPIConverter) -> JsonSchema:
    return {"type": "string", "enum": ["WPA", "WEP", "nopass"]}


# --- members of links


@schema_of.register
def _id_or_string(_field: links.IdOrString, _: OpenAPIConverter) -> JsonSchema:
    return _ID | {"description": "An id, also as a string. 0 means none."}


@schema_of.register
def _ids(_field: links.Ids, _: OpenAPIConverter) -> JsonSchema:
    return {"type": "array", "items": _ID}


@schema_of.register
def _id_or_ids(_field: links.IdOrIds, _: OpenAPIConverter) -> JsonSchema:
    return {"anyOf": [{"type": "array", "items": _ID}, _ID], "description": ""}


@schema_of.register
def _link_type(_field: links.LinkType, _: OpenAPIConverter) -> JsonSchema:
    return _ID | {"pattern": "^(?:direct|frame|splash|(?:overlay-)?[0-9]{1,20})?$", "description": ""}


@schema_of.register
def _targets(field: links.Targets, converter: OpenAPIConverter) -> JsonSchema:
    text, example = _TARGETS[field.selector]
    name = _name(f"{text} Case does not matter.", example)
    link = _target(base.Target(), converter) | {"examples": [f"https://example.com/{example.lower()}"]}
    return _array(field.selector, "link", **{field.selector: name, "link": link})


@schema_of.register
def _parameters(_field: links.Parameters, _: OpenAPIConverter) -> JsonSchema:
    value = {"type": ["string", "number"], "description": "A number becomes text.", "examples": ["newsletter"]}
    return _array("name", "value", name=_name("", "utm_source"), value=value)


@schema_of.register
def _deep_link(_field: links.DeepLink, _: OpenAPIConverter) -> JsonSchema:
    auto = {"type": "boolean", "description": "false keeps the URLs without using them.", "examples": [True]}
    apple = _url("The app in the App Store, for iPhone and iPad.") | {"examples": ["https://apps.apple.com/app/id1"]}
    google = _url("The app in Google Play, for Android.") | {"examples": ["https://play.google.com/store"]}
    return {"type": "object", "properties": {"auto": auto, "apple": apple, "google": google}}


@schema_of.register
def _own_domain(_field: links.OwnDomain, _: OpenAPIConverter) -> JsonSchema:
    return {
        "type": "string",
        "maxLength": MAX_URL,
        "description": "One of your branded domains, with or without its scheme.",
    }


@schema_of.register
def _link_password(_field: links.LinkPassword, _: OpenAPIConverter) -> JsonSchema:
    return {"type": "string", "format": "password", "minLength": 1, "maxLength": 1024}


@schema_of.register
def _expiry(_field: links.Expiry, _: OpenAPIConverter) -> JsonSchema:
    until = (
        "UTC unless it names a time zone. A date alone means the end of that day. Also the forms that programming "
        "languages print: `2030-12-31T23:59:59Z`, `Tue, 31 Dec 2030 23:59:59 +0000`, "
        "`2030-12-31 23:59:59.015843052 +0000 UTC`."
    )
    return {"type": "string", "pattern": f"^(?:{times.pattern()})$", "description": until}


# --- members of bulk requests


@schema_of.register
def _elements(field: bulk.Elements, converter: OpenAPIConverter) -> JsonSchema:
    element = converter.resolve_nested_schema(field.element)  # type: ignore[no-untyped-call]
    return {"type": "array", "items": element, "minItems": 1, "maxItems": bulk.MAX_ELEMENTS}


@schema_of.register
def _many_ids(_field: bulk.ManyIds, _: OpenAPIConverter) -> JsonSchema:
    # Any integer: an id of no row fails alone.
    item = {"type": ["integer", "string"], "pattern": "^[0-9]{1,20}$", "description": "An id, also as a string."}
    return {"type": "array", "items": item, "minItems": 1, "maxItems": bulk.MAX_ELEMENTS}


@schema_of.register
def _element_body(field: bulk.Body, converter: OpenAPIConverter) -> JsonSchema:
    return dict(converter.resolve_nested_schema(field.element))  # type: ignore[no-untyped-call]


# --- members of API keys


@schema_of.register
def _scopes(_field: keys.Scopes, _: OpenAPIConverter) -> JsonSchema:
    return {
        "type": "array",
        "items": {"type": "string", "enum": scopes.names()},
        "minItems": 1,
        "maxItems": keys.MAX_ITEMS,
    }


@schema_of.register
def _domain_ids(_field: keys.DomainIds, _: OpenAPIConverter) -> JsonSchema:
    return {"type": "array", "items": ID, "maxItems": keys.MAX_ITEMS}


@schema_of.register
def _networks(_field: keys.Networks, _: OpenAPIConverter) -> JsonSchema:
    return {"type": "array", "items": {"type": "string", "pattern": "^[0-9A-Fa-f.:/]+$"}, "maxItems": keys.MAX_ITEMS}
