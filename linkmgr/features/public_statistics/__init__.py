"""Statistics of a link or a campaign on a page for all who have its address."""

from linkmgr.core.feature import Feature
from linkmgr.features.public_statistics import handlers

FEATURE = Feature("public_statistics", blueprints=(handlers.bp,), sections=(handlers.SECTION,))
