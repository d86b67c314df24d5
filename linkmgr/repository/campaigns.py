"""Campaigns and their links."""

from linkmgr.db.statements import run
from linkmgr.errors import existing, not_found
from linkmgr.repository.tables import Table, run_with_name

CAMPAIGNS = Table(
    "campaigns",
    "campaign",
    "name public",
    # An empty slug removes the slug, and the rotator with it.
    added={"slug": "nullif(%(slug)s, '')"},
    changed={"slug": "nullif(coalesce(%(slug)s, slug), '')"},
    columns="""
    *, coalesce(slug, '') AS slug, coalesce(to_json(%(base)s::text || '/r/' || slug), 'false') AS rotator,
    %(base)s::text || '/u/' || (SELECT username FROM users WHERE users.id = user_id)
        || '/' || coalesce(slug, 'list') || '-' || id AS list, created AS date, version::text
    """,
    write=run_with_name,
)


def assign(user_id: int, campaign_id: int, link_id: int) -> None:
    """Move a link to a campaign. A link is in one campaign at most.

    FOR KEY SHARE waits for a concurrent delete of the campaign, so that no reference to a deleted row is stored.
    """
    result = run(
        """
        WITH campaign AS (
            SELECT id FROM campaigns WHERE user_id = %(user_id)s AND id = %(campaign_id)s FOR KEY SHARE),
        assigned AS (
            UPDATE links
               SET campaign_id = campaign.id
              FROM campaign
             WHERE user_id = %(user_id)s AND links.id = %(link_id)s
            RETURNING links.id)
        SELECT EXISTS (SELECT FROM campaign) AS campaign, EXISTS (SELECT FROM assigned) AS link
        """,
        user_id=user_id,
        campaign_id=campaign_id,
        link_id=link_id,
    )
    assert result is not None
    for kind in ("campaign", "link"):
        if not result[kind]:
            raise not_found(kind)


def remove(user_id: int, campaign_id: int, link_id: int) -> None:
    """Remove a link from a campaign."""
    removed = run(
        """
        UPDATE links SET campaign_id = NULL
         WHERE user_id = %(user_id)s AND campaign_id = %(campaign_id)s AND id = %(link_id)s
        RETURNING id
        """,
        user_id=user_id,
        campaign_id=campaign_id,
        link_id=link_id,
    )
    existing(removed, "link")
