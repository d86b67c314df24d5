"""The queue of background jobs.  `due` is the end of the lease of a job that is being run, and names the lease."""

from linkmgr.db.statements import Row, run_aside


def take(kinds: list[str], *, lease: float) -> Row | None:
    """Take the job that has been due longest, for so many seconds."""
    return run_aside(
        """
        UPDATE jobs
           SET due = clock_timestamp() + make_interval(secs => %(lease)s::float8), attempts = attempts + 1
         WHERE id = (SELECT id FROM jobs WHERE due <= now() AND kind = ANY (%(kinds)s::text[])
                      ORDER BY due, id LIMIT 1 FOR UPDATE SKIP LOCKED)
        RETURNING id, kind, argument, attempts, due::text AS lease
        """,
        kinds=kinds,
        lease=lease,
    )


def put_back(job: Row, *, delay: float, failed: bool) -> None:
    """Make a job due again, unless its lease ran out and another process took it."""
    run_aside(
        """
        UPDATE jobs
           SET due = now() + make_interval(secs => %(delay)s::float8),
               attempts = CASE WHEN %(failed)s THEN attempts ELSE 0 END
         WHERE id = %(id)s AND due = %(lease)s::timestamptz
        """,
        id=job["id"],
        lease=job["lease"],
        delay=delay,
        failed=failed,
    )


def remove(job: Row) -> None:
    """Remove a job that is done, unless its lease ran out and another process took it."""
    run_aside(
        "DELETE FROM jobs WHERE id = %(id)s AND due = %(lease)s::timestamptz",
        id=job["id"],
        lease=job["lease"],
    )
