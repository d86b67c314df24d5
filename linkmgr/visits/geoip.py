"""Which country an address is in, by the file that the setting GEOIP_DATABASE names."""

from typing import Any, NamedTuple

import maxminddb
from flask import Flask

from linkmgr.settings import InvalidSetting, settings, this_app


class Country(NamedTuple):
    """Its English name, and its code by ISO 3166; None: not known."""

    name: str | None = None
    code: str | None = None


def init_app(app: Flask) -> None:
    app.extensions["linkmgr_countries"] = _opened(settings().geoip_database)


def _opened(path: str) -> maxminddb.Reader | None:
    try:
        return maxminddb.open_database(path) if path else None
    except (OSError, maxminddb.InvalidDatabaseError):
        raise InvalidSetting("LINKMGR_GEOIP_DATABASE must be a readable .mmdb file.") from None


def of(address: str) -> Country:
    """Files hold a country with its names and its code, or both as texts of their own."""
    reader: maxminddb.Reader | None = this_app().extensions["linkmgr_countries"]
    try:
        found: Any = reader.get(address) if reader else None
    except (ValueError, maxminddb.InvalidDatabaseError):
        return Country()
    if not isinstance(found, dict):
        return Country()
    country = found.get("country")
    if isinstance(country, dict):
        return Country(_text(country.get("names", {}).get("en")), _text(country.get("iso_code")))
    return Country(_text(country), _text(found.get("country_code")))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
