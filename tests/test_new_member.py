"""A member of a resource needs one line in schema.sql, one in linkmgr/resources, and its name in the statements of
linkmgr/repository that create and update."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

EDITS = {
    "schema.sql": [
        ("CREATE TABLE pixels (\n    LIKE resources INCLUDING ALL,\n", "    note text NOT NULL DEFAULT '',\n")
    ],
    "linkmgr/resources/pixels.py": [
        (
            "    date = created()",
            '\n    note = member(Text(allow_empty=True), "A remark.", "Shop window", label="Remark")\n',
        ),
    ],
    "linkmgr/repository/pixels.py": [
        ("(user_id, type, name, tag", ", note"),
        ("%(name)s, %(tag)s", ", %(note)s"),
        ("tag = coalesce(%(tag)s, tag)", ", note = coalesce(%(note)s, note)"),
    ],
}
SCRIPT = """
import csv, io, json, re, secrets, sys

from linkmgr import create_app, keys
from linkmgr.db import jobs, migrations
from linkmgr.repository import users
from linkmgr.web import passwords

app = create_app(database_url=sys.argv[1], data_dir=sys.argv[2], secret_key="unused" * 6, base_url="http://localhost")
NOTE = "In the window"


def register(name):
    user_id = users.next_id()
    hashed, key = passwords.hashed("correct horse"), keys.new_key(user_id)
    users.add(user_id, username=name, email=f"{name}@example.com", password_hash=hashed, admin=True, **key)
    return {"Authorization": f"Bearer {users.read(user_id)['apikey']}"}


with app.app_context():
    migrations.upgrade(create=True)
    alice, bob = register("alice"), register("bob")
client = app.test_client()


def pixel(of=alice):
    return client.get("/api/pixels", headers=of).get_json()["data"]["pixels"][0]


body = {"type": "bing", "name": "Shop", "tag": "1", "note": NOTE}
added = client.post("/api/pixel/add", json=body, headers=alice)
row = f"/api/pixel/{added.get_json()['id']}"
read = client.get(row, headers=alice)
assert read.get_json()["data"]["note"] == pixel()["note"] == NOTE
changed = client.put(f"{row}/update", json={"tag": "1", "note": "Changed"}, headers=alice)
assert changed.get_json()["data"]["note"] == "Changed"
assert client.get(row, headers=alice).headers["ETag"] == changed.headers["ETag"] != read.headers["ETag"]
client.put(f"{row}/update", json={"tag": "1", "note": NOTE}, headers=alice)
refused = client.post("/api/pixel/add", json=body | {"note": 5}, headers=alice).get_json()
assert refused["message"] == "note must be a string.", refused

schemas = client.get("/api/openapi.json").get_json()["components"]["schemas"]
for name in ("PixelCreate", "PixelUpdate", "Pixel"):
    assert "note" in schemas[name]["properties"], name
assert 'id="pixels-note"' in client.get("/api/docs").text

table = client.get("/api/pixels/export?format=csv", headers=alice).text
assert next(csv.DictReader(io.StringIO(table)))["note"] == NOTE
assert client.get("/api/pixels/export", headers=alice).get_json()["data"][0]["note"] == NOTE
exported = client.get("/api/account/export", headers=alice).data
imported = client.post("/api/imports", data=exported, content_type="application/zip", headers=bob)
assert imported.status_code == 200, imported.text
with app.app_context():
    while jobs.run_next(lambda _: False):
        pass
assert pixel(bob)["note"] == NOTE

client.post("/login", data={"email": "alice@example.com", "password": "correct horse"})
assert '<input type="text" value="" id="note" name="note"' in client.get("/console/pixels/new").text
client.post("/console/pixels/new", data=body | {"note": "From the console"})
assert pixel()["note"] == "From the console"
"""


def test_a_member_that_is_declared_once_is_everywhere(empty: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "linkmgr", copy / "linkmgr", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "schema.sql", copy)
    for name, edits in EDITS.items():
        text = (copy / name).read_text()
        for place, added in edits:
            assert text.count(place) == 1, (name, place)
            text = text.replace(place, added + place if place.startswith("    date") else place + added)
        (copy / name).write_text(text)
    command = [sys.executable, "-W", "error", "-c", SCRIPT, empty, str(tmp_path / "data")]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
