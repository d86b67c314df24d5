"""The API: one module per word after /api/."""

from linkmgr.api import (
    account,
    bio,
    campaigns,
    channels,
    domains,
    links,
    overlay,
    pixels,
    plans,
    qr,
    splash,
    users,
)

MODULES = (account, links, bio, domains, splash, overlay, pixels, qr, campaigns, channels, plans, users)
