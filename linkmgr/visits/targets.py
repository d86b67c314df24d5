"""The targets of a link are keyed by lower-case names. The functions yield names that match a
visitor, the most specific first."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, unquote_plus, unquote_to_bytes, urlencode

import ua_parser
from langcodes import Language, standardize_tag
from werkzeug.datastructures import LanguageAccept
from werkzeug.http import parse_accept_header

from linkmgr.core.fields import languages
from linkmgr.core.fields.countries import NAMES
from linkmgr.core.fields.urls import MAX_URL
from linkmgr.visits.geoip import Country

Targets = dict[str, str]

_APPLE = re.compile(r"\b(iPhone|iPad|iPod|iOS)\b", re.IGNORECASE)
_TABLET = re.compile(r"iPad|Tablet|PlayBook|Kindle|Silk/|Android(?!.*Mobi)")
_PHONE = re.compile(r"Mobi|iPhone|iPod|BlackBerry|Windows Phone")
# Names of operating systems that clients use, by the name that ua-parser returns.
_SYSTEMS = {
    "mac os x": ("mac", "macos", "mac os", "os x", "osx", "macintosh"),
    "ios": ("apple",),
    "blackberry os": ("blackberry",),
    "chrome os": ("chromeos", "chromebook"),
}
_DEVICE_TYPES = {
    "tablet": ("tablet", "mobile"),
    "phone": ("phone", "smartphone", "mobile"),
    "desktop": ("desktop", "computer"),
}
DEVICE_WORDS = {word for words in (*_SYSTEMS.values(), *_DEVICE_TYPES.values()) for word in words}

KEPT = "%&=+!$'()*,/:;?@~"  # what a query may have as it is, with letters, digits and -._
_KEPT_IN_PATH = "!$&'()*+,;=:@"  # what a segment may have as it is, with letters, digits and -._~
_MAX_ACCEPTED = 512  # characters of the header Accept-Language; the rest is ignored
# Codes of regions and scripts by name, as language lists write them: Portuguese (Brazil).
REGIONS = {name.lower(): code for code, names in NAMES.items() for name in names}
REGIONS |= {"simplified": "Hans", "traditional": "Hant"}


def first_match(targets: Targets, names: Iterable[str]) -> str | None:
    return next((targets[name] for name in names if name in targets), None)


def device_names(agent: str) -> Iterator[str]:
    parsed = ua_parser.parse(agent)
    if parsed.device:
        yield from (name.lower() for name in (parsed.device.family, parsed.device.brand) if name)
    system, version = (parsed.os.family.lower(), parsed.os.major) if parsed.os else ("", None)
    is_linux = "linux" in agent.lower() and system not in ("linux", "android", "windows phone")
    versions = ({system: version} if system else {}) | ({"linux": None} if is_linux else {})
    yield from described_names(device_type(agent, system), versions)


def device_type(agent: str, system: str) -> str:
    return (
        "tablet"
        if _TABLET.search(agent)
        else "phone"
        if _PHONE.search(agent)
        else "desktop"
        if system
        else ""
    )


def system_names(system: str) -> tuple[str, ...]:
    """Return all names of an operating system, of which one is given."""
    family = next((name for name, words in _SYSTEMS.items() if system in words), system)
    return (family, *_SYSTEMS.get(family, ()))


def described_names(type_: str, versions: dict[str, str | None]) -> Iterator[str]:
    """Yield the names of a type of device with these systems."""
    words = _DEVICE_TYPES.get(type_, ())
    for system, version in versions.items():
        for name in system_names(system):
            yield from (f"{name} {word}" for word in (version, *words) if word)
            yield name
    yield from words


def country_names(country: Country) -> Iterator[str]:
    yield from (text.lower() for text in country if text)
    yield from (name.lower() for name in NAMES.get(country.code or "", ()))


@lru_cache(maxsize=1024)
def preferred_languages(accepted: str) -> tuple[str, ...]:
    """Return the codes in the header Accept-Language that the visitor prefers, in this order: those
    with at least 0.9 of the best quality. Browsers give the variants of a language that much, and
    less to other languages."""
    sent = [pair for pair in parse_accept_header(accepted[:_MAX_ACCEPTED], LanguageAccept) if pair[1] > 0]
    least = round(0.9 * max((quality for _, quality in sent), default=0), 3)  # a quality has three digits
    return tuple(code for code, quality in sent if quality >= least)


@lru_cache(maxsize=4096)
def language_tag(name: str) -> str:
    """Return the canonical BCP 47 tag of a code or an English name, or the name, in lower case."""
    name = name.lower()
    language, _, region = name.removesuffix(")").partition(" (")
    if language in languages.CODES and (not region or region in REGIONS):
        name = f"{languages.CODES[language]}-{REGIONS.get(region, '')}".removesuffix("-")
    with suppress(ValueError):
        return standardize_tag(name, macro=True).lower()
    return name


def by_tag(targets: Targets) -> Targets:
    """Return targets by the tags of their languages. Of several names, the first one counts."""
    return {language_tag(name): targets[name] for name in reversed(targets)}


@lru_cache(maxsize=4096)
def _wider_tags(tag: str) -> tuple[str, ...]:
    """Return the tags that mean a language in a region or a script, or all of it: zh-HK is zh-Hant.
    Without both, it is that of its most likely region."""
    try:
        language = Language.get(tag).maximize()
    except ValueError:
        return ()
    wider = language.broader_tags() if "-" in tag else [f"{tag}-{language.territory}"]
    return tuple(code.lower() for code in wider if not code.startswith("und"))


def language_names(accepted: str) -> Iterator[str]:
    """Yield the tags that may stand for each preferred language: of Nynorsk also those of
    Norwegian, by which statistics count both."""
    sent = [language_tag(code) for code in preferred_languages(accepted)]
    with_regions = {tag.partition("-")[0] for tag in sent if "-" in tag}
    for tag in sent:
        primary = tag.partition("-")[0]
        label = languages.NAMES.get(primary, [""])[0].lower()
        group = languages.CODES.get(label, primary)
        wider = (tag,) if tag in with_regions else (tag, *_wider_tags(tag))
        yield from wider
        if group != primary:
            yield from (group + code.removeprefix(primary) for code in wider)


def with_path(url: str, rest: str) -> str | None:
    """Return the URL with the rest of an encoded path behind its own, in normal form, or None if
    the rest leads out of this path, also for servers that decode `/`, read `\\` as `/` or ignore
    what follows `;`, or if the URL would be too long."""
    path: list[str] = []
    for segment in map(unquote_to_bytes, rest.split("/")):
        if b".." in (parts := re.split(rb"[/\\;]", segment)) and (not path or len(parts) > 1):
            return None
        if segment == b"..":
            path.pop()
        elif segment != b".":
            path.append(quote(segment, safe=_KEPT_IN_PATH))
    base = re.split("[?#]", url, maxsplit=1)[0]
    extended = f"{base.removesuffix('/')}/{'/'.join(path)}{url[len(base) :]}"
    return extended if len(extended) <= MAX_URL else None


def with_parameters(url: str, parameters: Sequence[Sequence[str]]) -> str:
    return _merged(url, urlencode([(name, value) for name, value in parameters], quote_via=quote))


def with_query(url: str, query: str) -> str:
    """Return the URL with the query of a request, as WSGI has it. A URL that would be too long
    stays as it is."""
    merged = _merged(url, quote(query, safe=KEPT, encoding="latin-1"))
    return merged if len(merged) <= MAX_URL else url


def with_parameter(url: str, name: str, value: str) -> str:
    """Return the URL with a parameter that needs no encoding, as `with_query` does, but in a third
    of the time if no other one can have its name."""
    base, mark, fragment = url.partition("#")
    path, _, own = base.partition("?")
    if name in own or "%" in own:
        return with_query(url, f"{name}={value}")
    extended = f"{path}?{own}{own and '&'}{name}={value}{mark}{fragment}"
    return extended if len(extended) <= MAX_URL else url


def _merged(url: str, query: str) -> str:
    """Return the URL with a query, whose values replace those of equal names."""
    base, mark, fragment = url.partition("#")
    path, _, own = base.partition("?")
    sent = [part for part in query.split("&") if part]
    names = {_name(part) for part in sent}
    kept = [part for part in own.split("&") if part and _name(part) not in names]
    return f"{path}?{'&'.join(kept + sent)}{mark}{fragment}" if sent else url


def _name(part: str) -> str:
    return unquote_plus(part.partition("=")[0])


def pairs_of(query: str) -> list[tuple[str, str]]:
    """Return the names and values of a query, also if it was copied from HTML, where & is &amp;."""
    return parse_qsl(query.replace("&amp;", "&"), keep_blank_values=True)


def app_store_url(deeplink: dict[str, Any], agent: str) -> str | None:
    """Return the URL of the app in the store of the visitor's phone, or None if `auto` is off or
    there is none."""
    # Its user agent also contains iPhone and Android
    if deeplink.get("auto") is False or "Windows Phone" in agent:
        return None
    name = "apple" if _APPLE.search(agent) else "google" if "android" in agent.lower() else ""
    return deeplink.get(name) or None
