"""Links, by two statements that store one or many. Functions in schema.sql have the rules."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import orjson
from psycopg2 import IntegrityError
from psycopg2.errors import UniqueViolation

from linkmgr.core.database.halves import failure, in_halves
from linkmgr.core.database.statements import Row, repaired, run, run_one, undoable
from linkmgr.core.errors import RETRY_SECONDS, AppError, existing, not_found
from linkmgr.core.fields.aliases import PLAIN, new_alias, own_reserved
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.short_urls import short_url
from linkmgr.core.settings import settings
from linkmgr.repository import link_lists, link_records
from linkmgr.repository.link_records import to_record
from linkmgr.repository.taken_names import release
from linkmgr.visits import spool

# The statements that read links, so that this module has all functions that modules of rows have
index, read, batch = link_lists.index, link_records.read, link_records.batch

MAX_LINKS = 1000  # of one statement
T = TypeVar("T")
_TRIES = 5  # random aliases of 35 bits, until one is free
_SPARES = 16  # aliases in place of generated ones that are in use
_URL_ONLY = {"url", "imported_clicks", "import_id", "imported"}
_NEW: Row = dict.fromkeys(("clicks", "visitors", "top_labels", "related"))  # what no new link has


def with_random_alias(store: Callable[[str], T]) -> T:
    for _ in range(_TRIES - 1):
        try:
            with undoable():
                return store(new_alias())
        except UniqueViolation as error:
            if error.diag.constraint_name != "alias_taken":
                raise
    return store(new_alias())


def add(user_id: int, link: Row) -> Row:
    """Store a link, and return the record as `read` does, and as `is_new` if there was none like
    it."""
    if link.keys() == {"url"}:
        return _add_url_only(user_id, link["url"])
    if "alias" in link:
        return _add(user_id, link, "")
    return with_random_alias(lambda alias: _add(user_id, link, alias))


def _add(user_id: int, link: Row, alias: str) -> Row:
    def write(many: bool) -> Row:
        return _insert(user_id, [link], [alias], many=many, atomic=False)

    def repair(violation: IntegrityError) -> bool:
        return _release([link.get("alias", alias)], violation)

    # Another alias takes the place of a generated one.
    added = repaired(lambda: write(False), repair) if alias else _explained(write, repair)
    _raise_refusal(added, link)
    return {"is_new": True} | to_record(_NEW | added["record"])


def _explained(write: Callable[[bool], Row], repair: Callable[[IntegrityError], bool]) -> Row:
    """Write one link as one of `many` only if its alias is in use, to learn who has it."""
    try:
        return repaired(lambda: write(False), repair)
    except UniqueViolation as violation:
        if violation.diag.constraint_name != "alias_taken":
            raise
        return write(True)


def _raise_refusal(stored: Row, sent: Row) -> None:
    for code, detail, *_ in stored["results"]:
        if code:
            raise _refusal(code, detail, sent)


def _refusal(code: str, detail: str | None, sent: Row) -> AppError:
    """Return the error of a link. That of its alias is the one of a body, which may not have the
    domain."""
    if code == "alias_wide" and "alias" in sent:
        return invalid(f"custom must be {PLAIN}")
    return AppError(code, detail=detail)


def _release(aliases: list[str | None], violation: IntegrityError, link_id: int | None = None) -> bool:
    return release(violation.diag.constraint_name, aliases=aliases, link_id=link_id)


def _add_url_only(user_id: int, url: str) -> Row:
    """Store a link of a URL alone, or return the existing one, which is not written, so that it
    keeps its version."""
    for _ in range(_TRIES):
        link = with_random_alias(partial(_add_first, user_id, url))
        if link:
            return {"is_new": True} | to_record(link)
        if link := _find_url_only(user_id, url):
            return {"is_new": False} | to_record(link)
    # Each time, the existing link was deleted before it was read
    raise AppError("busy", seconds=RETRY_SECONDS)


def _add_first(user_id: int, url: str, alias: str) -> Row | None:
    """Return None if there is such a link. One INSERT without common table expressions takes a
    tenth less time."""
    added = run(
        """
        INSERT INTO links (user_id, alias, url, url_only)
        SELECT %(user_id)s, %(alias)s, %(url)s, true
         WHERE require_usable_targets(%(user_id)s, ARRAY[%(url)s])
        ON CONFLICT (user_id, md5(url), key_id) WHERE url_only DO NOTHING
        RETURNING to_json(links) AS record
        """,
        user_id=user_id,
        alias=alias,
        url=url,
    )
    return added and _NEW | added["record"]


def _find_url_only(user_id: int, url: str) -> Row | None:
    return run(
        """
        SELECT l.*, clicks, visitors, top_labels
          FROM link_details l
          LEFT JOIN totals ON tracked_id = id
         WHERE user_id = %(user_id)s AND md5(url) = md5(%(url)s) AND url_only
           AND key_id IS NOT DISTINCT FROM nullif(current_setting('linkmgr.key_id', true),
                                                  '')::bigint
        """,
        user_id=user_id,
        url=url,
    )


def add_links(user_id: int, links: list[Row], *, atomic: bool = False) -> list[Row]:
    """Store at most MAX_LINKS links and return their results in the same order: `id`, `shorturl`
    and `is_new`, or `code` and `message` of the reason why a link was not stored. With `atomic`,
    either all links are stored or none: if one fails, the results of those that would have been
    stored are empty.

    A link has the members that `add` takes. One of only a URL may be an existing link. Further
    members, for imports:

    - `created`: the time at which the link was created, with its time zone.
    - `custom`: false for an alias that the user has not chosen. It needs the plan feature too,
      since it may be any.
    - `url_only`: true for a link that is returned if its URL is shortened again.
    - `imported_clicks`: the number of clicks that another service counted. An existing link keeps
      its own.
    - `import_id` and `imported`: the id of the import, and the time.
    - `source_clicks` and `source_host`: these clicks, and the host of the link there, if it is not
      ours.
    """
    first: dict[str, int] = {}  # of the same links, by URL
    same = [first.setdefault(link["url"], n) if _is_url_only(link) else n for n, link in enumerate(links)]
    distinct = [n for n, other in enumerate(same) if n == other]
    stored = in_halves(
        [links[n] | {"url_only": _is_url_only(links[n])} for n in distinct],
        lambda some: _added(user_id, some, atomic),
        atomic,
        _release_aliases,
    )
    results = dict(zip(distinct, stored, strict=True))
    return [results[n] if n == index else _existing(results[n]) for index, n in enumerate(same)]


def _existing(result: Row) -> Row:
    return result | {"is_new": False} if "id" in result else result


def _is_url_only(link: Row) -> bool:
    return bool(link.get("url_only")) or link.keys() <= _URL_ONLY


def _release_aliases(links: list[Row], violation: IntegrityError) -> None:
    _release([link.get("alias") for link in links], violation)


def _added(user_id: int, links: list[Row], atomic: bool) -> list[Row]:
    """The statement looks up why it cannot store a link, so that the others are stored all the
    same. A constraint is violated only if a concurrent transaction comes in between. The statement
    then sees its rows and is repeated."""
    spares = [new_alias() for _ in range(len(links) + _SPARES)]
    stored = _insert(user_id, links, spares, many=True, atomic=atomic)
    by_url = stored["by_url"] or {}
    answers = [
        (code, detail, *(by_url.get(link["url"], added) if link["url_only"] else added), domain)
        for link, (code, detail, *added, domain) in zip(links, stored["results"], strict=True)
    ]
    results = _to_results(answers, links, is_undone=atomic and any(code for code, *_ in answers))
    new_ids = [new_id for _, _, new_id, *_ in stored["results"]]
    return [
        result | {"is_new": True} if result.get("id") == new_id else _existing(result)
        for result, new_id in zip(results, new_ids, strict=True)
    ]


def _to_results(answers: list[tuple[Any, ...]], sent: list[Row], *, is_undone: bool) -> list[Row]:
    return [
        failure(_refusal(code, detail, members))
        if code
        else ({} if is_undone else {"id": link_id, "shorturl": short_url(domain, alias)})
        for (code, detail, link_id, alias, domain), members in zip(answers, sent, strict=True)
    ]


def _insert(user_id: int, links: list[Row], spares: list[str], *, many: bool, atomic: bool) -> Row:
    return run_one(
        """
        SELECT *
          FROM add_links(%(user_id)s, %(links)s::jsonb, %(spares)s::text[], %(many)s::boolean,
                         %(atomic)s::boolean)
        """,
        user_id=user_id,
        links=orjson.dumps(links).decode(),
        spares=spares,
        many=many,
        atomic=atomic,
    )


def update(user_id: int, link_id: int, members: Row) -> Row:
    """Write the members that were sent, and return the record as `read` does."""
    updated = _explained(
        lambda many: _update(user_id, [link_id], members, many=many, atomic=False),
        lambda violation: _release([members.get("alias")], violation, link_id),
    )
    _raise_refusal(updated, members)
    return to_record(existing(updated["record"], "link"))


def update_links(user_id: int, ids: list[int], members: Row, *, atomic: bool, **further: Any) -> list[Row]:
    """Write the same members to all links, as `update` does, and return the result of each id in
    the same order: `id` and `shorturl`, or `code` and `message`. They leave the channel
    `unassign_channel`. With `atomic`, either all links are changed or none. `further`:

    - `by_id`: columns that only one link gets. They change nothing if their `version` is not that
      of the link.
    - `trial`: True to store nothing.
    """
    distinct = list(dict.fromkeys(ids))
    stored = in_halves(distinct, lambda some: _updated(user_id, some, members, atomic, **further), atomic)
    results = dict(zip(distinct, stored, strict=True))
    return [results[link_id] for link_id in ids]


def _updated(user_id: int, ids: list[int], members: Row, atomic: bool, **further: Any) -> list[Row]:
    answers = _update(user_id, ids, members, many=True, atomic=atomic, **further)["results"]
    is_undone = atomic and (len(answers) < len(ids) or any(code for code, *_ in answers))
    stored = _to_results(answers, [members] * len(answers), is_undone=is_undone)
    results = dict(zip((answer[2] for answer in answers), stored, strict=True))
    missing = failure(not_found("link"))
    return [results.get(link_id, missing) for link_id in ids]


def _update(user_id: int, ids: list[int], members: Row, *, many: bool, atomic: bool, **further: Any) -> Row:
    if members.get("maxclicks"):
        _count_waiting(user_id, ids)
    return run_one(
        """
        SELECT *
          FROM change_links(%(user_id)s, %(ids)s::bigint[], %(sent)s::jsonb, %(reserved)s::text[],
                            %(many)s::boolean, %(atomic)s::boolean,
                            %(by_id)s::jsonb, %(trial)s::boolean)
        """,
        user_id=user_id,
        ids=ids,
        by_id=orjson.dumps(further.get("by_id", {}), option=orjson.OPT_NON_STR_KEYS).decode(),
        trial=further.get("trial", False),
        sent=orjson.dumps(members).decode(),
        reserved=own_reserved(members.get("alias", "")) if members.keys() & {"alias", "domain"} else [],
        many=many,
        atomic=atomic,
    )


def _count_waiting(user_id: int, ids: list[int]) -> None:
    """Let a limit that a link gets count the clicks that are not stored yet: its redirects count
    themselves from then on."""
    if waiting := [*spool.clicks(settings().folder / "visits", set(ids))]:
        run(
            """
            INSERT INTO taken_clicks AS t (link_id, total)
            SELECT id, used_clicks(id) + count(*)
              FROM json_to_recordset(%(waiting)s)
                   AS click (spool text, stop bigint, tracked_id bigint)
              JOIN links ON id = tracked_id
             WHERE user_id = %(user_id)s AND maxclicks IS NULL
               AND stop > coalesce((SELECT stored FROM visit_spools WHERE name = spool), 0)
             GROUP BY id
             ORDER BY id
            ON CONFLICT (link_id) DO UPDATE SET total = greatest(t.total, excluded.total)
            """,
            user_id=user_id,
            waiting=orjson.dumps(waiting).decode(),
        )


def id_of_externalid(user_id: int, externalid: str) -> int | None:
    link = run(
        "SELECT id FROM links WHERE user_id = %(user_id)s AND externalid = %(externalid)s",
        user_id=user_id,
        externalid=externalid,
    )
    return int(link["id"]) if link else None


def put(user_id: int, externalid: str, create: Callable[[], Row], change: Callable[[int], Row]) -> Row:
    """Change the link with an `externalid`, or create it. The index decides which of several
    requests creates it, and the others change it."""
    for _ in range(_TRIES):
        try:
            if link_id := id_of_externalid(user_id, externalid):
                return {"is_new": False} | change(link_id)
            with undoable():
                return create()
        except AppError as error:
            if error.code != "missing":  # deleted meanwhile
                raise
        except UniqueViolation as violation:
            is_taken = violation.diag.constraint_name == "externalid_taken"
            if (
                not is_taken or id_of_externalid(user_id, externalid) is None
            ):  # a restricted key does not see it
                raise
    raise AppError("busy", seconds=RETRY_SECONDS)


def delete(user_id: int, link_id: int) -> None:
    """Delete a link, or one in the bin, forever. Look twice: a statement does not see where a link
    has moved since it began."""
    statement = """
        WITH binned AS (
            DELETE FROM binned_links WHERE user_id = %(user_id)s AND id = %(link_id)s RETURNING id),
        deleted AS (
            DELETE FROM links WHERE user_id = %(user_id)s AND id = %(link_id)s RETURNING id)
        SELECT id FROM binned UNION ALL SELECT id FROM deleted
        """
    ids = {"user_id": user_id, "link_id": link_id}
    existing(run(statement, **ids) or run(statement, **ids), "link")
