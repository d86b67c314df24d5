"""Bulk: up to a thousand rows with one request."""

from linkmgr.core.feature import Feature
from linkmgr.features.bulk import handlers

FEATURE = Feature("bulk", blueprints=(handlers.bp,), sections=(handlers.SECTION,))
