"""Versions of the rows that updates and deletes change: `xmin`, which PostgreSQL sets on every change of a row."""

from linkmgr.db.statements import run

_BIO = "SELECT xmin::text AS version FROM bios WHERE user_id = %(user_id)s AND id = %(bio_id)s FOR NO KEY UPDATE"
_CAMPAIGN = """
    SELECT xmin::text AS version FROM campaigns WHERE user_id = %(user_id)s AND id = %(campaign_id)s FOR NO KEY UPDATE
"""
_CHANNEL = """
    SELECT xmin::text AS version FROM channels WHERE user_id = %(user_id)s AND id = %(channel_id)s FOR NO KEY UPDATE
"""
# Not xmin, which changes with every check.
_DOMAIN = """
    SELECT domain_version(redirectroot, redirect404, brandname, brandlogo, brandcolor, logo_digest) AS version
      FROM domains
     WHERE user_id = %(user_id)s AND id = %(domain_id)s
       FOR NO KEY UPDATE
"""
_IMPORT = (
    "SELECT xmin::text AS version FROM imports WHERE user_id = %(user_id)s AND id = %(import_id)s FOR NO KEY UPDATE"
)
_KEY = "SELECT xmin::text AS version FROM api_keys WHERE user_id = %(user_id)s AND id = %(key_id)s FOR NO KEY UPDATE"
_LINK = "SELECT xmin::text AS version FROM links WHERE user_id = %(user_id)s AND id = %(link_id)s FOR NO KEY UPDATE"
_OVERLAY = """
    SELECT xmin::text AS version FROM overlays WHERE user_id = %(user_id)s AND id = %(overlay_id)s FOR NO KEY UPDATE
"""
_PIXEL = "SELECT xmin::text AS version FROM pixels WHERE user_id = %(user_id)s AND id = %(pixel_id)s FOR NO KEY UPDATE"
_QR = "SELECT xmin::text AS version FROM qrs WHERE user_id = %(user_id)s AND id = %(qr_id)s FOR NO KEY UPDATE"
_SPLASH = """
    SELECT xmin::text AS version FROM splash_pages WHERE user_id = %(user_id)s AND id = %(splash_id)s FOR NO KEY UPDATE
"""
# The caller, or the user that an administrator names in the path.
_USER = "SELECT xmin::text AS version FROM users WHERE id = %(user_id)s FOR NO KEY UPDATE"
# Not xmin, which changes with every failed delivery.
_WEBHOOK = """
    SELECT webhook_version(webhooks) AS version
      FROM webhooks
     WHERE user_id = %(user_id)s AND id = %(webhook_id)s
       FOR NO KEY UPDATE
"""

# By blueprint. The parameters are the caller's user_id and the ids in the path.
STATEMENTS = {
    "account": _USER,
    "bio": _BIO,
    "campaigns": _CAMPAIGN,
    "channels": _CHANNEL,
    "default_key": _USER,
    "domains": _DOMAIN,
    "imports": _IMPORT,
    "keys": _KEY,
    "overlay": _OVERLAY,
    "pixels": _PIXEL,
    "plans": _USER,
    "qr": _QR,
    "splash": _SPLASH,
    "urls": _LINK,
    "users": _USER,
    "webhooks": _WEBHOOK,
}


def lock(user_id: int, blueprint: str, ids: dict[str, int]) -> str | None:
    """Return the version of the row that a request changes, or None if there is none. Until the transaction ends, no
    other transaction changes the row."""
    row = run(STATEMENTS[blueprint], **({"user_id": user_id} | ids))
    return None if row is None else str(row["version"])
