"""Imports of links from other services, and of exported accounts."""

from linkmgr.core.database.jobs import Jobs
from linkmgr.core.feature import Feature
from linkmgr.features.imports import commands, failed_rows, handlers, job, repository

FEATURE = Feature(
    "imports",
    blueprints=(handlers.bp,),
    sections=(handlers.SECTION,),
    jobs=Jobs(
        handlers=job.HANDLERS,
        expiring=(repository.delete_old_drafts, failed_rows.delete_expired, repository.cancel_expired),
    ),
    commands=(commands.group,),
)
