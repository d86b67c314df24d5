"""The sections of the document, and the operations that each of them has."""

from flask import Flask

from linkmgr import api
from linkmgr.web.operation import Route, Section, routes

_DOCUMENT = Section(
    "document",
    "This document",
    "The description of the API in the form of OpenAPI, which generators of clients read.",
)
Contents = list[tuple[Section, list[Route]]]


def contents(app: Flask) -> Contents:
    sections, all_routes = (*(module.SECTION for module in api.MODULES), _DOCUMENT), routes(app)
    return [
        (section, [route for route in all_routes if route.operation.id.partition(".")[0] == section.word])
        for section in sections
    ]
