"""A member of a resource needs one line in schema.sql, one in linkmgr/schemas, and its name in the statements of
linkmgr/repository that create and update."""

from pathlib import Path

from tests.support import copies

EDITS = {
    "schema.sql": [
        (
            "CREATE TABLE pixels (\n    LIKE resources INCLUDING ALL,\n",
            "CREATE TABLE pixels (\n    LIKE resources INCLUDING ALL,\n    note text NOT NULL DEFAULT '',\n",
        )
    ],
    "linkmgr/schemas/pixels.py": [
        (
            "    date = created()",
            '    note = member(Text(allow_empty=True), "A remark.", "Shop", label="Remark")\n    date = created()',
        ),
    ],
    "linkmgr/repository/pixels.py": [
        ("(user_id, type, name, tag", "(user_id, type, name, tag, note"),
        ("%(name)s, %(tag)s", "%(name)s, %(tag)s, %(note)s"),
        ("tag = coalesce(%(tag)s, tag)", "tag = coalesce(%(tag)s, tag), note = coalesce(%(note)s, note)"),
    ],
}
SCRIPT = """
NOTE = "In the window"


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
assert 'id="pixels-note"' in client.get("/api/docs/pixels").text

table = client.get("/api/pixels/export?format=csv", headers=alice).text
assert next(csv.DictReader(io.StringIO(table)))["note"] == NOTE
assert client.get("/api/pixels/export", headers=alice).get_json()["data"][0]["note"] == NOTE
import_account(export_account())
assert pixel(bob)["note"] == NOTE

client.post("/login", data={"email": "alice@example.com", "password": "correct horse"})
assert '<input type="text" value="" id="note" name="note"' in client.get("/console/pixels/new").text
client.post("/console/pixels/new", data=body | {"note": "From the console"})
assert pixel()["note"] == "From the console"
"""


def test_a_member_that_is_declared_once_is_everywhere(empty: str, tmp_path: Path) -> None:
    copies.run(EDITS, SCRIPT, empty, tmp_path)
