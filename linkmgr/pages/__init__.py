"""Pages and other URLs outside the API. Each module serves one kind of URL."""

from functools import cached_property

from flask import Flask
from werkzeug.routing import BaseConverter, ValidationError

from linkmgr.pages import (
    account,
    administration,
    avatar,
    branded,
    campaign,
    console,
    home,
    login,
    overlay_answers,
    probes,
    qr,
    scan,
    short,
)
from linkmgr.visits import geoip, record

MODULES = (home, probes, login, account, console, administration, avatar, branded, qr, scan, overlay_answers, campaign,
           short)  # fmt: skip


class WordConverter(BaseConverter):
    """A user name, a slug or a QR code in a path."""

    regex = "[A-Za-z0-9_.-]{1,64}"


class AliasConverter(BaseConverter):
    """The alias of a short link or bio page. The first word of any other route is never an alias."""

    regex = r"(?!api\Z)[A-Za-z0-9_-]{1,50}"  # without the lookahead, /api/qr would match /<alias>/qr

    @cached_property
    def reserved(self) -> set[str]:
        return {rule.rule.split("/", 2)[1] for rule in self.map.iter_rules()}

    def to_python(self, value: str) -> str:
        if value in self.reserved:
            raise ValidationError
        return value


def init_app(app: Flask) -> None:
    app.url_map.converters["word"] = WordConverter
    app.url_map.converters["alias"] = AliasConverter
    geoip.init_app(app)
    record.init_app(app)
    for module in MODULES:
        app.register_blueprint(module.bp)
