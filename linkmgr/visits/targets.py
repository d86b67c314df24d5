"""Where the visitor of a short link goes.  Targets are chosen by lower-case names, the most telling one first."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

import ua_parser

from linkmgr.visits.geoip import Country

Targets = dict[str, str]

_CRAWLER = re.compile(
    r"facebookexternalhit|facebot|twitterbot|linkedinbot|slackbot|whatsapp/|telegrambot|discordbot|skypeuripreview"
    r"|pinterestbot|redditbot|vkshare|mastodon|iframely|embedly|cardyb|applebot",
    re.IGNORECASE,
)
_APPLE = re.compile(r"\b(iPhone|iPad|iPod)\b")
_TABLET = re.compile(r"iPad|Tablet|PlayBook|Kindle|Silk/|Android(?!.*Mobi)")
_PHONE = re.compile(r"Mobi|iPhone|iPod|BlackBerry|Windows Phone")
# What clients call a system besides its name for ua-parser.
_SYSTEMS = {
    "mac os x": ("mac", "macos", "mac os", "os x", "osx", "macintosh"),
    "ios": ("apple",),
    "blackberry os": ("blackberry",),
    "chrome os": ("chromeos", "chromebook"),
}
_KINDS = {
    "tablet": ("tablet", "mobile"),
    "phone": ("phone", "smartphone", "mobile"),
    "desktop": ("desktop", "computer"),
}
_LANGUAGES = {
    "ar": "arabic", "bg": "bulgarian", "bn": "bengali", "ca": "catalan", "cs": "czech", "da": "danish",
    "de": "german", "el": "greek", "en": "english", "es": "spanish", "et": "estonian", "fa": "persian",
    "fi": "finnish", "fr": "french", "he": "hebrew", "hi": "hindi", "hr": "croatian", "hu": "hungarian",
    "id": "indonesian", "it": "italian", "ja": "japanese", "ko": "korean", "lt": "lithuanian", "lv": "latvian",
    "ms": "malay", "nb": "norwegian", "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sk": "slovak", "sl": "slovenian", "sr": "serbian",
    "sv": "swedish", "sw": "swahili", "th": "thai", "tr": "turkish", "uk": "ukrainian", "ur": "urdu",
    "vi": "vietnamese", "zh": "chinese",
}  # fmt: skip

# What lists of languages write in brackets behind the name, by the codes of regions and scripts.
_REGIONS = {
    "ar": "argentina", "at": "austria", "au": "australia", "be": "belgium", "br": "brazil", "ca": "canada",
    "ch": "switzerland", "cn": "china", "co": "colombia", "de": "germany", "es": "spain", "fr": "france",
    "gb": "united kingdom", "hans": "simplified", "hant": "traditional", "hk": "hong kong", "ie": "ireland",
    "in": "india", "it": "italy", "mx": "mexico", "nz": "new zealand", "pt": "portugal", "sg": "singapore",
    "tw": "taiwan", "us": "united states", "za": "south africa",
}  # fmt: skip
_SCRIPTS = {"zh-cn": "hans", "zh-sg": "hans", "zh-tw": "hant", "zh-hk": "hant", "zh-mo": "hant"}


def first_match(targets: Targets, names: Iterable[str]) -> str | None:
    """The target of the first name that has one."""
    return next((targets[name] for name in names if name in targets), None)


@lru_cache(maxsize=1024)
def is_crawler(agent: str) -> bool:
    """Whether a social network asks, in order to show a preview of the link."""
    return _CRAWLER.search(agent) is not None


def devices(agent: str) -> Iterator[str]:
    """The model, the maker, the system with and without its version, and the kind of device."""
    parsed = ua_parser.parse(agent)
    if parsed.device:
        yield from (name.lower() for name in (parsed.device.family, parsed.device.brand) if name)
    yield from _kinds(agent, parsed.os.family.lower() if parsed.os else "", parsed.os.major if parsed.os else None)


def _kinds(agent: str, system: str, version: str | None) -> Iterator[str]:
    kind = "tablet" if _TABLET.search(agent) else "phone" if _PHONE.search(agent) else "desktop" if system else ""
    words = _KINDS.get(kind, ())
    for name in (system, *_SYSTEMS.get(system, ())):
        yield from (f"{name} {version}", *(f"{name} {word}" for word in words), name)
    if "linux" in agent.lower() and system not in ("linux", "android", "windows phone"):
        yield from (*(f"linux {word}" for word in words), "linux")
    yield from words


def countries(country: Country) -> Iterator[str]:
    """By name, and by code, for which people write UK as well."""
    yield from (text.lower() for text in country if text)
    if country.code == "GB":
        yield "uk"


def languages(accepted: Iterable[str]) -> Iterator[str]:
    """`pt-BR` is also Portuguese; what a visitor likes best comes first, in all of its names."""
    for code in accepted:
        exact = code.lower()
        primary, *others = exact.split("-")
        name = _LANGUAGES.get(primary, primary)
        yield from (exact, exact.replace("-", "_"))
        yield from (f"{name} ({_REGIONS[other]})" for other in (*others, _SCRIPTS.get(exact)) if other in _REGIONS)
        yield from (primary, name, f"{primary}-{primary}", f"{primary}_{primary}")


def with_parameters(url: str, parameters: list[list[str]]) -> str:
    """The URL with the parameters behind those that it has, and before its fragment."""
    if not parameters:
        return url
    address, mark, fragment = url.partition("#")
    joint = "?" if "?" not in address else "" if address[-1] in "?&" else "&"
    return address + joint + urlencode([(name, value) for name, value in parameters], quote_via=quote) + mark + fragment


def app_store_url(deeplink: dict[str, Any], agent: str) -> str | None:
    """The address of the app in the store of the visitor's phone, unless it is not to be opened."""
    if deeplink.get("auto") is False or "Windows Phone" in agent:  # calls itself all of the others
        return None
    name = "apple" if _APPLE.search(agent) else "google" if "Android" in agent else ""
    return deeplink.get(name) or None
