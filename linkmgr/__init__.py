"""linkmgr, a self-hosted link-management service. create_app() is the table of contents."""

from collections.abc import Iterable

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from linkmgr import api, cli, console, document, public
from linkmgr.core import feature, hooks, metrics, settings
from linkmgr.core.database import jobs, lookups, replica, statements
from linkmgr.core.feature import Feature
from linkmgr.core.web import (
    auth,
    compression,
    error_handlers,
    host,
    middleware,
    operation,
    responses,
    security_headers,
    sessions,
    templates,
)
from linkmgr.core.web.request import IdConverter, Service
from linkmgr.features import load
from linkmgr.public import branded, short
from linkmgr.repository import deletions, link_lists, purge
from linkmgr.schemas.stored import STORED
from linkmgr.visits import blocked

__version__ = settings.RELEASE

DOCUMENTED = Feature(
    "",
    hooks=hooks.Hooks(answer_host=branded.answer_host, missing_page=branded.missing_page),
    blueprints=tuple(module.bp for module in (*api.MODULES, *public.MODULES)),
    sections=tuple(module.SECTION for module in api.MODULES),
    resources=STORED,
    jobs=jobs.Jobs(
        handlers=deletions.HANDLERS,
        idle=(link_lists.empty_pending_list, purge.delete_some_expired),
        expiring=purge.EXPIRING,
    ),
    commands=cli.GROUPS,
)


def create_app(features: Iterable[str] | None = None, **overrides: str) -> Flask:
    """Create the application from the environment.

    `features` has the names of its features, by default those of the setting. `overrides` are
    settings by name.
    """
    app = Service(__name__)
    settings.init_app(app, **overrides)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.json = responses.OrjsonProvider(app)
    app.url_map.converters["id"] = IdConverter
    app.url_map.merge_slashes = False  # "//" is a 404, not a redirect
    app.url_map.strict_slashes = False
    with app.app_context():
        parts = (DOCUMENTED, *load(settings.settings().features if features is None else features))
        feature.init_app(app, parts)
        app.hosts = host.Hosts(app)
        statements.init_app(app)
        replica.init_app()
        lookups.init_app(app)
        blocked.init_app(app)
        hooks.init_app(app, [part.hooks for part in parts])
        jobs.init_app(app, [part.jobs for part in parts])
        for part in parts:
            part.init_app(app)
        branded.init_app(app)
        error_handlers.init_app(app)
        security_headers.init_app(app)
        auth.init_app(app)
        sessions.init_app(app)
        templates.init_app(app)
        public.init_app(app)
        for blueprint in [blueprint for part in parts for blueprint in part.blueprints]:
            app.register_blueprint(blueprint)
        console.init_app(app)
        document.init_app(app)
        host.init_routes(app, branded.PAGES)  # needs all routes
        operation.init_app(app)  # needs all routes
        compression.init_app(app)  # after other hooks after a request, which run in the reverse order
        cli.init_app(app, [group for part in parts for group in part.commands])
        metrics.init_app(app)  # needs all routes
        middleware.init_app(app, pages=short.FastRedirects(app))
        if proxies := settings.settings().trusted_proxies:
            app.wsgi_app = ProxyFix(app.wsgi_app, x_for=proxies, x_proto=proxies, x_host=0)  # type: ignore[method-assign]
    return app
