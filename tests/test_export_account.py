"""GET /api/account/export: everything that a user owns."""

import io
import json
import zipfile
from typing import Any

from linkmgr.features.exports.account import FORMAT, RESOURCES
from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.stage import Stage

KINDS = {file: kind.words.path for file, kind in RESOURCES.items()} | {"links": "link", "qr": "qr"}


def read(client: Client) -> dict[str, Any]:
    answer = client.get("/api/account/export")
    assert (answer.status_code, answer.mimetype) == (200, "application/zip")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="linkmgr-account.zip"'
    with zipfile.ZipFile(io.BytesIO(answer.data)) as archive:
        assert archive.testzip() is None
        contents = {name: archive.read(name) for name in archive.namelist()}
    assert list(contents)[-1] == "manifest.json"
    manifest = json.loads(contents.pop("manifest.json"))
    files = {
        name.removesuffix(".jsonl"): [json.loads(line) for line in content.splitlines()]
        for name, content in contents.items()
    }
    assert manifest["counts"] == {f"{name}.jsonl": len(lines) for name, lines in files.items()}
    return files | {"manifest": manifest}


def test_the_files_have_all_rows_of_the_user(stage: Stage, bob: Client, sql: Sql) -> None:
    for make in factories.ALL.values():
        make(sql, bob.id)
    files = read(stage.alice)
    manifest = files.pop("manifest")
    assert (manifest["format"], manifest["base_url"], manifest["username"]) == (FORMAT, BASE_URL, "alice")
    for name, kind in KINDS.items():
        assert [line["id"] for line in files[name]] == [stage.ids[kind]], name
    assert [answer["overlay"] for answer in files["answers"]] == [stage.ids["overlay"]]
    assert [visit["target"] for visit in files["visits"]] == [stage.ids["link"], stage.ids["qr"]]
    for name in ("links", "qr", "bio"):
        assert files[name][0]["channel"] == [stage.ids["channel"]]


def test_secrets_of_the_account_are_not_exported(stage: Stage, sql: Sql) -> None:
    text = json.dumps(read(stage.alice))
    [user] = sql("SELECT * FROM users WHERE id = %(id)s", id=stage.alice.id)
    for secret in (str(stage.alice.key), user["password_hash"], user["key_ciphertext"], user["email"]):
        assert secret not in text
