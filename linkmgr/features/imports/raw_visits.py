"""Visits as sources have them."""

import ipaddress
import re
from typing import Any

from linkmgr.features.imports import cells, figures
from linkmgr.features.imports.cells import as_text
from linkmgr.features.imports.files.text import Entry
from linkmgr.features.imports.rows import ImportRow, RawVisit, Unreadable

_MAX_VISIT = 2048  # characters of a text of a visit


def _address(value: Any) -> str:
    """Return the IP address in the form of live visits, or "" if it does not identify a visitor."""
    try:
        ip = ipaddress.ip_address(as_text(value).strip())
    except ValueError:
        return ""
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return "" if ip.is_loopback or ip.is_unspecified else str(ip)


def visit(time: Any, referrer: Any, agent: Any, country: Any, address: Any = "") -> RawVisit:
    moment = figures.time(as_text(time), "a time", end_of_day=False)
    if moment is None:
        raise Unreadable("has no time.")
    texts = [
        cells.value(as_text(value)[:_MAX_VISIT].replace("\0", "")) for value in (referrer, agent, country)
    ]
    code = texts[2].upper()
    return RawVisit(
        moment,
        "" if texts[0] == "direct" else texts[0],
        texts[1],
        code if re.fullmatch("[A-Z]{2}", code) and code not in ("XX", "ZZ") else "",
        _address(address),
    )


def visit_row(number: int, entry: Entry) -> ImportRow:
    values = entry.values
    members = ("click_time", "referrer", "user_agent", "country_code", "ip_address")
    try:
        raw = visit(*(values.get(name) for name in members))
    except Unreadable as problem:
        return ImportRow(number, raw=cells.report(cells.columns(values)), unreadable=str(problem))
    return ImportRow(
        number, {"custom": as_text(values["shorturl"])[:_MAX_VISIT]}, visits=[raw], file="visits"
    )
