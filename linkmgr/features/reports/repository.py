"""Reports of visitors, and the decisions of administrators: to dismiss them, or to block a link or
a host."""

from linkmgr.core.database.expiry import older_than
from linkmgr.core.database.statements import Row, row, rows, run, run_one
from linkmgr.core.errors import existing
from linkmgr.core.fields.short_urls import short_url
from linkmgr.visits.blocked import blocked

MAX_OF_PERSON, MAX_OF_LINK, MAX_OPEN = 2, 20, 10_000  # open reports; of a person those of a link
MAX_SHOWN = 1000  # links with reports
MAX_LISTED = 100_000  # hosts of the list
EXPIRING = (
    older_than("reports", "created", "90 days", "kind = 'report'"),
    older_than("reports", "created", "365 days", "(kind = 'dismiss' OR ended IS NOT NULL)"),
)


def add(link_id: int, reporter: str, *, reason: str, text: str) -> None:
    """Store a report, unless the person has reported the link before, or the link or all links have
    enough reports."""
    run(
        """
        WITH of_link AS (
            SELECT count(*) AS number, count(*) FILTER (WHERE reporter = %(reporter)s) AS of_person
              FROM reports
             WHERE kind = 'report' AND link_id = %(link_id)s),
        added AS (
            INSERT INTO reports (kind, link_id, host, target_hosts, reason, text, reporter)
            SELECT 'report', id, host_of(url),
                   ARRAY(SELECT DISTINCT host_of(target) FROM unnest(targets_of(l)) AS target
                          WHERE target <> ''),
                   %(reason)s, %(text)s, %(reporter)s
              FROM links l, of_link
             WHERE id = %(link_id)s AND number < %(of_link)s AND of_person < %(of_person)s
               AND (SELECT count(*) FROM reports WHERE kind = 'report') < %(most)s
            RETURNING id, link_id, host, target_hosts, reason, text, created)
        INSERT INTO outbox (user_id, type, data)
        SELECT user_id, 'report.created', to_jsonb(added) FROM added, auditors WHERE user_id <> 0
        """,
        link_id=link_id,
        reporter=reporter,
        reason=reason,
        text=text,
        of_person=MAX_OF_PERSON,
        of_link=MAX_OF_LINK,
        most=MAX_OPEN,
    )


def open_reports(*, limit: int) -> list[Row]:
    """List the links with open reports, the latest report first."""
    links = rows(
        """
        SELECT r.link_id AS link, d.domain, l.alias, l.url AS longurl, host_of(l.url) AS host,
               jsonb_path_query_array(listed_targets(l), '$[0 to 9]') AS targets,
               (SELECT count(DISTINCT host_of(target)) FROM unnest(targets_of(l)) AS target
                 WHERE target <> '') AS hosts,
               l.user_id AS user, u.username, count(*) AS number,
               array_agg(DISTINCT r.reason) AS reasons,
               coalesce((array_agg(r.text ORDER BY r.id DESC) FILTER (WHERE r.text <> ''))[:5],
                        '{}') AS texts,
               min(r.created) AS first, max(r.created) AS last
          FROM reports r
          JOIN links l ON l.id = r.link_id
          JOIN users u ON u.id = l.user_id
          LEFT JOIN domains d ON d.id = l.domain_id
         WHERE r.kind = 'report'
         GROUP BY r.link_id, d.id, l.id, u.id
         ORDER BY max(r.id) DESC
         LIMIT %(limit)s
        """,
        limit=limit,
    )
    return _with_short_urls(links)


def _with_short_urls(links: list[Row]) -> list[Row]:
    for link in links:
        domain, alias = link.pop("domain"), link.pop("alias")
        link["shorturl"] = alias and short_url(domain, alias)
    return links


def hosts_of_targets(link_id: int) -> list[str]:
    """Return the hosts of all targets of a link, first that of its `url`."""
    link = row(
        """
        SELECT jsonb_path_query_array(listed_targets(l), '$[*].host') AS hosts
          FROM (SELECT l FROM links l WHERE id = %(link_id)s
                 UNION ALL
                SELECT jsonb_populate_record(NULL::links, to_jsonb(b))
                  FROM binned_links b WHERE id = %(link_id)s) AS stored (l)
        """,
        link_id=link_id,
    )
    return [*dict.fromkeys(existing(link, "link")["hosts"])]


def decide(link_id: int, decision: str, *, host: str, by: int) -> None:
    """Dismiss the reports of a link, or block it, or a host with the reports of all links to it."""
    run(
        """
        WITH decided AS (
            DELETE FROM reports
             WHERE kind = 'report'
               AND (link_id = %(link_id)s
                    OR (%(decision)s = 'host'
                        AND EXISTS (
                            SELECT FROM unnest(target_hosts) AS name
                             WHERE right('.' || name, length(%(host)s) + 1) = '.' || %(host)s)))
            RETURNING link_id, reason),
        link_blocked AS (
            UPDATE links SET blocked = now()
             WHERE %(decision)s = 'link' AND id = %(link_id)s AND blocked IS NULL
            RETURNING user_id, id),
        binned_link_blocked AS (
            UPDATE binned_links SET blocked = now() WHERE %(decision)s = 'link'
               AND id = %(link_id)s),
        noted AS (
            INSERT INTO outbox (user_id, type, object_id)
            SELECT user_id, 'link.blocked', id
              FROM (SELECT user_id, id FROM link_blocked
                     UNION ALL
                    SELECT user_id, id FROM links
                     WHERE %(decision)s = 'host'
                       AND id IN (SELECT %(link_id)s::bigint UNION SELECT link_id
                                    FROM decided)) blocked
             WHERE has_webhooks(user_id)),
        link AS (
            SELECT user_id, targets_of(l) AS urls FROM links l WHERE %(decision)s = 'link'
               AND id = %(link_id)s
             UNION ALL
            SELECT user_id, targets_of(jsonb_populate_record(NULL::links, to_jsonb(b)))
              FROM binned_links b WHERE %(decision)s = 'link' AND id = %(link_id)s),
        added AS (
            INSERT INTO reports (kind, link_id, host, reason, number, decided_by, owner_id, targets)
            SELECT %(decision)s, %(link_id)s, %(host)s,
                   coalesce(string_agg(DISTINCT reason, ', '), ''), count(*),
                   %(by)s, (SELECT user_id FROM link),
                   (SELECT array_agg(md5(normal_form(url)))
                      FROM link, unnest(urls) AS url WHERE url <> '')
              FROM decided
                ON CONFLICT DO NOTHING)
        UPDATE service SET blocks = blocks + 1
        """,
        link_id=link_id,
        decision=decision,
        host=host,
        by=by,
    )
    blocked().refresh(now=True)


def block_host(host: str, *, by: int) -> int:
    """Block a host, and return the id of the block. That of a host of the list becomes one of the
    administrator."""
    added = run_one(
        """
        WITH changed AS (
            UPDATE service SET blocks = blocks + 1)
        INSERT INTO reports (kind, host, number, decided_by) VALUES ('host', %(host)s, 0, %(by)s)
            ON CONFLICT (host) WHERE kind = 'host' AND ended IS NULL
            DO UPDATE SET decided_by = coalesce(reports.decided_by, excluded.decided_by)
        RETURNING id
        """,
        host=host,
        by=by,
    )
    blocked().refresh(now=True)
    return int(added["id"])


def unblock(block_id: int, *, by: int) -> None:
    """End a block of an administrator. Those of the list end when the list no longer has them."""
    ended = run(
        """
        WITH ended AS (
            UPDATE reports SET ended = now(), ended_by = %(by)s
             WHERE id = %(block_id)s AND kind IN ('link', 'host') AND decided_by IS NOT NULL
               AND ended IS NULL
            RETURNING id, kind, link_id),
        link_unblocked AS (
            UPDATE links SET blocked = NULL
             WHERE id = (SELECT link_id FROM ended WHERE kind = 'link')),
        binned_link_unblocked AS (
            UPDATE binned_links SET blocked = NULL
             WHERE id = (SELECT link_id FROM ended WHERE kind = 'link')),
        changed AS (
            UPDATE service SET blocks = blocks + 1 WHERE EXISTS (SELECT FROM ended))
        SELECT id FROM ended
        """,
        block_id=block_id,
        by=by,
    )
    existing(ended, "block")
    blocked().refresh(now=True)


def blocks() -> list[Row]:
    """List the blocks of administrators that last, the latest first."""
    return _with_short_urls(
        rows(
            """
            SELECT r.id, kind, r.host, CASE WHEN kind = 'link' THEN link_id END AS link, d.domain,
                   alias, decided_by AS user, r.created AS date
              FROM reports r
              LEFT JOIN links l ON kind = 'link' AND l.id = link_id
              LEFT JOIN domains d ON d.id = domain_id
             WHERE kind IN ('link', 'host') AND decided_by IS NOT NULL AND ended IS NULL
             ORDER BY r.id DESC
            """
        )
    )


def decisions(*, before: int, limit: int) -> list[Row]:
    """List the decisions of administrators, the latest first, with the names of users who have not
    been deleted."""
    decided = rows(
        """
        SELECT r.id, r.kind, r.link_id, r.host, r.reason, r.number, r.created AS date, ended,
               d.domain, l.alias, u.username, e.username AS ended_by
          FROM reports r
          LEFT JOIN links l ON l.id = r.link_id
          LEFT JOIN domains d ON d.id = l.domain_id
          LEFT JOIN users u ON u.id = decided_by
          LEFT JOIN users e ON e.id = r.ended_by
         WHERE decided_by IS NOT NULL AND r.id < %(before)s
         ORDER BY r.id DESC
         LIMIT %(limit)s
        """,
        before=before,
        limit=limit,
    )
    return _with_short_urls(decided)


# --- the list


def take_list(url: str) -> bool:
    """Return True, in one process, if the list is due: daily, an hour after a failure, and if its
    URL has changed."""
    taken = run(
        """
        UPDATE service SET list_due = now() + interval '1 hour', list_url = %(url)s
         WHERE list_due < now() AND (%(url)s <> '' OR list_url <> '') OR list_url <> %(url)s
        RETURNING version
        """,
        url=url,
    )
    return taken is not None


def store_list(hosts: list[str]) -> None:
    """Block the hosts of the list, and unblock those that it no longer has."""
    run(
        """
        WITH gone AS (
            DELETE FROM reports
             WHERE kind = 'host' AND decided_by IS NULL AND ended IS NULL
               AND NOT EXISTS (SELECT FROM unnest(%(hosts)s::text[]) AS listed
                                WHERE listed = reports.host)),
        added AS (
            INSERT INTO reports (kind, host, number) SELECT 'host', host, 0
              FROM unnest(%(hosts)s::text[]) AS host
                ON CONFLICT DO NOTHING)
        UPDATE service SET blocks = blocks + 1, list_due = now() + interval '1 day'
     RETURNING version
        """,
        hosts=hosts,
    )


def state_of_list() -> Row:
    stored = row(
        """
        SELECT count(*) AS number, (SELECT list_due FROM service) AS due FROM reports
         WHERE kind = 'host' AND decided_by IS NULL
        """
    )
    assert stored
    return stored
