"""The public pages behind the URLs. Each module serves some URLs."""

from functools import cached_property

from flask import Flask
from werkzeug.routing import BaseConverter, ValidationError

from linkmgr.core.feature import has_console, has_feature
from linkmgr.core.fields.aliases import PATTERN, is_wide, normal, reserved_words
from linkmgr.core.web.host import WideRoutes
from linkmgr.public import branded, campaign, home, overlay_answers, probes, qr, scan, short
from linkmgr.visits import counting, geoip

MODULES = (home, probes, branded, qr, scan, overlay_answers, campaign, short)


class WordConverter(BaseConverter):
    regex = "[A-Za-z0-9_.-]{1,64}"


class CodeConverter(WordConverter):
    """The code of a QR code. /q/pixels and /qr/qr belong to the links with the aliases q and qr."""

    regex = f"(?!(?:ico|pixels|qr)\\Z){WordConverter.regex}"


class AliasConverter(BaseConverter):
    regex = rf"(?!api\Z){PATTERN}"  # without the lookahead, /api/qr would match /<alias>/qr

    @cached_property
    def reserved(self) -> frozenset[str]:
        return reserved_words(self.map)

    def to_python(self, value: str) -> str:
        if value in self.reserved:
            raise ValidationError
        return value


class WideConverter(BaseConverter):
    """An alias with `/`, `.` or letters of any script, which none of our paths begins with."""

    map: WideRoutes
    regex = "[^+/]+(?:/[^+/]+)*"

    @cached_property
    def reserved(self) -> frozenset[str]:
        return reserved_words(self.map.routes)

    def to_python(self, value: str) -> str:
        alias = normal(value)
        if not is_wide(alias) or alias.split("/", 1)[0] in self.reserved:
            raise ValidationError
        return alias


def init_app(app: Flask) -> None:
    app.url_map.converters["word"] = WordConverter
    app.url_map.converters["code"] = CodeConverter
    app.url_map.converters["alias"] = AliasConverter
    app.url_map.converters["wide"] = WideConverter
    app.jinja_env.globals.update(has_feature=has_feature, has_console=has_console)
    geoip.init_app()
    counting.init_app(app)
