"""Members: users who work in the account of another user, and what has changed in it."""

from linkmgr.core.database.expiry import older_than
from linkmgr.core.database.jobs import Jobs
from linkmgr.core.feature import Feature
from linkmgr.features.members import handlers

FEATURE = Feature(
    "members",
    blueprints=(handlers.bp,),
    sections=(handlers.SECTION,),
    jobs=Jobs(expiring=(older_than("members", "created", "7 days", "member_id IS NULL"),)),
)
