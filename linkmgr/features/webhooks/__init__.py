"""Events, webhooks that receive them, and the audit trail."""

from linkmgr.core.database.jobs import Jobs
from linkmgr.core.feature import Feature
from linkmgr.features.webhooks import commands, handlers, noted, outbox
from linkmgr.features.webhooks.worker import Worker

FEATURE = Feature(
    "webhooks",
    blueprints=(handlers.bp,),
    sections=(handlers.SECTION,),
    jobs=Jobs(expiring=outbox.EXPIRING, threads=(Worker,)),
    commands=(commands.group,),
    init_app=noted.init_app,
)
