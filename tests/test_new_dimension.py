"""A dimension of statistics needs one line in schema.sql, one in linkmgr/visits/dimensions.py, and two in
linkmgr/visits/counting.py that fill it."""

from pathlib import Path

from tests.support import copies

EDITS = {
    "schema.sql": [
        ("    language   text,", "    scheme     text,\n    language   text,"),
    ],
    "linkmgr/visits/dimensions.py": [
        ("\n)\nBY_NAME", '\n    Dimension("scheme", "Schemes", "https", "http,-https"),\n)\nBY_NAME'),
    ],
    "linkmgr/visits/counting.py": [
        ("    language: str = UNKNOWN\n", "    language: str = UNKNOWN\n    scheme: str = UNKNOWN\n"),
        ("        city=_label(location.city),\n", "        city=_label(location.city),\n"
         '        scheme=environ["wsgi.url_scheme"],\n'),
    ],
}  # fmt: skip
SCRIPT = """
AGENT = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0"}
link = client.post("/api/url/add", json={"url": "https://example.com", "custom": "sale"}, headers=alice).json["id"]
for scheme in ("http", "https", "https"):
    assert client.get("/sale", base_url=f"{scheme}://localhost", headers=AGENT).status_code == 302
assert app.extensions["linkmgr_visit_queue"].flush()


def get(path, of=alice, **headers):
    response = client.get(path, headers=of | headers)
    assert response.status_code == 200, response.text
    return response


def counts(query, of=alice):
    return [(row["scheme"], row["clicks"]) for row in get(f"/api/stats?{query}", of).get_json()["data"]["rows"]]


both = [("https", 2), ("http", 1)]
assert counts("by=scheme") == both
assert counts("by=scheme,browser&metrics=clicks,visitors&period=7d") == both
assert counts("by=scheme&scheme=-http") == both[:1]
assert counts("by=scheme&scheme=HTTP&browser=Firefox") == both[1:]
assert get("/api/stats?order=scheme&by=scheme", Accept="text/csv").text.splitlines()[0] == "scheme,clicks"
for path in (f"/api/url/{link}/visits", f"/api/url/{link}/visits/export"):
    lines = get(path, Accept="text/csv").text.splitlines()
    assert sorted(row["scheme"] for row in csv.DictReader(lines)) == ["http", "https", "https"], lines

document = get("/api/openapi.json").get_json()
schemas = document["components"]["schemas"]
assert "scheme" in schemas["Visit"]["properties"] and "scheme" in schemas["StatsRow"]["properties"]
parameters = {each["name"]: each["schema"] for each in document["paths"]["/api/stats"]["get"]["parameters"]}
assert "scheme" in parameters and "scheme" in schemas["StatsBy"]["enum"]
assert "rule and scheme" in get("/api/docs/statistics").text

client.post("/login", data={"email": "alice@example.com", "password": "correct horse"})
for path in (f"/console/links/{link}", "/console/statistics"):
    assert "Schemes" in client.get(path).text, path
page = client.get("/console/statistics?dimension=scheme&second=browser&scheme=https").text
assert "Schemes: https" in page and "2 visits" in page

exported = export_account()
client.delete(f"/api/url/{link}/delete", headers=alice)  # its alias becomes free
import_account(exported)
assert counts("by=scheme&metrics=clicks,visitors", bob) == both
"""


def test_a_dimension_that_is_listed_once_is_everywhere(empty: str, tmp_path: Path) -> None:
    copies.run(EDITS, SCRIPT, empty, tmp_path)
