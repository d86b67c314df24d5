"""linkmgr, a self-hosted link-management service. create_app() is the table of contents."""

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from linkmgr import api, cli, metrics, openapi, pages, settings
from linkmgr.db import jobs, lookups, replica, restricted, statements
from linkmgr.imports import blocklist, job
from linkmgr.pages import branded, short
from linkmgr.repository import blocked, link_lists, purge, tables
from linkmgr.request.request import IdConverter, Service
from linkmgr.web import (
    auth,
    compression,
    error_handlers,
    members,
    middleware,
    operation,
    responses,
    security_headers,
    sessions,
    writes,
)

__version__ = settings.RELEASE


def create_app(**overrides: str) -> Flask:
    """Create the application from the environment. `overrides` are settings by name."""
    app = Service(__name__)
    settings.init_app(app, **overrides)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.json = responses.OrjsonProvider(app)
    app.url_map.converters["id"] = IdConverter
    app.url_map.merge_slashes = False  # "//" is a 404, not a redirect
    app.url_map.strict_slashes = False
    with app.app_context():
        statements.init_app(app)
        replica.init_app(app)
        lookups.init_app(app)
        restricted.init_app(app)
        blocked.init_app(app)
        jobs.init_app(
            tables.HANDLERS, idle=[link_lists.empty_pending_list, purge.delete_some_expired, blocklist.update]
        )
        job.init_app()
        compression.init_app(app)  # before other hooks, which run in the reverse order
        branded.init_app(app)
        error_handlers.init_app(app)
        security_headers.init_app(app)
        auth.init_app(app)
        sessions.init_app(app)
        api.init_app(app)
        openapi.init_app(app)
        pages.init_app(app)
        operation.init_app(app)  # needs all routes
        members.init_app(app, api.records())  # needs the scopes of the operations
        writes.init_app(app)  # needs all routes
        cli.init_app(app)
        metrics.init_app(app)  # needs all routes
        middleware.init_app(app, pages=short.FastRedirects(app))
        if proxies := settings.settings().trusted_proxies:
            app.wsgi_app = ProxyFix(app.wsgi_app, x_for=proxies, x_proto=proxies, x_host=0)  # type: ignore[method-assign]
    return app
