"""Moves of links to another domain, and of their targets to other URLs. Each link is checked like
one that is changed alone, and one that is refused stays as it is, with the reason."""

from contextlib import suppress
from typing import Any

from marshmallow import ValidationError
from werkzeug.urls import iri_to_uri

from linkmgr.core.database.halves import failure
from linkmgr.core.database.statements import Row, rows, run
from linkmgr.core.errors import existing
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.short_urls import short_url
from linkmgr.core.fields.urls import normalize_target, split_ascii
from linkmgr.repository import links

_NO_TARGETS = ("name", "when")  # members of variants and rules that may have texts like URLs


def move(user_id: int, ids: list[int], members: Row, *, trial: bool = False) -> list[Row]:
    """Move those links to a `domain` that are not on it: "" is our own host. The old short URLs
    lead to them until the time `kept_until`, if there is one. Return their short URLs `before` and
    `after`, or `before` with the `code` and `message` of a refusal. A `trial` stores nothing."""
    stored = rows(
        """
        SELECT l.id, d.domain, alias
          FROM links l
          LEFT JOIN domains d ON d.id = domain_id
         WHERE l.user_id = %(user_id)s AND l.id = ANY (%(ids)s::bigint[])
           AND coalesce(d.host, '') <> %(host)s
         ORDER BY l.id DESC
        """,
        user_id=user_id,
        ids=ids,
        host=members["domain"],
    )
    before = {link["id"]: short_url(link["domain"], link["alias"]) for link in stored}
    results = links.update_links(user_id, [*before], members, atomic=False, trial=trial)
    return [
        {"shorturl": short, "before": short, "after": result.get("shorturl", "")} | result
        for short, result in zip(before.values(), results, strict=True)
    ]


def replace_in_targets(
    user_id: int, ids: list[int], texts: tuple[str, str], *, trial: bool = False
) -> list[Row]:
    """Replace a text in all targets of links. Return the first changed target of each link as
    `before` and `after`, its `shorturl`, or the `code` and `message` of a refusal."""
    old, new = _as_stored(texts[0]), texts[1]
    links_read = rows(
        """
        SELECT l.id, d.domain, alias, l.version, url, expiredurl, geotarget, devicetarget,
               languagetarget, deeplink, variants, rules
          FROM links l
          LEFT JOIN domains d ON d.id = domain_id
         WHERE l.user_id = %(user_id)s AND l.id = ANY (%(ids)s::bigint[])
           AND EXISTS (SELECT FROM unnest(targets_of(l)) AS target WHERE strpos(target, %(old)s) > 0)
         ORDER BY l.id DESC
        """,
        user_id=user_id,
        ids=ids,
        old=old,
    )
    results, by_id = [], {}
    for link in links_read:
        link_id, pairs = link.pop("id"), list[tuple[str, str]]()
        result = {"id": link_id, "shorturl": short_url(link.pop("domain"), link.pop("alias"))}
        try:
            by_id[link_id] = _replaced(link, old, new, pairs)
        except ValidationError as error:
            result |= failure(invalid(f"The target {error.messages[0]}"))
        results.append(result | {"before": pairs[0][0], "after": pairs[0][1]})
    stored = (
        links.update_links(user_id, [*by_id], {}, atomic=False, by_id=by_id, trial=trial) if by_id else []
    )
    answers = dict(zip(by_id, stored, strict=True))
    for result in results:
        result.update(answers.get(result["id"], {}))
        if result.get("code") == "changed_meanwhile":
            result["message"] = "The link has changed meanwhile. Try again."
    return results


def _as_stored(text: str) -> str:
    """Return a part of a URL in ASCII, as targets are stored."""
    if text.isascii() and "://" not in text:
        return text
    scheme = "" if "://" in text else "https://"
    with suppress(ValidationError):
        return split_ascii(scheme + text).geturl().removeprefix(scheme)
    return iri_to_uri(text)


def _replaced(value: Any, old: str, new: str, pairs: list[tuple[str, str]]) -> Any:
    """Return columns with other targets, and add these to the pairs."""
    match value:
        case dict():
            return {
                name: part if name in _NO_TARGETS else _replaced(part, old, new, pairs)
                for name, part in value.items()
            }
        case list():
            return [_replaced(part, old, new, pairs) for part in value]
        case str() if old in value:
            pairs.append((value, value.replace(old, new)))
            return normalize_target(pairs[-1][1])
    return value


def forget_short_url(user_id: int, link_id: int, *, alias: str, domain_id: int) -> None:
    """Free an old short URL of a link."""
    link = run(
        """
        WITH own AS MATERIALIZED (
            SELECT id FROM links WHERE user_id = %(user_id)s AND id = %(link_id)s),
        freed AS (
            DELETE FROM aliases
             WHERE alias = %(alias)s AND domain_id = %(domain_id)s AND until IS NOT NULL
               AND link_id = (SELECT id FROM own))
        SELECT id FROM own
        """,
        user_id=user_id,
        link_id=link_id,
        alias=alias,
        domain_id=domain_id,
    )
    existing(link, "link")
