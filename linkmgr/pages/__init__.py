"""What people and machines see outside of the API: one module a kind of address."""

from functools import cached_property

from flask import Flask
from werkzeug.routing import BaseConverter, ValidationError

from linkmgr.pages import (
    account,
    avatar,
    campaign,
    challenge,
    health,
    home,
    login,
    metrics,
    overlay_answers,
    qr,
    scan,
    short,
)
from linkmgr.visits import geoip, record

BLUEPRINTS = (
    home.bp,
    health.bp,
    metrics.bp,
    login.bp,
    account.bp,
    avatar.bp,
    challenge.bp,
    qr.bp,
    scan.bp,
    overlay_answers.bp,
    campaign.bp,
    short.bp,
)


class WordConverter(BaseConverter):
    """What names, slugs and codes are made of; a path with anything else is none of ours."""

    regex = "[A-Za-z0-9_.-]{1,64}"


class AliasConverter(BaseConverter):
    """The names of short links and bio pages.  A word that another address begins with is none."""

    regex = r"(?!api\Z)[A-Za-z0-9_-]{3,50}"  # else "api" in front of "qr" has it take GET

    @cached_property
    def _taken(self) -> set[str]:
        return {rule.rule.split("/", 2)[1] for rule in self.map.iter_rules()}

    def to_python(self, value: str) -> str:
        if value in self._taken:
            raise ValidationError
        return value


def init_app(app: Flask) -> None:
    app.url_map.converters["word"] = WordConverter
    app.url_map.converters["alias"] = AliasConverter
    geoip.init_app(app)
    record.init_app(app)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
