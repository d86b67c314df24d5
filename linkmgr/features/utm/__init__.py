"""UTM templates: parameters of links that campaigns share."""

from linkmgr.core.feature import Feature
from linkmgr.features.utm import handlers
from linkmgr.features.utm.schema import UTM_TEMPLATES

FEATURE = Feature("utm", blueprints=(handlers.bp,), sections=(handlers.SECTION,), resources=(UTM_TEMPLATES,))
