"""Exports of rows, of visits and of an account."""

from linkmgr.core.feature import Feature
from linkmgr.features.exports import commands, handlers

FEATURE = Feature(
    "exports", blueprints=(handlers.bp,), sections=(handlers.SECTION,), commands=(commands.group,)
)
