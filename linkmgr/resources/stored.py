"""The resources whose rows are read, exported and sent as events in the same way."""

from linkmgr.resources.bio import BioPage
from linkmgr.resources.campaigns import Campaign
from linkmgr.resources.channels import Channel
from linkmgr.resources.domains import Domain
from linkmgr.resources.overlay import Overlay
from linkmgr.resources.pixels import Pixel
from linkmgr.resources.resource import Stored
from linkmgr.resources.splash import Splash

# In an order in which a row refers to earlier ones only, for imports.
STORED: tuple[type[Stored], ...] = (Domain, Campaign, Channel, Pixel, Splash, Overlay, BioPage)
