"""The pages for people: sign-in, the account, and /console, which does everything that the API
does."""

from flask import Flask

from linkmgr.console import account, avatar, login, plan_use, signed_in
from linkmgr.console.navigation import navigation
from linkmgr.core.feature import has_console, has_feature, has_mail
from linkmgr.core.fields.urls import link_name, readable
from linkmgr.core.settings import settings
from linkmgr.public.home import first_page

_TIMES = (signed_in.when, signed_in.minute, signed_in.exact, signed_in.to_control)


def init_app(app: Flask) -> None:
    for shown in (*_TIMES, signed_in.counted, link_name, readable):
        app.add_template_filter(shown)
    app.jinja_env.globals.update(navigation=navigation, included=plan_use.included, first_page=first_page)
    app.jinja_env.globals.update(has_mail=has_mail, has_passwords=settings().passwords)
    for blueprint in (login.bp, account.bp, avatar.bp):
        app.register_blueprint(blueprint)
    # None is imported without its setting, nor is Authlib
    if has_mail():
        from linkmgr.console import mail  # noqa: PLC0415

        mail.init_app(app)
    if has_feature("signin") and settings().oidc_issuer:
        from linkmgr.console import sign_in_oidc  # noqa: PLC0415

        app.register_blueprint(sign_in_oidc.bp)
        app.register_blueprint(sign_in_oidc.identity_bp)
    if has_feature("signin") and settings().remote_user_header:
        from linkmgr.console import sign_in_remote  # noqa: PLC0415

        app.register_blueprint(sign_in_remote.bp)
    if has_feature("signin"):
        from linkmgr.console import confirm_page, factors, second_factor  # noqa: PLC0415

        for blueprint in (confirm_page.bp, factors.bp, second_factor.bp):
            app.register_blueprint(blueprint)
    if has_console():
        from linkmgr.console import pages  # noqa: PLC0415 - not imported without the console

        pages.init_app(app)
