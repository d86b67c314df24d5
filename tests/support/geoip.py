"""Small .mmdb files, created for a test."""

from pathlib import Path
from typing import Any

from mmdb_writer import MMDBWriter
from netaddr import IPSet  # type: ignore[import-untyped]

PERU, CHILE, LIMA = "203.0.113.7", "198.51.100.9", "192.0.2.200"
_COUNTRIES: dict[str, Any] = {
    "203.0.113.0/24": {"country": {"iso_code": "PE", "names": {"en": "Peru", "de": "Peru"}}},
    "198.51.100.0/24": {"country": "Chile", "country_code": "CL"},
    "192.0.2.0/25": {"continent": {"code": "EU"}},
    "192.0.2.192/26": {"country": {"iso_code": "PE", "names": {"en": "Peru"}}, "city": {"names": {"en": "Lima"}}},
}


def write(path: Path) -> str:
    """Write countries in both forms that such files use, and return the setting."""
    writer = MMDBWriter(ip_version=6, ipv4_compatible=True, database_type="Test-Country")
    for network, record in _COUNTRIES.items():
        writer.insert_network(IPSet([network]), record)
    writer.to_db_file(str(path))
    return str(path)
