"""E-mail messages, if a mail server is set."""

from flask import Flask

from linkmgr.core.database.jobs import Jobs
from linkmgr.core.feature import Feature
from linkmgr.core.hooks import Hooks
from linkmgr.core.settings import PREFIX, InvalidSetting, settings
from linkmgr.features.mail import commands, look, outgoing, repository


def _check_settings(_app: Flask) -> None:
    if settings().mail_url and not settings().mail_from:
        raise InvalidSetting(f"{PREFIX}MAIL_FROM must be set too if {PREFIX}MAIL_URL is set.")


FEATURE = Feature(
    "mail",
    jobs=Jobs(handlers=outgoing.HANDLERS | look.HANDLERS, idle=(look.begin,), expiring=repository.EXPIRING),
    hooks=Hooks(notify=outgoing.notify),
    commands=(commands.group,),
    init_app=_check_settings,
)
