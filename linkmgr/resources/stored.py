"""The resources whose rows are read, exported and sent as events in the same way."""

from linkmgr.resources.bio import BIO_PAGES
from linkmgr.resources.campaigns import CAMPAIGNS
from linkmgr.resources.channels import CHANNELS
from linkmgr.resources.domains import DOMAINS
from linkmgr.resources.overlay import OVERLAYS
from linkmgr.resources.pixels import PIXELS
from linkmgr.resources.resource import Stored
from linkmgr.resources.splash import SPLASH_PAGES
from linkmgr.resources.utm import UTM_TEMPLATES

# In an order in which a row refers to earlier ones only, for imports.
STORED: tuple[Stored, ...] = (DOMAINS, CAMPAIGNS, CHANNELS, PIXELS, SPLASH_PAGES, OVERLAYS, UTM_TEMPLATES, BIO_PAGES)
