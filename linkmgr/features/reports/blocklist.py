"""The list of blocked hosts of LINKMGR_BLOCKLIST_URL, which one process reads daily."""

import re
from contextlib import suppress

from flask import current_app
from marshmallow import ValidationError

from linkmgr.core.errors import AppError
from linkmgr.core.fields.urls import parse_ip
from linkmgr.core.outbound.fetch import Fetch
from linkmgr.core.settings import settings
from linkmgr.features.reports import repository as reports
from linkmgr.features.reports.schema import BlockedHost

MAX_BYTES = 8 << 20
_COMMENT = re.compile(r"(?:^|\s)#.*")  # others belong to rules for parts of pages
_HOST = re.compile(r"[^/?#@|*^$]+")
# Rules of ad blockers that block whole pages, and names with a wildcard for the subdomains
_RULE = re.compile(r"(?:\|\||\*\.)([^/?#@|*^$]+)(?:\^(?:\$(?:all|document|doc|important|,)+)?)?")


def update() -> None:
    """Read the list if it is due. A failure keeps the hosts of the last one, and so does what is no
    list, such as a page that says where it is now."""
    url = settings().blocklist_url
    if not reports.take_list(url):
        return
    try:
        hosts = _hosts(_fetch(url)) if url else []
    except AppError as error:
        current_app.logger.error("the list of blocked hosts cannot be read: %s", error.message)
        return
    if url and not hosts:
        current_app.logger.error("the list of blocked hosts has no host, so the last list stays")
        return
    reports.store_list(hosts)


def _fetch(url: str) -> str:
    request = Fetch(url, settings().private_networks, subject="LINKMGR_BLOCKLIST_URL")
    request.max_bytes = MAX_BYTES
    return request.body().decode("utf-8-sig", errors="replace")


def _hosts(text: str) -> list[str]:
    """Return the hosts of as many lines as are read."""
    hosts: dict[str, None] = {}
    field = BlockedHost()
    for line in text.splitlines():
        for word in _words(line):
            with suppress(ValidationError):
                hosts[field.clean(word)] = None
        if len(hosts) > reports.MAX_LISTED:
            current_app.logger.error("the list of blocked hosts exceeds %s", reports.MAX_LISTED)
            break
    return [*hosts][: reports.MAX_LISTED]


def _words(line: str) -> list[str]:
    """Return what may be hosts: one, or those behind the IP address in a line of a hosts file."""
    if rule := _RULE.fullmatch(line.strip()):
        return [rule[1]]
    words = _COMMENT.sub("", line).split()
    hosts = words if len(words) == 1 else words[1:] if words and parse_ip(words[0]) else []
    return [host for host in hosts if _HOST.fullmatch(host)]
