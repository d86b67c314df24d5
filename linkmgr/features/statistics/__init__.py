"""Statistics over time, by label, and lists of visits."""

from linkmgr.core.feature import Feature
from linkmgr.features.statistics import handlers

FEATURE = Feature("statistics", blueprints=(handlers.bp,), sections=(handlers.SECTION,))
