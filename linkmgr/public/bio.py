"""Bio pages. linkmgr/public/short.py routes /<alias> to them."""

import re
import unicodedata
from urllib.parse import urlsplit

from flask import render_template, url_for
from flask.typing import ResponseReturnValue

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.short_urls import short_url
from linkmgr.core.settings import settings


def show(bio: Row) -> ResponseReturnValue:
    return render(bio), {"Cache-Control": "no-cache"}  # updates take effect immediately


def render(bio: Row) -> str:
    return render_template(
        "bio.html",
        bio=bio,
        url=short_url(None, bio["alias"]),
        avatar=url_for("avatar.show_for_bio", name=_avatar_name(bio["name"]) or bio["alias"]),
        base=settings().base_url,
        hosts=[_host(link["url"]) for link in bio["links"]],
        summary=" ".join(bio["bio"].split()),
    )


def _avatar_name(name: str) -> str | None:
    ascii_only = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = re.sub("[^A-Za-z0-9]+", "-", ascii_only).strip("-")[:50]
    return words if len(words) >= 3 else None  # noqa: PLR2004


def _host(url: str) -> str:
    host = urlsplit(url).netloc
    return "" if host == urlsplit(settings().base_url).netloc else host.removeprefix("www.")
