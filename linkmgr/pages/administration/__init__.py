"""/console/administration: the state of the service, users and plans, for administrators only."""

from linkmgr.pages.administration import plans, service, users  # noqa: F401 - they add their routes to the blueprint
from linkmgr.pages.administration.access import bp as bp
