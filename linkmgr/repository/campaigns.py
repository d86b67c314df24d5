from typing import Unpack

from linkmgr.core.database.paging import NamedPaging, Page, named_page
from linkmgr.core.database.statements import Row, row, rows, run, run_one, run_repaired
from linkmgr.core.database.tables import BATCH
from linkmgr.core.errors import existing, not_found
from linkmgr.core.settings import settings
from linkmgr.repository.taken_names import release_name


def to_record(campaign: Row) -> Row:
    base, slug = settings().base_url, campaign["slug"]
    return campaign | {
        "slug": slug or "",
        "rotator": f"{base}/r/{slug}" if slug else False,
        "list": f"{base}/u/{campaign['username']}/{slug or 'list'}-{campaign['id']}",
    }


def index(user_id: int, **paging: Unpack[NamedPaging]) -> Page:
    campaigns = named_page(
        """
        SELECT *, (SELECT username FROM users WHERE users.id = user_id) AS username,
               created AS date, version::text
          FROM campaigns
         WHERE user_id = %(user_id)s AND has_text(name, %(q)s)
        """,
        counted="campaigns",
        user_id=user_id,
        **paging,
    )
    campaigns.rows[:] = map(to_record, campaigns.rows)
    return campaigns


def batch(user_id: int, after: int) -> list[Row]:
    campaigns = rows(
        """
        SELECT *, (SELECT username FROM users WHERE users.id = user_id) AS username, created AS date
          FROM campaigns
         WHERE user_id = %(user_id)s AND id > %(after)s
         ORDER BY id
         LIMIT %(limit)s
        """,
        user_id=user_id,
        after=after,
        limit=BATCH,
    )
    return [to_record(campaign) for campaign in campaigns]


def read(user_id: int, campaign_id: int) -> Row:
    stored = row(
        """
        SELECT *, (SELECT username FROM users WHERE users.id = user_id) AS username,
               created AS date, version::text
          FROM campaigns
         WHERE user_id = %(user_id)s AND id = %(campaign_id)s
        """,
        user_id=user_id,
        campaign_id=campaign_id,
    )
    return to_record(existing(stored, "campaign"))


def add(user_id: int, members: Row) -> Row:
    added = run_repaired(
        """
        INSERT INTO campaigns (user_id, name, slug, public, listorder, listsize)
        VALUES (%(user_id)s, %(name)s, nullif(%(slug)s, ''), %(public)s, %(listorder)s, %(listsize)s)
        RETURNING *, (SELECT username FROM users WHERE users.id = user_id) AS username,
                  created AS date, version::text
        """,
        release_name,
        **members,
        user_id=user_id,
    )
    assert added
    return to_record(added)


def update(user_id: int, campaign_id: int, members: Row) -> Row:
    """Write the members that are not None. An empty slug removes the slug, and the rotator with
    it."""
    updated = run_repaired(
        """
        UPDATE campaigns
           SET name = coalesce(%(name)s, name),
               slug = nullif(coalesce(%(slug)s, slug), ''),
               public = coalesce(%(public)s, public),
               listorder = coalesce(%(listorder)s, listorder),
               listsize = coalesce(%(listsize)s, listsize)
         WHERE user_id = %(user_id)s AND id = %(campaign_id)s
        RETURNING *, (SELECT username FROM users WHERE users.id = user_id) AS username,
                  created AS date, version::text
        """,
        release_name,
        **members,
        user_id=user_id,
        campaign_id=campaign_id,
    )
    return to_record(existing(updated, "campaign"))


def delete(user_id: int, campaign_id: int) -> None:
    deleted = run(
        "DELETE FROM campaigns WHERE user_id = %(user_id)s AND id = %(campaign_id)s RETURNING id",
        user_id=user_id,
        campaign_id=campaign_id,
    )
    existing(deleted, "campaign")


# --- links of campaigns


def assign(user_id: int, campaign_id: int, link_id: int) -> None:
    """A link is in one campaign at most. FOR KEY SHARE waits for a concurrent delete of the
    campaign, so that no reference to a deleted row is stored."""
    result = run_one(
        """
        WITH campaign AS (
            SELECT id FROM campaigns WHERE user_id = %(user_id)s AND id = %(campaign_id)s
               FOR KEY SHARE),
        assigned AS (
            UPDATE links
               SET campaign = campaign.id
              FROM campaign
             WHERE user_id = %(user_id)s AND links.id = %(link_id)s
            RETURNING links.id)
        SELECT EXISTS (SELECT FROM campaign) AS campaign, EXISTS (SELECT FROM assigned) AS link
        """,
        user_id=user_id,
        campaign_id=campaign_id,
        link_id=link_id,
    )
    _require_both(result)


def unassign(user_id: int, campaign_id: int, link_id: int) -> bool:
    """Take a link out of a campaign. Return False if it was not in it."""
    result = run_one(
        """
        WITH removed AS (
            UPDATE links SET campaign = NULL
             WHERE user_id = %(user_id)s AND campaign = %(campaign_id)s AND id = %(link_id)s
            RETURNING id)
        SELECT EXISTS (SELECT FROM campaigns WHERE user_id = %(user_id)s
                          AND id = %(campaign_id)s) AS campaign,
               EXISTS (SELECT FROM links WHERE user_id = %(user_id)s AND id = %(link_id)s) AS link,
               EXISTS (SELECT FROM removed) AS removed
        """,
        user_id=user_id,
        campaign_id=campaign_id,
        link_id=link_id,
    )
    _require_both(result)
    return bool(result["removed"])


def _require_both(result: Row) -> None:
    for noun in ("campaign", "link"):
        if not result[noun]:
            raise not_found(noun)
