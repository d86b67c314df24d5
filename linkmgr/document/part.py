"""A part of the document: the operations of some sections, and the components that they need."""

import re
from typing import Any

import orjson

from linkmgr.core.fields.member import JsonSchema
from linkmgr.core.fields.problems import invalid


def _references(part: Any) -> set[tuple[str, str]]:
    pairs = re.findall(r'"\$ref":"#/components/(\w+)/([^"]+)"', orjson.dumps(part).decode())
    return {(section, name) for section, name in pairs}


def _tagged(paths: JsonSchema, tags: set[str]) -> JsonSchema:
    return {
        path: kept
        for path, methods in paths.items()
        if (
            kept := {
                method: operation
                for method, operation in methods.items()
                if tags.intersection(operation["tags"])
            }
        )
    }


def part_of(document: JsonSchema, tags: set[str]) -> JsonSchema:
    titles = [tag["name"] for tag in document["tags"]]
    if unknown := tags - set(titles):
        raise invalid(f"tags must be some of {', '.join(titles)}; remove {', '.join(sorted(unknown))[:100]}")
    part = {name: value for name, value in document.items() if name not in ("webhooks", "components")}
    part |= {"tags": [tag for tag in document["tags"] if tag["name"] in tags]}
    part |= {"paths": _tagged(document["paths"], tags)}
    if webhooks := _tagged(document["webhooks"], tags):
        part |= {"webhooks": webhooks}
    return part | {"components": _components(document["components"], part)}


def _components(components: JsonSchema, part: JsonSchema) -> JsonSchema:
    needed, latest = set[tuple[str, str]](), _references(part)
    while latest:
        needed |= latest
        latest = _references([components[section][name] for section, name in latest]) - needed
    kept = {
        section: {name: value for name, value in values.items() if (section, name) in needed}
        for section, values in components.items()
    }
    return kept | {"securitySchemes": components["securitySchemes"]}
