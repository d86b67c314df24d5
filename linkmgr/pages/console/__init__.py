"""/console: everything that the API does, in a browser. One module per resource; see CONTRIBUTING."""

from linkmgr.pages.console import (  # noqa: F401 - they add their routes to the blueprint
    binned,
    bio,
    campaigns,
    channels,
    domains,
    home,
    keys,
    link_changes,
    links,
    overlay,
    pixels,
    qr,
    splash,
    statistics,
    transfer,
    utm,
    webhooks,
)
from linkmgr.pages.console.frame import bp as bp
