"""Countries and cities are read from the .mmdb file in the setting GEOIP_DATABASE. Without one,
iptocc has the country to which the regional internet registries assigned the address. Private and
loopback addresses have none."""

from functools import lru_cache
from typing import Any, NamedTuple

import maxminddb
from iptocc import country_code

from linkmgr.core.fields.countries import NAMES
from linkmgr.core.settings import InvalidSetting, settings


class Country(NamedTuple):
    name: str | None = None
    code: str | None = None


class Location(NamedTuple):
    country: Country = Country()
    city: str | None = None


def init_app() -> None:
    """Stop the start if the file cannot be read."""
    _open(settings().geoip_database)


@lru_cache(maxsize=8)
def _open(path: str) -> maxminddb.Reader | None:
    try:
        return maxminddb.open_database(path) if path else None
    except (OSError, maxminddb.InvalidDatabaseError):
        raise InvalidSetting("LINKMGR_GEOIP_DATABASE must be a readable .mmdb file.") from None


def find_location(address: str) -> Location:
    """Return the location of an IP address. Entries contain either objects with names, or the texts
    `country`, `country_code` and `city`."""
    reader = _open(settings().geoip_database)
    if reader is None:
        code = country_code(address)
        return Location(Country(NAMES.get(code, [code])[0], code)) if code else Location()
    try:
        entry: Any = reader.get(address)
    except (ValueError, maxminddb.InvalidDatabaseError):
        return Location()
    if not isinstance(entry, dict):
        return Location()
    country, city = entry.get("country"), entry.get("city")
    if isinstance(country, dict):
        country = Country(_text(country.get("names", {}).get("en")), _text(country.get("iso_code")))
    else:
        country = Country(_text(country), _text(entry.get("country_code")))
    return Location(country, _text(city.get("names", {}).get("en") if isinstance(city, dict) else city))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
