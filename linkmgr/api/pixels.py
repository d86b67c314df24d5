"""/api/pixels and /api/pixel"""

from flask import Blueprint, Response

from linkmgr.fields.base import Changes, Choice, Matching, New, Text, body
from linkmgr.fields.query import paging
from linkmgr.repository import pixels
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, listing, ok, updated, versioned

bp = Blueprint("pixels", __name__)

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


class NewPixel(New):
    type = Choice(TYPES, required=True)
    name = Text(required=True)
    tag = Matching(*TAG, required=True)


class PixelChanges(Changes):
    name = Text()
    tag = Matching(*TAG, required=True)


@bp.get("/pixels")
def index() -> Json:
    return listing("pixels", pixels.index(user_id(), **paging()))


@bp.get("/pixel/<id:pixel_id>")
def read(pixel_id: int) -> Response:
    pixel = pixels.read(user_id(), pixel_id)
    return versioned(pixel.pop("version"), data=pixel)


@bp.post("/pixel/add")
def add() -> Json:
    return ok(id=pixels.add(user_id(), **body(NewPixel)))


@bp.put("/pixel/<id:pixel_id>/update")
def update(pixel_id: int) -> Response:
    pixel = pixels.update(user_id(), pixel_id, **body(PixelChanges))
    return updated("Pixel has been updated successfully.", pixel.pop("version"), data=pixel)


@bp.delete("/pixel/<id:pixel_id>/delete")
def delete(pixel_id: int) -> Json:
    pixels.delete(user_id(), pixel_id)
    return ok("Pixel has been deleted successfully.")
