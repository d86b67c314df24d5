"""Campaigns, and the links in them."""

from linkmgr.db.statements import Page, Row, page, row, run
from linkmgr.repository.names import run_with_name
from linkmgr.settings import settings
from linkmgr.web.errors import not_found


def _with_addresses(campaign: Row) -> Row:
    """The addresses of the rotator, which only a slug gives, and of the list, which every campaign has."""
    base, username, slug = settings().base_url, campaign.pop("username"), campaign.pop("slug")
    campaign["rotator"] = f"{base}/r/{slug}" if slug else False
    campaign["list"] = f"{base}/u/{username}/{slug or 'list'}-{campaign['id']}"
    return campaign


def index(user_id: int, *, limit: int, number: int) -> Page:
    found = page(
        """
        SELECT c.id, name, public, slug, username
          FROM campaigns c
          JOIN users u ON u.id = c.user_id
         WHERE user_id = %(user_id)s
         ORDER BY c.id DESC
         LIMIT %(limit)s OFFSET %(offset)s
        """,
        "SELECT total FROM usage WHERE user_id = %(user_id)s AND kind = 'campaigns'",
        limit=limit,
        number=number,
        user_id=user_id,
    )
    return found._replace(rows=[_with_addresses(campaign) for campaign in found.rows])


def read(user_id: int, campaign_id: int) -> Row:
    found = row(
        """
        SELECT c.id, name, public, slug, username
          FROM campaigns c
          JOIN users u ON u.id = c.user_id
         WHERE user_id = %(user_id)s AND c.id = %(campaign_id)s
        """,
        user_id=user_id,
        campaign_id=campaign_id,
    )
    if found is None:
        raise not_found("campaign")
    return _with_addresses(found)


def add(user_id: int, *, name: str, slug: str | None = None, public: bool = False) -> Row:
    added = run_with_name(
        """
        INSERT INTO campaigns (user_id, name, slug, public)
        VALUES (%(user_id)s, %(name)s, %(slug)s, %(public)s)
        RETURNING id, name AS domain, name AS campaign, public, slug,
                  (SELECT username FROM users WHERE users.id = user_id) AS username
        """,
        user_id=user_id,
        name=name,
        slug=slug,
        public=public,
    )
    assert added is not None
    return _with_addresses(added)


def update(user_id: int, campaign_id: int, *, name: str, slug: str | None = None, public: bool | None = None) -> Row:
    """An empty slug takes the campaign's away, and its rotator with it."""
    updated = run_with_name(
        """
        UPDATE campaigns
           SET name = %(name)s,
               slug = nullif(coalesce(%(slug)s, slug), ''),
               public = coalesce(%(public)s, public)
         WHERE user_id = %(user_id)s AND id = %(campaign_id)s
        RETURNING id, name AS domain, name AS campaign, public, slug,
                  (SELECT username FROM users WHERE users.id = user_id) AS username
        """,
        user_id=user_id,
        campaign_id=campaign_id,
        name=name,
        slug=slug,
        public=public,
    )
    if updated is None:
        raise not_found("campaign")
    return _with_addresses(updated)


def assign(user_id: int, campaign_id: int, link_id: int) -> None:
    """A link is in one campaign at most: it leaves the one that it was in.  The campaign is locked, so that one
    which is deleted meanwhile is missing here, rather than a broken reference."""
    found = run(
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
    assert found is not None
    for what in ("campaign", "link"):
        if not found[what]:
            raise not_found(what)


def delete(user_id: int, campaign_id: int) -> None:
    """Its links are kept."""
    deleted = run(
        "DELETE FROM campaigns WHERE user_id = %(user_id)s AND id = %(campaign_id)s RETURNING id",
        user_id=user_id,
        campaign_id=campaign_id,
    )
    if deleted is None:
        raise not_found("campaign")
