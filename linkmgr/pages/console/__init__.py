"""/console: everything that the API does, in a browser. One module per resource; see CONTRIBUTING."""

from importlib import import_module
from pkgutil import iter_modules

from linkmgr.pages.console.frame import bp as bp

for module in iter_modules(__path__):
    import_module(f"{__name__}.{module.name}")  # they add their routes to the blueprint
