"""Countries of IP addresses, from the file in the setting GEOIP_DATABASE."""

from typing import Any, NamedTuple

import maxminddb
from flask import Flask

from linkmgr.settings import InvalidSetting, settings, this_app


class Country(NamedTuple):
    """English name and ISO 3166 code of a country, or None where unknown."""

    name: str | None = None
    code: str | None = None


def init_app(app: Flask) -> None:
    app.extensions["linkmgr_countries"] = _open(settings().geoip_database)


def _open(path: str) -> maxminddb.Reader | None:
    try:
        return maxminddb.open_database(path) if path else None
    except (OSError, maxminddb.InvalidDatabaseError):
        raise InvalidSetting("LINKMGR_GEOIP_DATABASE must be a readable .mmdb file.") from None


def find_country(address: str) -> Country:
    """Return the country of an IP address. Records contain either a country object or the texts `country` and
    `country_code`."""
    reader: maxminddb.Reader | None = this_app().extensions["linkmgr_countries"]
    try:
        record: Any = reader.get(address) if reader else None
    except (ValueError, maxminddb.InvalidDatabaseError):
        return Country()
    if not isinstance(record, dict):
        return Country()
    country = record.get("country")
    if isinstance(country, dict):
        return Country(_text(country.get("names", {}).get("en")), _text(country.get("iso_code")))
    return Country(_text(country), _text(record.get("country_code")))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
