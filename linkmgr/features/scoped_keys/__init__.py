"""Scoped keys: API keys with only some scopes, domains, rows or IP addresses."""

from linkmgr.core.feature import Feature
from linkmgr.core.hooks import Hooks
from linkmgr.features.scoped_keys import callers, commands, handlers, restricted

FEATURE = Feature(
    "scoped_keys",
    blueprints=(handlers.bp,),
    sections=(handlers.SECTION,),
    hooks=Hooks(find_key=callers.find_key, use_key=callers.use_key),
    commands=(commands.group,),
    init_app=restricted.init_app,
)
