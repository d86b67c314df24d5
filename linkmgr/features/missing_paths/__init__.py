"""Paths that visitors did not find, of branded domains and of our own host."""

from linkmgr.core.database.jobs import Jobs
from linkmgr.core.feature import Feature
from linkmgr.core.hooks import Hooks
from linkmgr.core.web.operation import prose
from linkmgr.features.missing_paths import handlers, paths, repository

FEATURE = Feature(
    "missing_paths",
    blueprints=(handlers.bp,),
    notes={"domains": prose(handlers.__file__, paths=repository)},
    records=lambda: {"MissingPath": handlers.MISSING_PATH},
    jobs=Jobs(expiring=(repository.delete_expired,)),
    hooks=Hooks(count_missing_path=paths.count),
    init_app=paths.init_app,
)
