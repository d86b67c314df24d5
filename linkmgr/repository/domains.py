from typing import Unpack

from linkmgr.core.database.paging import NamedPaging, Page, named_page
from linkmgr.core.database.statements import Row, row, rows, run, run_one, run_repaired
from linkmgr.core.database.tables import batch_of
from linkmgr.core.errors import existing
from linkmgr.core.settings import PREFIX, InvalidSetting, settings
from linkmgr.repository.taken_names import release_name

batch = batch_of("domains")


def index(user_id: int, **paging: Unpack[NamedPaging]) -> Page:
    domains = named_page(
        "SELECT *, domain AS name, version::text FROM domains WHERE user_id = %(user_id)s AND "
        "has_text(domain, %(q)s)",
        counted="domains",
        user_id=user_id,
        **paging,
    )
    for domain in domains.rows:
        del domain["name"]  # for the order only
    return domains


def read(user_id: int, domain_id: int) -> Row:
    stored = row(
        "SELECT *, version::text FROM domains WHERE user_id = %(user_id)s AND id = %(domain_id)s",
        user_id=user_id,
        domain_id=domain_id,
    )
    return existing(stored, "domain")


def add(user_id: int, members: Row) -> Row:
    """Store a domain. `logo` is the image of `brandlogo`, or b"". `is_checked` is True if it points
    to this service. `id` is None, or that of a row that is not committed and takes none of the
    sequence."""
    added = run_repaired(
        """
        WITH added AS (
            INSERT INTO domains (id, user_id, scheme, host, redirectroot, redirect404, brandname,
                                 brandlogo, brandcolor, forwardquery, clickid, ignorecase, widealiases, logo_hash,
                                 checked)
            VALUES (coalesce(%(id)s::bigint, nextval(pg_get_serial_sequence('domains', 'id'))),
                    %(user_id)s, split_part(%(domain)s, '://', 1), split_part(%(domain)s, '://', 2),
                    %(redirectroot)s, %(redirect404)s, %(brandname)s, %(brandlogo)s, %(brandcolor)s,
                    coalesce(%(forwardquery)s, false), coalesce(%(clickid)s, false), coalesce(%(ignorecase)s, false),
                    coalesce(%(widealiases)s, false), store_logo(%(user_id)s, %(logo)s),
                    CASE WHEN %(is_checked)s THEN now() END)
            RETURNING *)
        SELECT *, version::text
          FROM added
         WHERE require_unbranded(ARRAY[redirectroot, redirect404])
           AND require_unblocked(user_id, to_jsonb(added))
        """,
        release_name,
        **members,
        user_id=user_id,
    )
    assert added
    return added


def update(user_id: int, domain_id: int, members: Row) -> Row:
    updated = run_repaired(
        """
        WITH updated AS (
            UPDATE domains
               SET redirectroot = coalesce(%(redirectroot)s, redirectroot),
                   redirect404 = coalesce(%(redirect404)s, redirect404),
                   brandname = coalesce(%(brandname)s, brandname),
                   brandlogo = coalesce(%(brandlogo)s, brandlogo),
                   brandcolor = coalesce(%(brandcolor)s, brandcolor),
                   forwardquery = coalesce(%(forwardquery)s, forwardquery),
                   clickid = coalesce(%(clickid)s, clickid),
                   ignorecase = coalesce(%(ignorecase)s, ignorecase),
                   widealiases = coalesce(%(widealiases)s, widealiases),
                   logo_hash = CASE WHEN %(logo)s::bytea IS NULL THEN logo_hash
                                    ELSE store_logo(%(user_id)s, %(logo)s) END
             WHERE user_id = %(user_id)s AND id = %(domain_id)s
            RETURNING *)
        SELECT u.*, u.version::text
          FROM updated u
          JOIN domains before USING (id)
         WHERE require_unbranded(ARRAY[nullif(u.redirectroot, before.redirectroot),
                                       nullif(u.redirect404, before.redirect404)])
           AND require_unblocked(u.user_id, to_jsonb(u), to_jsonb(before))
           AND require_no_links(u.user_id, u.id, u.ignorecase <> before.ignorecase)
        """,
        release_name,
        **members,
        user_id=user_id,
        domain_id=domain_id,
    )
    return existing(updated, "domain")


def prepare_own_host() -> None:
    """Store what aliases of our own host can be, or stop the start if it has some that are found
    otherwise."""
    ignorecase = "ignorecase" in settings().aliases
    stored = run_one(
        "SELECT set_own_aliases(%(ignorecase)s, %(widealiases)s) AS done",
        ignorecase=ignorecase,
        widealiases="widealiases" in settings().aliases,
    )
    if not stored["done"]:
        verb = "added to" if ignorecase else "removed from"
        raise InvalidSetting(
            f"ignorecase can only be {verb} {PREFIX}ALIASES before the host of the service has links "
            "and bio pages, also in the bin."
        )


def has_wide_aliases(user_id: int | None, host: str) -> bool:
    """Return True if aliases on a domain of the user, or of None anyone, can have `/`, `.` and
    letters of any script."""
    domain = row(
        """
        SELECT widealiases FROM domains
         WHERE user_id = coalesce(%(user_id)s, user_id) AND host = %(host)s
        """,
        user_id=user_id,
        host=host,
    )
    return bool(domain and domain["widealiases"])


def delete(user_id: int, domain_id: int) -> None:
    deleted = run(
        """
        WITH deleted AS (
            DELETE FROM domains WHERE user_id = %(user_id)s AND id = %(domain_id)s
            RETURNING user_id, id),
        forgotten AS (
            DELETE FROM missing_paths m
             USING deleted d
             WHERE m.user_id = d.user_id AND m.domain_id = d.id)
        SELECT id FROM deleted
        """,
        user_id=user_id,
        domain_id=domain_id,
    )
    existing(deleted, "domain")


def store_check(user_id: int, domain_id: int, *, problem: str) -> None:
    """Store the result of a check. `problem` is "" if the domain points to this service."""
    run(
        """
        UPDATE domains SET checked = now(), problem = %(problem)s
         WHERE user_id = %(user_id)s AND id = %(domain_id)s
        RETURNING id
        """,
        user_id=user_id,
        domain_id=domain_id,
        problem=problem,
    )


def logos(user_id: int, ids: list[int]) -> dict[int, str]:
    """Return the images of the logos of these domains, in base64."""
    images = rows(
        """
        SELECT id, translate(encode(image, 'base64'), chr(10), '') AS image
          FROM domains
          JOIN logos USING (user_id)
         WHERE user_id = %(user_id)s AND id = ANY (%(ids)s::bigint[]) AND hash = logo_hash
        """,
        user_id=user_id,
        ids=ids,
    )
    return {row["id"]: row["image"] for row in images}
