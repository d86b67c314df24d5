"""Columns of the exports of other services, in the words of their documentation.

Names are compared without case, spaces and punctuation. `a.b` is the member b of the member a of a JSON object.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from linkmgr.imports.rows import LINK_MEMBERS, MEMBERS

MAX_NAME = 100  # characters; names in JSON can have megabytes
ANY_SEPARATOR = "|;,"  # of names of tags in a cell; the first that the cell has separates them

Columns = dict[str, tuple[str, ...]]  # of each member; the first that is not empty is the member


def normalize(name: str) -> str:
    return _cached(name) if len(name) <= MAX_NAME else _normalize(name)


def _normalize(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.lower()) or name


_cached = lru_cache(maxsize=1024)(_normalize)  # each row repeats the names


def _columns(**names: str) -> Columns:
    return {member: tuple(columns.split()) for member, columns in names.items() if columns}


# As most services name them.
_USUAL = _columns(
    domain="domainfullname domainname domain hostname domainhostname",
    title="title titles name",
    metatitle="metatitle",
    description="description notes comments",
    password="password",  # noqa: S106 - a name
    expiry="expiry expires expiresat expiresatdate expirein expirationdate metavaliduntil validuntil",
    tags="tags labels channels",
    created="createdat createdatdate datecreated created creationdate date timestamp",
    clicks="visitssummarytotal visitscount visitcount visits engagements totalengagements totalclicks clicks hits",
)
_GUESSES = _USUAL | _columns(
    url="url longurl target destination destinationurl originalurl link",
    custom="alias custom slug shortcode code keyword key path backhalf short shorturl shortlink",
)


class Source(NamedTuple):
    name: str
    required: tuple[tuple[str, ...], ...]  # one of each
    columns: Columns
    tag_separators: str
    short_urls: tuple[str, ...]  # columns that may have several short URLs of a link
    card: str  # the column that says that the source shows a preview of the link; empty: always


def _source(name: str, required: str, *, short_urls: str = "", card: str = "", **columns: str) -> Source:
    alternatives = tuple(tuple(names.split("|")) for names in required.split())
    separators = "|" if name in ("linkmgr", "shlink") else ANY_SEPARATOR
    return Source(name, alternatives, _USUAL | _columns(**columns), separators, tuple(short_urls.split()), card)


SOURCES = (
    # GET /api/urls/export, and the lists of the API
    _source(
        "linkmgr",
        "longurl|url uniqueclicks|haspassword|metatitle alias|custom",
        **{member: member for member in LINK_MEMBERS}
        | {
            "url": "url longurl",
            "custom": "alias custom",
            "tags": "channels tags",
            "created": "date",
            "clicks": "clicks",
        },
    ),
    # https://docs.kutt.it, "Get list of links"
    _source("kutt", "target address", url="target", custom="address"),
    # https://developers.rebrandly.com/docs/link-entity; the export of a workspace has the same names
    _source("rebrandly", "destination slashtag", url="destination", custom="slashtag shorturl"),
    # https://docs.short.io/articles/managing-links/how-to-export-short-links-from-short.io
    _source(
        "shortio",
        "originalurl|originalurls path|paths|originalpath|originalpaths|shorturl|shorturls",
        url="originalurl originalurls",
        custom="originalpath originalpaths path paths shorturl shorturls",
        domain="domain hostname domainhostname shorturl shorturls",
    ),
    # https://shlink.io/documentation/advanced/import-short-urls/, the export of shlink-web-client, and
    # https://api-spec.shlink.io of the REST API
    _source("shlink", "longurl shortcode", url="longurl", custom="shortcode"),
    # https://support.bitly.com/hc/en-us/articles/115000268051, and the API (GET /groups/{group_guid}/bitlinks):
    # https://dev.bitly.com/api-reference/#getBitlinksByGroup
    _source(
        "bitly",
        "link|bitlink longurl|destinationurl|originalurl",
        url="longurl destinationurl originalurl",
        custom="customlink custombitlinks bitlink link id",
        short_urls="customlink custombitlinks bitlink link id",
    ),
    # https://dub.co/help/article/how-to-export-links, and https://dub.co/docs/api-reference/links/retrieve-a-list
    _source(
        "dub",
        "shortlink|link url|destinationurl",
        url="url destinationurl",
        card="proxy",
        custom="key shortlink link",
        metatitle="title",
        metadescription="description",
        metaimage="image",
        geotarget="geo",
        description="comments",
    ),
    # The table yourls_url (https://github.com/YOURLS/YOURLS/blob/master/includes/functions-install.php), and
    # https://github.com/GautamGupta/YOURLS-Import-Export
    _source(
        "yourls", "keyword|source url|target timestamp|clicks|hits", url="url target", custom="keyword source shorturl"
    ),
)
BY_NAME = {source.name: source for source in SOURCES}


def recognize_source(columns: Iterable[str]) -> Source | None:
    names = {normalize(column) for column in columns}
    return next((s for s in SOURCES if all(names & set(alternatives) for alternatives in s.required)), None)


def mapping_of(source: Source | None, columns: list[str]) -> dict[str, str]:
    names = {normalize(column): column for column in reversed(columns)}
    candidates = source.columns if source else _GUESSES
    firsts = {member: next(filter(names.get, candidates.get(member, ())), None) for member in MEMBERS}
    return {member: names[name] for member, name in firsts.items() if name}
