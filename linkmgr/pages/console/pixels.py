"""Pixels."""

from linkmgr.api import pixels as api
from linkmgr.pages.console import plain
from linkmgr.repository import pixels

FORM = plain.resource(
    "pixel", pixels, api.NewPixel, api.PixelChanges,
    labels={"type": "Service", "name": "Name", "tag": "Id"},
    choices=lambda: {"types": api.SERVICES},
)  # fmt: skip
