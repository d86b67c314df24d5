"""The resources of the service whose rows are read, exported and sent as events in the same way."""

from linkmgr.core.fields.resource import Stored
from linkmgr.schemas.bio import BIO_PAGES
from linkmgr.schemas.campaigns import CAMPAIGNS
from linkmgr.schemas.channels import CHANNELS
from linkmgr.schemas.domains import DOMAINS
from linkmgr.schemas.overlay import OVERLAYS
from linkmgr.schemas.pixels import PIXELS
from linkmgr.schemas.splash import SPLASH_PAGES

# In an order in which a row refers to earlier ones only, for imports.
STORED: tuple[Stored, ...] = (DOMAINS, CAMPAIGNS, CHANNELS, PIXELS, SPLASH_PAGES, OVERLAYS, BIO_PAGES)
