"""Pixels."""

from linkmgr.api import pixels as api
from linkmgr.pages.console import resources
from linkmgr.repository import pixels

FORM = resources.resource(
    "pixel", pixels, api.NewPixel, api.PixelChanges,
    labels={"type": "Service", "name": "Name", "tag": "Id"},
    choices=lambda: {"types": api.SERVICES},
)  # fmt: skip
