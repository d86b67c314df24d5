"""GET /api/account/export: everything that a user owns."""

import io
import json
import zipfile
from typing import Any

from linkmgr.imports.account.export import FORMAT
from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.stage import Stage

KINDS = {
    "domains": "domain", "campaigns": "campaign", "channels": "channel", "pixels": "pixel", "splash": "splash",
    "overlays": "overlay", "links": "link", "qr": "qr", "bio": "bio",
}  # fmt: skip


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


def test_a_link_has_all_that_an_import_needs(stage: Stage, sql: Sql) -> None:
    link_id = stage.ids["link"]
    sql("UPDATE totals SET clicks = 2, visitors = 1 WHERE tracked_id = %(id)s RETURNING 1", id=link_id)
    members = {
        "password": "secret",
        "type": f"overlay-{stage.ids['overlay']}",
        "campaign": stage.ids["campaign"],
        "domain": stage.domain,
        "expiry": "2030-12-31 23:59:59",
    }
    assert stage.alice.put(f"/api/url/{link_id}/update", members).status_code == 200
    plain = stage.alice.add("/api/url/add", {"url": "https://example.com/plain"})
    link, other = read(stage.alice)["links"]
    [stored] = sql("SELECT password_hash, alias FROM links WHERE id = %(id)s", id=link_id)
    assert link["password_hash"] == stored["password_hash"]
    assert (link["alias"], link["custom"], link["plain"]) == (stored["alias"], "", False)
    assert (link["type"], link["campaign"]) == (members["type"], stage.ids["campaign"])
    assert (link["domain"], link["expiry"]) == (f"https://{stage.domain}", "2030-12-31 23:59:59")
    assert (link["pixels"], link["geotarget"]) == (
        [stage.ids["pixel"]],
        [{"location": "fr", "link": "https://example.com/"}],
    )
    assert (link["clicks"], link["uniqueclicks"]) == (2, 1)
    assert (other["id"], other["plain"], other["domain"], other["password_hash"]) == (plain, True, "", None)


def test_secrets_of_the_account_are_not_exported(stage: Stage, sql: Sql) -> None:
    text = json.dumps(read(stage.alice))
    [user] = sql("SELECT * FROM users WHERE id = %(id)s", id=stage.alice.id)
    for secret in (str(stage.alice.key), user["password_hash"], user["key_ciphertext"], user["email"]):
        assert secret not in text


def test_the_account_of_a_new_user_is_empty(alice: Client) -> None:
    files = read(alice)
    assert set(files["manifest"]["counts"].values()) == {0}
