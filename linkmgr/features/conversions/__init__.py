"""Conversions: what visitors of links did on the pages of the targets, such as a purchase."""

from linkmgr.core.database.jobs import Jobs
from linkmgr.core.feature import Feature
from linkmgr.core.hooks import Hooks
from linkmgr.features.conversions import clicks, handlers, pages, repository, results

FEATURE = Feature(
    "conversions",
    blueprints=(handlers.bp, pages.bp),
    sections=(handlers.SECTION,),
    jobs=Jobs(idle=(repository.add_labels, results.look), expiring=(repository.forget_visitors,)),
    hooks=Hooks(add_click_id=clicks.add),
)
