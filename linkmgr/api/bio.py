"""/api/bio"""

from flask import Blueprint

from linkmgr.api import usual
from linkmgr.resources.bio import BioPage

bp = Blueprint("bio", __name__)
usual.add_routes(bp, BioPage)
