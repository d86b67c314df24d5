"""The resources whose rows are read, exported and sent as events in the same way."""

from linkmgr.resources.bio import BioPage
from linkmgr.resources.campaigns import Campaign
from linkmgr.resources.channels import Channel
from linkmgr.resources.domains import Domain
from linkmgr.resources.overlay import Overlay
from linkmgr.resources.pixels import Pixel
from linkmgr.resources.resource import Resource
from linkmgr.resources.splash import Splash

KINDS: tuple[type[Resource], ...] = (Campaign, Channel, BioPage, Splash, Overlay, Pixel, Domain)
