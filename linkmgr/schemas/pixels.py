from linkmgr.core.fields.base import Choice, Matching, Text
from linkmgr.core.fields.member import member
from linkmgr.core.fields.resource import Resource, Stored, Words, created, row_id, updated
from linkmgr.repository import pixels

SERVICES = {
    "gtmpixel": "Google Tag Manager",
    "gapixel": "Google Analytics",
    "fbpixel": "Facebook",
    "adwordspixel": "Google Ads",
    "linkedinpixel": "LinkedIn",
    "twitterpixel": "X (Twitter)",
    "adrollpixel": "AdRoll",
    "quorapixel": "Quora",
    "pinterest": "Pinterest",
    "bing": "Bing",
    "snapchat": "Snapchat",
    "reddit": "Reddit",
    "tiktok": "TikTok",
}
TYPES = tuple(SERVICES)
TAG = "[A-Za-z0-9_.:/-]{1,100}", "1 to 100 letters, digits, '_', '.', ':', '/' or '-'"


class Pixel(Resource):
    id = row_id()
    type = member(
        Choice(TYPES, required=True),
        "The network that the pixel reports to. It cannot be changed.",
        "gtmpixel",
        label="Service",
        fixed=True,
        options=SERVICES,
    )
    name = member(Text(required=True), "Its name in lists.", "Shop", label="Name")
    tag = member(
        Matching(*TAG, required=True),
        "The id that the network assigned to you.",
        "GTM-ABC123",
        label="Id",
        needed=True,
    )
    date = created()
    updated = updated()


PIXELS = Stored(
    Pixel,
    Words("pixel", path="pixel", plural="pixels", table="pixels"),
    rows=pixels,
    create=pixels.add,
    change=pixels.update,
)
