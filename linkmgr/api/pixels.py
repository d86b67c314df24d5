"""/api/pixels and /api/pixel"""

from flask import Blueprint

from linkmgr.api import usual
from linkmgr.resources.pixels import Pixel

bp = Blueprint("pixels", __name__)
usual.add_routes(bp, Pixel)
