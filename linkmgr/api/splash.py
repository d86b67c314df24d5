"""/api/splash"""

from flask import Blueprint

from linkmgr.api import usual
from linkmgr.resources.splash import Splash

bp = Blueprint("splash", __name__)
usual.add_routes(bp, Splash)
