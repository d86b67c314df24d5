"""/<alias> of a bio page: a person's links.  linkmgr/pages/short.py finds it."""

import re
import unicodedata
from urllib.parse import urlsplit

from flask import render_template, url_for
from flask.typing import ResponseReturnValue

from linkmgr.db.statements import Row
from linkmgr.settings import settings


def show(bio: Row) -> ResponseReturnValue:
    page = render_template(
        "bio.html",
        bio=bio,
        address=f"{settings().base_url}/{bio['alias']}",
        avatar=url_for("avatar.draw", username=_drawn_as(bio["name"]) or bio["alias"]),
        base=settings().base_url,
        hosts=[_host(link["url"]) for link in bio["links"]],
        summary=" ".join(bio["bio"].split()),
    )
    return page, {"Cache-Control": "no-cache"}  # so that an update is seen at once


def _drawn_as(name: str) -> str | None:
    """The name in the letters that avatars are drawn of, where it has any."""
    ascii_only = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = re.sub("[^A-Za-z0-9]+", "-", ascii_only).strip("-")[:50]
    return words if len(words) >= 3 else None  # noqa: PLR2004


def _host(url: str) -> str:
    """What a visitor is told of where a link leads; nothing of our short links, which tell nothing themselves."""
    host = url.split("/")[2]
    return "" if host == urlsplit(settings().base_url).netloc else host.removeprefix("www.")
