"""Conversions: visitors of a link who reached an aim on the page of its target."""

from linkmgr.core.feature import Feature
from linkmgr.features.conversions import handlers, pixel

FEATURE = Feature("conversions", blueprints=(handlers.bp, pixel.bp), sections=(handlers.SECTION,))
