"""The pages for people: sign-in, the account, and /console, which does everything that the API
does."""

from flask import Flask

from linkmgr.console import account, avatar, login, plan_use, signed_in
from linkmgr.console.navigation import navigation
from linkmgr.core.feature import has_console
from linkmgr.core.fields.urls import link_name, readable
from linkmgr.public.home import first_page

_TIMES = (signed_in.when, signed_in.minute, signed_in.exact, signed_in.to_control)


def init_app(app: Flask) -> None:
    for shown in (*_TIMES, signed_in.counted, link_name, readable):
        app.add_template_filter(shown)
    app.jinja_env.globals.update(navigation=navigation, included=plan_use.included, first_page=first_page)
    for blueprint in (login.bp, account.bp, avatar.bp):
        app.register_blueprint(blueprint)
    if has_console():
        from linkmgr.console import pages  # noqa: PLC0415 - not imported without the console

        pages.init_app(app)
