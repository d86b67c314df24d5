"""The ways in which the rows of a resource are stored, and bodies with every member, made of the schemas."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flask.testing import FlaskClient
from marshmallow import fields

from linkmgr.core.fields import base
from linkmgr.core.fields.resource import Stored
from linkmgr.schemas.qr import Rgb
from tests.support.archives import export
from tests.support.bodies import LEAST, Members
from tests.support.imported import Import
from tests.support.pages import PASSWORD, as_form, forms, get
from tests.support.pages import fields as form_fields
from tests.support.stage import Stage

if TYPE_CHECKING:
    from tests.conftest import Client

# Members that a way cannot carry, or none of them, by way and path: the reason.
LEFT_OUT: dict[tuple[str, str], dict[str, str]] = {
    ("console create", "webhook"): {"active": "a new webhook is on"},
    ("a file of ours", "url"): {
        "password": "an export has no passwords, so that the link would be open to all",
        **dict.fromkeys(("campaign", "pixels"), "ids of rows, which another account does not have"),
    },
    ("a file with a mapping", "url"): dict.fromkeys(("campaign", "pixels"), "ids of rows of this account"),
}
NOT_READ = {"password": "haspassword"}  # what shows that it is stored


def whole(stored: Stored, stage: Stage) -> Members:
    """Return a body with every member, none of which is the default. Rows that it refers to are those of the stage."""
    existing: Members = {
        "campaign": stage.ids["campaign"],
        "channel": stage.ids["channel"] if stored.words.path == "webhook" else [stage.ids["channel"]],
        "pixels": [stage.ids["pixel"]],
        "domains": [stage.ids["domain"]],
        "logo": "plain.png",
        "brandlogo": "plain.png",
    }
    if stored.words.path == "url":
        existing |= {"domain": f"https://{stage.domain}", "type": f"overlay-{stage.ids['overlay']}"}
    if stored.words.path == "webhook":
        existing["domain"] = stage.ids["domain"]
    defaults = stored.resource.defaults()
    members = stored.resource.creates()().fields.items()
    return {name: existing.get(name, _value(field, defaults.get(name))) for name, field in members}


def _value(field: fields.Field[Any], default: Any) -> Any:
    """Return the example, or another value if it is the default."""
    example = field.metadata["examples"][0]
    match field:
        case base.Boolean():
            return not default
        case base.Integer() if example == default:
            return example + 1
        case base.Choice() if example == default:
            return next(choice for choice in field.choices if choice != default)
        case base.Color() if example == default:
            return "#ffee00" if field.name == "background" else "#123456"
        case Rgb() if example == default:
            return "rgb(255,255,0)" if field.name == "background" else "rgb(0,0,128)"
    return example


class Ways:
    def __init__(self, stored: Stored, stage: Stage, browser: FlaskClient, run_import: Import) -> None:
        self.stored, self.stage, self.browser, self.run_import = stored, stage, browser, run_import
        self.client: Client = stage.alice
        self.path, self.least = stored.words.path, LEAST[stored.words.path]
        self.form = "/console" + next(form.path for form in forms() if form.stored is stored)

    def all(self) -> Iterator[tuple[str, Callable[[Members], int]]]:
        """Yield the name of each way, and the function that stores a body and returns the id."""
        yield from (("create", self.create), ("update", self.update))
        yield from (("console create", self.console_create), ("console edit", self.console_edit))
        if self.path in ("url", "qr"):
            yield from (("bulk create", self.bulk_create), ("the bin", self.of_bin))
        if self.path not in ("key", "member", "webhook"):
            yield "the zip of an account", self.of_zip
        if self.path == "url":
            yield "bulk update", self.bulk_update
            yield from (("a file of ours", self.of_own_file), ("a file with a mapping", self.of_mapped_file))

    def record(self, row_id: int, path: str = "") -> Members:
        answer: Members = self.client.get(f"/api/{path or self.path}/{row_id}").get_json()
        record: Members = answer.get("details") or answer["data"]
        return record

    def delete(self, row_id: int) -> None:
        forever = "?bin=0" if self.path == "qr" else ""
        assert self.client.delete(f"/api/{self.path}/{row_id}/delete{forever}").status_code == 200

    def newest(self) -> int:
        listed = self.client.get(f"/api/{self.stored.words.plural}?limit=1").get_json()["data"]
        return int(next(rows for rows in listed.values() if isinstance(rows, list))[0]["id"])

    # --- the ways

    def create(self, body: Members) -> int:
        return self.client.add("/api/webhooks" if self.path == "webhook" else f"/api/{self.path}/add", body)

    def update(self, body: Members) -> int:
        row_id, changed = self.create(self.least), self.stored.resource.updates()().fields
        sent = {name: value for name, value in body.items() if name in changed}
        answer = self.client.put(f"/api/{self.path}/{row_id}/update", sent)
        assert answer.status_code == 200, answer.text
        return row_id

    def bulk_create(self, body: Members) -> int:
        name = {"url": "urls", "qr": "qrs"}[self.path]
        answer = self.client.post(f"/api/{name.removesuffix('s') if name == 'qrs' else name}/bulk", {name: [body]})
        return int(answer.get_json()["results"][0]["id"])

    def bulk_update(self, body: Members) -> int:
        row_id = self.create(self.least)
        answer = self.client.put("/api/urls/bulk", {"ids": [row_id], "data": body}).get_json()
        assert answer["updated"] == 1, answer
        return row_id

    def console_create(self, body: Members) -> int:
        self._submit("new", self._typed(body))
        return self.newest()

    def console_edit(self, body: Members) -> int:
        typed, row_id = self._typed(body), self.create(self.least)
        self._submit(f"{row_id}/edit", typed)
        return row_id

    def _typed(self, body: Members) -> dict[str, Any]:
        """Return what the form of a row with these members has, and what it does not show."""
        row_id = self.create(body)
        shown = form_fields(get(self.browser, f"{self.form}/{row_id}/edit"))
        self.delete(row_id)
        names = {name.split(".")[0] for name in shown}
        hidden = {name: value for name, value in body.items() if value and (name not in names or name == "password")}
        return {name: value for name, value in shown.items() if name != "version"} | as_form(hidden)

    def _submit(self, page: str, typed: dict[str, Any]) -> None:
        path = f"{self.form}/{page}"
        version = {"version": form_fields(get(self.browser, path)).get("version", "")}
        answer = self.browser.post(path, data=version | typed | {"current_password": PASSWORD})
        assert answer.status_code in (200, 303), answer.text

    def of_zip(self, body: Members) -> int:
        row_id = self.create(body)
        exported = export(self.client)
        self.delete(row_id)
        self._import(exported)
        return self.newest()

    def of_bin(self, body: Members) -> int:
        row_id = self.create(body)
        assert self.client.delete(f"/api/{self.path}/{row_id}/delete?bin=1").status_code == 200
        assert self.client.post(f"/api/{self.path}/{row_id}/restore").status_code == 200
        return row_id

    def of_own_file(self, body: Members) -> int:
        row_id = self.create(body)
        links = self.client.get("/api/urls/export").get_json()["data"]
        self.delete(row_id)
        self._import(json.dumps([link for link in links if link["id"] == row_id]).encode())
        return self.newest()

    def of_mapped_file(self, body: Members) -> int:
        names = {"tags" if name == "channel" else name: f"column {n}" for n, name in enumerate(body)}
        cells = body | {"tags": [self.record(row, "channel")["name"] for row in body["channel"]], "forwardquery": "yes"}
        file = io.StringIO()
        table = csv.writer(file)
        table.writerow(names.values())
        table.writerow(_cell(cells[name]) for name in names)
        self._import(file.getvalue().encode(), f"?mapping={json.dumps(names)}")
        return self.newest()

    def _import(self, file: bytes, query: str = "") -> None:
        found = self.run_import(self.client, file, query)
        assert (found["state"], found["made"], found["failed"]) == ("done", 1, 0), (
            found,
            self.client.get(f"/api/imports/{found['id']}/errors.csv").text,
        )


def _cell(value: Any) -> str:
    return json.dumps(value) if isinstance(value, list | dict) else str(value)
