"""The list of blocked hosts of LINKMGR_BLOCKLIST_URL, which one process reads daily."""

from contextlib import suppress

from flask import current_app
from marshmallow import ValidationError

from linkmgr.core.errors import AppError
from linkmgr.core.outbound.fetch import Fetch
from linkmgr.core.settings import settings
from linkmgr.features.reports import repository as reports
from linkmgr.features.reports.schema import BlockedHost

MAX_BYTES = 8 << 20


def update() -> None:
    """Read the list if it is due. A failure keeps the hosts of the last one."""
    url = settings().blocklist_url
    if reports.take_list(url):
        try:
            reports.store_list(_hosts(_fetch(url)) if url else [])
        except AppError as error:
            current_app.logger.error("the list of blocked hosts cannot be read: %s", error.message)


def _fetch(url: str) -> str:
    request = Fetch(url, settings().private_networks, subject="LINKMGR_BLOCKLIST_URL")
    request.max_bytes = MAX_BYTES
    return request.body().decode(errors="replace")


def _hosts(text: str) -> list[str]:
    """Return the hosts of a list. Lines of a hosts file have an IP address in front of them."""
    hosts: dict[str, None] = {}
    field = BlockedHost()
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        for word in words[1:] or words:
            with suppress(ValidationError):
                hosts[field.clean(word)] = None
        if len(hosts) > reports.MAX_LISTED:
            current_app.logger.error("the list of blocked hosts is longer than %s", reports.MAX_LISTED)
            break
    return [*hosts][: reports.MAX_LISTED]
