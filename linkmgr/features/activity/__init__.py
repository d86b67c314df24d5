"""The activity of accounts with members: who changed what. The events have it."""

from linkmgr.core.feature import Feature
from linkmgr.features.activity import handlers

FEATURE = Feature("activity", blueprints=(handlers.bp,), sections=(handlers.SECTION,))
