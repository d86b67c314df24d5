"""A feature: a capability besides the documented service, which an installation can leave out."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import click
from flask import Blueprint, Flask

from linkmgr.core.database.jobs import Jobs
from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.resource import Stored
from linkmgr.core.hooks import Hooks
from linkmgr.core.settings import settings, this_app
from linkmgr.core.web.operation import Section


class Feature(NamedTuple):
    """All that is registered for a feature. Its tables stay if it is left out."""

    name: str
    blueprints: tuple[Blueprint, ...] = ()  # of the API and of pages for visitors
    sections: tuple[Section, ...] = ()  # of the documents
    notes: Mapping[str, str] = {}  # paragraphs that the documents append to the section of a word
    records: Callable[[], dict[str, JsonSchema]] = dict  # that its operations add to the section of a word
    # Exported, imported and sent as events like those of the service
    resources: tuple[Stored, ...] = ()
    jobs: Jobs = Jobs()
    hooks: Hooks = Hooks()
    commands: tuple[click.Group, ...] = ()
    init_app: Callable[[Flask], None] = lambda _app: None  # prepares what the feature keeps of an application


def init_app(app: Flask, parts: tuple[Feature, ...]) -> None:
    app.extensions["linkmgr_features"] = parts


def features() -> tuple[Feature, ...]:
    """Return the documented service, which is the first one, and the features of this
    application."""
    registered: tuple[Feature, ...] = this_app().extensions["linkmgr_features"]
    return registered


def sections() -> list[Section]:
    """Return the sections of the document, in its order, with the notes of features."""
    return [_with_notes(section) for feature in features() for section in feature.sections]


def _with_notes(section: Section) -> Section:
    notes = [feature.notes.get(section.word, "") for feature in features()]
    description = "\n\n".join(filter(None, [section.description, *notes]))
    return replace(section, description=description, apart=section.apart and _with_notes(section.apart))


def records() -> dict[str, JsonSchema]:
    """Return the schemas of the records of all sections by name."""
    added = [feature.records for feature in features()]
    return {
        name: record
        for make in [*(section.records for section in sections()), *added]
        for name, record in make().items()
    }


def resources() -> tuple[Stored, ...]:
    return tuple(stored for feature in features() for stored in feature.resources)


def has_feature(name: str) -> bool:
    return any(feature.name == name for feature in features())


def has_console() -> bool:
    """Most pages of the console show figures."""
    return has_feature("statistics")


def has_mail() -> bool:
    return has_feature("mail") and settings().mail_url is not None
