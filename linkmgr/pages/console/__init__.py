"""/console: everything that the API does, in a browser. One module per resource; see CONTRIBUTING."""

from linkmgr.pages.console import export, home, links, transfer  # noqa: F401 - they add their routes to the blueprint
from linkmgr.pages.console.frame import bp as bp
