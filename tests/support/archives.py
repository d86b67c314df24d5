"""Exports of accounts, and archives made of them."""

import io
import json
import zipfile
from typing import Any

from tests.conftest import Client

Files = dict[str, list[dict[str, Any]]]


# Members that refer to rows, and the files of those.
REFERENCES = {
    "links": {"campaign": "campaigns", "pixels": "pixels", "channel": "channels"},
    "qr": {"channel": "channels"},
    "bio": {"channel": "channels"},
    "answers": {"overlay": "overlays"},
    "conversions": {"link": "links"},
    "public": {"link": "links", "campaign": "campaigns"},
}


def export(client: Client) -> bytes:
    answer = client.get("/api/account/export")
    assert answer.status_code == 200
    return bytes(answer.data)


def normalized(archive: bytes) -> Files:
    """Return the files with each id replaced by the number of its line."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        files: Files = {
            name.removesuffix(".jsonl"): [json.loads(line) for line in opened.read(name).splitlines()]
            for name in opened.namelist()
            if name.endswith(".jsonl")
        }
    places = {file: {line.get("id"): place for place, line in enumerate(lines)} for file, lines in files.items()}
    for file, lines in files.items():
        for place, line in enumerate(lines):
            line.pop("updated", None)  # an import is a change
            line["id"] = places["qr"][line["id"]] if file == "logos" else place
            for member, other in REFERENCES.get(file, {}).items():
                value = line[member]
                line[member] = [places[other][row] for row in value] if isinstance(value, list) else (
                    places[other].get(value)
                )  # fmt: skip
            if file == "links" and str(line["type"]).isdecimal():
                line["type"] = places["splash"][int(line["type"])]
            if file == "links" and str(line["type"]).startswith("overlay-"):
                line["type"] = f"overlay {places['overlays'][int(line['type'].removeprefix('overlay-'))]}"
    targets = places["links"] | {row: -1 - place for row, place in places["qr"].items()}
    for line in files["visits"]:
        line |= {"target": targets[line["target"]], "id": 0}
    for line in files["public"]:
        line["id"] = 0
    for file in ("visits", "public"):
        files[file].sort(key=json.dumps)  # in the order of the ids of their targets, which the copy creates in another
    return files


def archive(**files: list[Any]) -> bytes:
    """Return the zip of an account with these lines."""
    lines = {f"{name}__jsonl": "\n".join(map(json.dumps, rows)) for name, rows in files.items()}
    return zipped(manifest__json="{}", **{"links__jsonl": ""} | lines)


def zipped(**files: str) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "."), text)
    return output.getvalue()
