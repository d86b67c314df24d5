"""Reports of abuse, and what administrators block."""

from linkmgr.core.database.jobs import Jobs
from linkmgr.core.feature import Feature
from linkmgr.features.reports import blocklist, handlers, preview, repository

FEATURE = Feature(
    "reports",
    blueprints=(handlers.bp, preview.bp),
    sections=(handlers.SECTION,),
    jobs=Jobs(idle=(blocklist.update,), expiring=repository.EXPIRING),
)
