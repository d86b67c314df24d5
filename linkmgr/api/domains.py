"""/api/domains and /api/domain"""

from flask import Blueprint

from linkmgr.api import usual
from linkmgr.resources.domains import Domain

bp = Blueprint("domains", __name__)
usual.add_routes(bp, Domain)
