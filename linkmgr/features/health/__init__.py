"""Health: checks of the targets of links in the background."""

from linkmgr.core.database.jobs import Jobs
from linkmgr.core.feature import Feature
from linkmgr.core.web.operation import prose
from linkmgr.features.health import checks, handlers
from linkmgr.features.health.requests import AGENT, DEADLINE, MAX_REDIRECTS

_NOTES = prose(checks.__file__, agent=AGENT, check_seconds=DEADLINE, redirects=MAX_REDIRECTS)
FEATURE = Feature(
    "health",
    blueprints=(handlers.bp,),
    notes={"targets": _NOTES},
    jobs=Jobs(threads=(checks.Checker,)),
)
