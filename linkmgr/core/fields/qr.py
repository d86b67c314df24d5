"""The stored form is a string for text, link and phone, and for the other types an object with all
members, "" for those that were not sent."""

import re
import secrets
from typing import Any, ClassVar
from urllib.parse import unquote

from marshmallow import Schema, ValidationError, post_load

from linkmgr.core.fields.base import Email, Matching, Target, Text
from linkmgr.core.fields.bodies import New
from linkmgr.core.fields.member import JsonSchema, member
from linkmgr.core.fields.problems import problems_of
from linkmgr.core.fields.short_urls import parse_short_url, short_url
from linkmgr.core.fields.unknown import warn_unknown
from linkmgr.core.fields.urls import MAX_URL, split_ascii
from linkmgr.core.settings import settings
from linkmgr.core.web.request import warn

TYPES = ("text", "vcard", "link", "email", "phone", "sms", "wifi")

CODE_LENGTH = 12  # 68 random bits
_CODE_ALPHABET = (
    "0123456789BCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz"  # no vowels, so that codes do not spell words
)
_MAX_NAME = 100

# Limits of the Wi-Fi standard. Both fit into one image, even if every character is escaped.
_MAX_SSID, _MAX_WIFI_PASSWORD = 32, 64
_WPA_PASSWORD = re.compile("[ -~]{8,63}|[0-9A-Fa-f]{64}")
_ENCRYPTIONS = dict.fromkeys(("wpa", "wpa2", "wpa3", "wpa/wpa2"), "WPA") | {"wep": "WEP"}
_ENCRYPTIONS |= dict.fromkeys(("nopass", "none"), "nopass")


class Phone(Matching):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            "(?=.*[0-9])[0-9+*#(). /-]{2,40}",
            "a phone number: 2 to 40 digits, spaces, and + * # ( ) . / -",
            **kwargs,
        )


class LinkTarget(Target):
    """A URL that is not on this service, or one that can be a short URL of it. The repository looks
    up the latter."""

    def clean(self, text: str) -> str:
        short = parse_short_url(text) if "://" in text else None
        return short_url(None, short.alias) if short and short.host is None else super().clean(text)


class Site(Text):
    json: ClassVar[JsonSchema] = {"type": "string", "maxLength": MAX_URL, "pattern": r"^[^\s\\@]+$"}

    def clean(self, text: str) -> str:
        return split_ascii(text if "://" in text else f"https://{text}").geturl()


class Sized(Text):
    """Text whose maximum length is in bytes."""

    def clean(self, text: str) -> str:
        if len(super().clean(text).encode()) > self.max_length:
            raise ValidationError(f"must be at most {self.max_length} bytes")
        return text


class Encryption(Text):
    json: ClassVar[JsonSchema] = {"type": "string", "enum": ["WPA", "WEP", "nopass"]}

    def clean(self, text: str) -> str:
        try:
            return _ENCRYPTIONS[text.lower()]
        except KeyError:
            raise ValidationError("must be WPA, WEP or nopass") from None


class VcardData(New):
    fname = member(
        Text(load_default=""), "First name. It, `lname` or `org` is required.", "Dana", label="First name"
    )
    lname = member(Text(load_default=""), "Last name.", "Miller", label="Last name")
    org = member(Text(load_default=""), "Organization.", "Example Ltd", label="Organization")
    phone = member(Phone(load_default=""), "", "+49 30 123456", label="Phone")
    cell = member(Phone(load_default=""), "Mobile phone.", "+49 170 123456", label="Mobile")
    fax = member(Phone(load_default=""), "", "+49 30 123457", label="Fax")
    email = member(Email(load_default=""), "", "dana@example.com", label="E-mail")
    site = member(
        Site(MAX_URL, load_default=""),
        "Website, with or without its scheme.",
        "https://example.com",
        label="Website",
    )
    street = member(Text(load_default=""), "", "Main Street 1", label="Street")
    city = member(Text(load_default=""), "", "Berlin", label="City")
    state = member(Text(load_default=""), "", "Berlin", label="State")
    zip = member(Text(load_default=""), "", "10115", label="Postal code")
    country = member(Text(load_default=""), "", "Germany", label="Country")

    @post_load
    def has_name(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        if not (data["fname"] or data["lname"] or data["org"]):
            raise ValidationError({"fname": ["is required unless data.lname or data.org is set"]})
        return data


class EmailData(New):
    email = member(Email(required=True), "The recipient.", "dana@example.com", label="Recipient")
    subject = member(Text(load_default=""), "", "Hello", label="Subject")
    body = member(Text(2000, multiline=True, load_default=""), "", "How are you?", label="Message")


class SmsData(New):
    phone = member(Phone(required=True), "The recipient.", "+49 170 123456", label="Phone number")
    message = member(Text(1600, multiline=True, load_default=""), "", "I am here.", label="Message")


class WifiData(New):
    ssid = member(
        Sized(_MAX_SSID, required=True),
        "The name of the network, at most 32 bytes.",
        "Guests",
        label="Network",
    )
    encryption = member(
        Encryption(load_default=None),
        "Without it: `WPA` with a password, else `nopass`.",
        "WPA",
        label="Security",
    )
    password = member(
        Sized(_MAX_WIFI_PASSWORD, load_default=""),
        "At most 64 bytes. Required unless `encryption` is `nopass`. It may be sent as `pass`.",
        "correct horse",
        label="Password",
    )

    @post_load
    def set_encryption(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        encryption = data["encryption"] or ("WPA" if data["password"] else "nopass")
        if encryption == "nopass":
            return data | {"encryption": encryption, "password": ""}
        if not data["password"]:
            raise ValidationError({"password": ["is required unless data.encryption is nopass"]})
        if encryption == "WPA" and not _WPA_PASSWORD.fullmatch(data["password"]):
            warn(
                "data.password is not a WPA password, so devices will not connect. A WPA password "
                "has 8 to 63 ASCII characters, or 64 hexadecimal digits."
            )
        return data | {"encryption": encryption}


_TEXTS: dict[str, Text] = {"text": Text(4096, multiline=True), "link": LinkTarget(MAX_URL), "phone": Phone()}
OBJECTS: dict[str, type[Schema]] = {"vcard": VcardData, "email": EmailData, "sms": SmsData, "wifi": WifiData}
# For forms, by type: the members of the data with their labels. A type that is a text has one
# member with its own name.
LABELS = {"link": {"link": "Target"}, "text": {"text": "Text"}, "phone": {"phone": "Phone number"}} | {
    code_type: {name: field.metadata["label"] for name, field in schema().fields.items()}
    for code_type, schema in OBJECTS.items()
}
_MAIN_MEMBER = {"email": "email", "sms": "phone"}  # the member that a plain string means


def _load(code_type: str, data: Any) -> Any:
    if code_type in _TEXTS:
        # {"phone": "..."} is accepted too, because email and sms are sent as objects.
        text = data.get(code_type) if isinstance(data, dict) else data
        if not isinstance(text, str):
            raise ValidationError(f"must be a string for the type {code_type}")
        return _TEXTS[code_type].deserialize(text)
    if isinstance(data, str) and code_type in _MAIN_MEMBER:
        data = {_MAIN_MEMBER[code_type]: data}
    schema = OBJECTS[code_type]()
    if not isinstance(data, dict):
        *first, last = schema.fields
        raise ValidationError(
            f"must be an object with {', '.join(first)} and {last} for the type {code_type}"
        )
    loaded = schema.load(data)
    if not data.keys() <= schema.fields.keys():
        warn_unknown(OBJECTS[code_type], schema.fields, data, "data.")
    return loaded


def _from_array(code_type: str, items: list[Any]) -> Any:
    """Return the object that an array means: its objects together, or its texts in the order of the
    members. Other arrays remain, and are refused."""
    names = OBJECTS[code_type]().fields
    if items and all(isinstance(item, dict) for item in items):
        return {name: value for item in items for name, value in item.items()}
    if 0 < len(items) <= len(names) and all(item is None or isinstance(item, str) for item in items):
        return dict(zip(names, items, strict=False))
    return items


def normalize(code_type: str, data: Any) -> Any:
    """Return the data in its stored form. Some clients name the password of a network `pass`."""
    if code_type in OBJECTS and isinstance(data, list):
        data = _from_array(code_type, data)
    if code_type == "wifi" and isinstance(data, dict) and "pass" in data:
        data = {"password": data["pass"]} | {
            name: value for name, value in data.items() if name != "pass" and value
        }
    try:
        return _load(code_type, data)
    except ValidationError as error:
        messages = _by_member(error)
    texts = {
        f"data{member and '.'}{member}": [
            re.sub("required$", f"required for the type {code_type}", text) for text in texts
        ]
        for member, texts in messages.items()
    }
    fields = {"data": _TEXTS[code_type]} if code_type in _TEXTS else OBJECTS[code_type]().fields
    values = data if isinstance(data, dict) else {_MAIN_MEMBER.get(code_type, code_type): data}
    sent = {"data": values.get(code_type) if code_type in _TEXTS else data}
    raise problems_of(
        texts,
        {name if name == "data" else f"data.{name}": field for name, field in fields.items()},
        sent | {f"data.{name}": value for name, value in values.items()},
    )


def sentences(code_type: str, data: dict[str, str]) -> dict[str, str]:
    try:
        _load(code_type, data)
    except ValidationError as error:
        problems = {member or code_type: texts[0] for member, texts in _by_member(error).items()}
    else:
        return {}
    labels = LABELS[code_type]
    in_words = {
        member: re.sub(r"data\.(\w+)", lambda match: labels[match[1]].lower(), text).replace(
            "is nopass", "is None"
        )
        for member, text in problems.items()
    }
    return {member: f"{labels[member]} {text}." for member, text in in_words.items()}


def _by_member(error: ValidationError) -> dict[str, list[str]]:
    return error.messages if isinstance(error.messages, dict) else {"": error.messages}


def own_alias(code_type: str, data: Any) -> str | None:
    base = f"{settings().base_url}/"
    return unquote(data.removeprefix(base)) if code_type == "link" and data.startswith(base) else None


def default_name(code_type: str, data: Any) -> str:
    match code_type:
        case "vcard":
            name = f"{data['fname']} {data['lname']}".strip() or data["org"]
        case "wifi":
            name = data["ssid"]
        case "email" | "sms":
            name = data[_MAIN_MEMBER[code_type]]
        case _:
            name = data
    return " ".join(name.split())[:_MAX_NAME]


def new_code() -> str:
    return "".join(secrets.choice(_CODE_ALPHABET) for _ in range(CODE_LENGTH))


def payload(code_type: str, data: Any, scan_url: str) -> str:
    """Return the URL that counts scans, so that updates reach printed codes. Wi-Fi data is encoded
    directly, because a phone that needs the password of a network may be offline."""
    if code_type != "wifi":
        return scan_url
    ssid, password = (re.sub(r'([\\;,:"])', r"\\\1", data[member]) for member in ("ssid", "password"))
    return f"WIFI:T:{data['encryption']};S:{ssid};{password and f'P:{password};'};"
