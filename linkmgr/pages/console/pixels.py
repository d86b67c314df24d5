"""Pixels."""

from linkmgr.api import pixels as api
from linkmgr.pages.console import plain
from linkmgr.repository import pixels

TYPES = {
    "gtmpixel": "Google Tag Manager", "gapixel": "Google Analytics", "fbpixel": "Facebook",
    "adwordspixel": "Google Ads", "linkedinpixel": "LinkedIn", "twitterpixel": "X (Twitter)", "adrollpixel": "AdRoll",
    "quorapixel": "Quora", "pinterest": "Pinterest", "bing": "Bing", "snapchat": "Snapchat", "reddit": "Reddit",
    "tiktok": "TikTok",
}  # fmt: skip

FORM = plain.resource(
    "pixel", pixels, api.NewPixel, api.PixelChanges,
    labels={"type": "Service", "name": "Name", "tag": "Id"},
    choices=lambda: {"types": TYPES},
)  # fmt: skip
