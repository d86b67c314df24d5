"""/console/administration: the state of the service, users, plans and the audit trail, for administrators only."""

from linkmgr.pages.administration import activity, plans, reports, service, users  # noqa: F401 - they add their routes to the blueprint
from linkmgr.pages.administration.access import bp as bp
