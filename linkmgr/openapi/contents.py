"""The sections of the document, and the operations that each of them has."""

from dataclasses import replace
from typing import Any

from flask import Flask

from linkmgr.fields.member import JsonSchema
from linkmgr.openapi.operations import SECTIONS
from linkmgr.resources import shapes
from linkmgr.web.operation import Route, Section, routes

Contents = list[tuple[Section, list[Route]]]


def contents(app: Flask) -> Contents:
    """Return the sections, each with its operations: those whose ids begin with its word."""
    documented = [route for route in routes(app) if route.operation.id]
    by_word = {
        section.word: [route for route in documented if route.operation.id.partition(".")[0] == section.word]
        for section in SECTIONS
    }
    return [(section, _with_entries(section, by_word[section.word])) for section in SECTIONS]


def _with_entries(section: Any, section_routes: list[Route]) -> list[Route]:
    entries = getattr(section, "operations", ())
    by_path = {(route.method, route.path): route for route in section_routes}
    names = ("summary", "body", "query", "shown", "file", "files")
    return [
        replace(
            by_path[entry.method, entry.path],
            operation=replace(
                by_path[entry.method, entry.path].operation,
                **{name: getattr(entry, name) for name in names},
                errors=entry.codes,
                answer=entry.response,
                example=entry.example,
                has_etag=entry.tagged,
                media=entry.also,
                description=entry.description,
                path=entry.path_parameters,
            ),
        )
        for entry in entries
    ] or section_routes


def records_of(contents: Contents) -> dict[str, JsonSchema]:
    """Return the schemas of all records by name."""
    return shapes.RECORDS | {name: record for section, _ in contents for name, record in section.records().items()}
