"""Columns of the exports of other services, in the words of their documentation.

Names are compared without case, spaces and punctuation. `a.b` is the member b of the member a of a JSON record.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from linkmgr.imports.rows import MEMBERS

MAX_NAME = 100  # characters; names in JSON can have megabytes
ANY_SEPARATOR = "|;,"  # of names of tags in a cell; the first that the cell has separates them


class Source(NamedTuple):
    name: str
    required: tuple[tuple[str, ...], ...]  # one of each
    columns: dict[str, tuple[str, ...]]  # the first that is not empty is the member
    tag_separators: str


def normalize(name: str) -> str:
    return _cached(name) if len(name) <= MAX_NAME else _normalize(name)


def _normalize(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.lower()) or name


_cached = lru_cache(maxsize=1024)(_normalize)  # each row repeats the names


def _source(name: str, required: str, columns: str, tag_separators: str = ANY_SEPARATOR) -> Source:
    """Return a source. `columns` has a line for each member, the member first."""
    alternatives = tuple(tuple(names.split("|")) for names in required.split())
    lines = (line.split() for line in columns.strip().splitlines())
    return Source(name, alternatives, {member: tuple(names) for member, *names in lines}, tag_separators)


SOURCES = (
    # GET /api/urls/export, and the lists of the API
    _source(
        "linkmgr",
        "longurl|url uniqueclicks|haspassword|metatitle alias|custom",
        """
        url url longurl
        custom alias custom
        domain domain
        metatitle metatitle title
        description description
        password password
        haspassword haspassword
        expiry expiry
        tags channels tags
        created date
        clicks clicks
        status status
        type type
        metadescription metadescription
        metaimage metaimage
        geotarget geotarget
        devicetarget devicetarget
        languagetarget languagetarget
        parameters parameters
        deeplink deeplink
        """,
        "|",
    ),
    # https://docs.kutt.it, "Get list of links"
    _source(
        "kutt",
        "target address",
        """
        url target
        custom address
        domain domain
        description description
        password password
        expiry expirein
        created createdat
        clicks visitcount
        banned banned
        """,
    ),
    # https://developers.rebrandly.com/docs/link-entity; the export of a workspace has the same names
    _source(
        "rebrandly",
        "destination slashtag",
        """
        url destination
        custom slashtag shorturl
        domain domainfullname domainname domain
        metatitle title
        description description notes
        tags tags
        created createdat created creationdate
        clicks clicks totalclicks
        """,
    ),
    # https://docs.short.io/articles/managing-links/how-to-export-short-links-from-short.io
    _source(
        "shortio",
        "originalurl|originalurls path|paths|originalpath|originalpaths|shorturl|shorturls",
        """
        url originalurl originalurls
        custom originalpath originalpaths path paths shorturl shorturls
        domain domain hostname domainhostname shorturl shorturls
        metatitle title titles
        password password
        expiry expiresat expiresatdate
        tags tags
        created createdat createdatdate created
        clicks clicks totalclicks
        """,
    ),
    # https://shlink.io/documentation/advanced/import-short-urls/, the export of shlink-web-client, and
    # https://api-spec.shlink.io of the REST API
    _source(
        "shlink",
        "longurl shortcode",
        """
        url longurl
        custom shortcode
        domain domain
        metatitle title
        expiry metavaliduntil validuntil
        tags tags
        created createdat datecreated
        clicks visitssummarytotal visitscount visits
        """,
        "|",
    ),
    # https://support.bitly.com/hc/en-us/articles/115000268051, and the API (GET /groups/{group_guid}/bitlinks):
    # https://dev.bitly.com/api-reference/#getBitlinksByGroup
    _source(
        "bitly",
        "link|bitlink longurl|destinationurl|originalurl",
        """
        url longurl destinationurl originalurl
        custom customlink custombitlinks bitlink link id
        metatitle title
        tags tags
        created datecreated createdat created
        clicks engagements totalengagements totalclicks clicks
        """,
    ),
    # https://dub.co/help/article/how-to-export-links, and https://dub.co/docs/api-reference/links/retrieve-a-list
    _source(
        "dub",
        "shortlink|link url|destinationurl",
        """
        url url destinationurl
        custom key shortlink link
        domain domain
        metatitle title
        metadescription description
        metaimage image
        description comments
        password password
        expiry expiresat
        tags tags
        created createdat
        clicks clicks
        """,
    ),
    # The table yourls_url (https://github.com/YOURLS/YOURLS/blob/master/includes/functions-install.php), and
    # https://github.com/GautamGupta/YOURLS-Import-Export
    _source(
        "yourls",
        "keyword|source url|target timestamp|clicks|hits",
        """
        url url target
        custom keyword source shorturl
        metatitle title
        created timestamp
        clicks clicks hits
        """,
    ),
)
BY_NAME = {source.name: source for source in SOURCES}

# Guesses for a file of none of these.
_USUAL = {
    "url": "url longurl target destination destinationurl originalurl link",
    "custom": "alias custom slug shortcode code keyword key path backhalf shorturl shortlink",
    "domain": "domain",
    "metatitle": "metatitle title name",
    "description": "description notes comments",
    "password": "password",
    "expiry": "expiry expires expiresat expirationdate validuntil",
    "tags": "tags labels channels",
    "created": "created createdat date datecreated timestamp",
    "clicks": "clicks visits hits",
}


def recognize_source(columns: Iterable[str]) -> Source | None:
    names = {normalize(column) for column in columns}
    return next((s for s in SOURCES if all(names & set(alternatives) for alternatives in s.required)), None)


def mapping_of(source: Source | None, columns: list[str]) -> dict[str, str]:
    """Return the column of each member: the source's, or a guess."""
    names = {normalize(column): column for column in reversed(columns)}
    candidates = source.columns if source else {member: tuple(usual.split()) for member, usual in _USUAL.items()}
    mapping = {}
    for member in MEMBERS:
        if column := next((names[name] for name in candidates.get(member, ()) if name in names), None):
            mapping[member] = column
    return mapping
