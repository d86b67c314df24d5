"""The pages of imports in the console."""

import gzip
import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.features.imports.files import sql_file
from linkmgr.repository import purge
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.imported import aliases, sale, send, shlink
from tests.support.pages import get, ids_of, seen, signed_in

FILES = Path(__file__).parent / "import_files"


def upload(console: FlaskClient, file: bytes) -> str:
    """Upload a file and return the path of its page."""
    answer = console.post("/console/imports/new", data={"file": (BytesIO(file), "my links.csv")})
    assert answer.status_code == 303
    return str(answer.headers["Location"])


def test_a_file_is_shown_before_it_is_imported(
    console: FlaskClient, alice: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    path = upload(console, shlink(sale("summer", clicks=7), sale("b b")))
    page = console.get(path).text
    assert "The columns are those of Shlink." in page
    assert re.search(r"1 summer https://example.com/sale Sale 2024-01-31 7", seen(page))
    assert "&#39;shortCode&#39; must be 1 to 100 letters" in page
    assert aliases(sql, alice) == []
    begun = console.post(path, data={"on_conflict": "rename"})
    assert (begun.status_code, begun.headers["Location"]) == (303, path)
    assert '<progress id="progress"' in console.get(path).text
    run_jobs()
    assert aliases(sql, alice) == ["summer"]
    page = seen(console.get(path).text)
    assert "Links created 1" in page
    assert "Failed 1" in page
    assert "2 &#39;shortCode&#39; must be 1 to 100 letters" in page
    assert console.get(f"{path}/errors").mimetype == "text/csv"
    assert "my links.csv done 1 1" in seen(console.get("/console/imports").text)
    assert "This list has fewer pages." in console.get("/console/imports?page=2").text


def test_an_import_that_is_begun_twice_shows_its_progress(console: FlaskClient, alice: Client) -> None:
    path = upload(console, shlink(sale("summer")))
    for _ in range(2):
        begun = console.post(path, data={"on_conflict": "skip"})
        assert (begun.status_code, begun.headers["Location"]) == (303, path)
    assert len(alice.get("/api/imports").get_json()["data"]["imports"]) == 1
    assert console.post("/console/imports/999", data={"on_conflict": "skip"}).status_code == 404


def test_the_columns_of_an_unknown_file_are_chosen(
    console: FlaskClient, alice: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    path = upload(console, b"Label;Where\nsummer;https://example.com/sale\n")
    page = console.get(path).text
    assert "Choose the column of the target." in page
    assert "Import all rows" not in page
    page = console.get(f"{path}?url=Where&custom=Label").text
    chosen = dict(re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)">', page))
    assert chosen == {"url": "Where", "custom": "Label"}
    assert console.post(path, data=chosen).status_code == 303
    run_jobs()
    assert aliases(sql, alice) == ["summer"]


def test_links_that_a_dump_has_behind_a_long_log_are_shown(
    console: FlaskClient, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = b";\n/*!40000 ALTER TABLE `yourls_log` ENABLE"
    visit = b",\n(3,'2026-02-05 10:00:00','summer','INSERT INTO `yourls_url` VALUES (','Firefox','192.0.2.1','DE')"
    short, long = ((FILES / "yourls.sql").read_bytes().replace(end, visit * n + end) for n in (2000, 15_000))
    for file in (long, gzip.compress(long)):
        shown = send(alice, file, "?dry_run=1").get_json()["data"]["rows"]
        assert [row["link"]["custom"] for row in shown] == ["summer", "jobs", "blog"]
    assert "https://example.com/blog" in console.get(upload(console, short)).text
    monkeypatch.setattr(sql_file, "MAX_SEARCHED", 1 << 20)
    shown = send(alice, long, "?dry_run=1").get_json()["data"]
    assert {row["visits"] for row in shown["rows"]} == {1}
    assert "The first 1 MiB of this dump have no link, and a preview reads no more." in shown["notes"][0]
    page = console.get(upload(console, b"-- comment\n" * 8000)).text
    assert "of this dump have no link" in page
    assert "Import all rows" in page


def test_the_preview_of_a_dump_shows_links_before_visits(console: FlaskClient) -> None:
    links, log = b"INSERT INTO `yourls_url` VALUES ", b"INSERT INTO `yourls_log` VALUES "
    visits = b",".join(b"(%d,'2026-01-01 10:00:00','sale','','Firefox','192.0.2.1','DE')" % n for n in range(40))
    link = b"('sale','https://example.com/sale','Sale','2026-01-01 09:00:00','192.0.2.1',40)"
    page = console.get(upload(console, log + visits + b";\n" + links + link + b";\n")).text
    rows = re.findall('<tr><th scope="row">.*?</tr>', page, re.DOTALL)
    assert "https://example.com/sale" in rows[0]
    assert all("a visit" in row for row in rows[1:])


def test_the_import_of_an_account_says_how_many_of_each_kind_were_created(
    console: FlaskClient, alice: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    for number in range(2):
        alice.add("/api/url/add", {"url": f"https://example.com/{number}"})
    alice.add("/api/channel/add", {"name": "News"})
    path = upload(console, console.get("/console/export/account.zip").data)
    for table in ("links", "channels"):
        sql(f"DELETE FROM {table} RETURNING 1")
    console.post(path, data={"on_conflict": "skip"})
    run_jobs()
    assert "<dt>Created</dt><dd>2 links, 1 channel</dd>" in console.get(path).text


def test_a_file_that_cannot_be_read_is_explained(console: FlaskClient, sql: Sql) -> None:
    answer = console.post("/console/imports/new", data={"file": (BytesIO(b""), "x.csv")})
    assert answer.headers["Location"] == "/console/imports"
    assert "There is no file, or it is empty." in console.get("/console/imports").text
    service = console.post("/console/imports/new", data={"source": "shlink", "token": "x"})
    assert service.headers["Location"] == "/console/imports"
    assert "address is required" in console.get("/console/imports").text
    assert sql("SELECT FROM imports") == []


def test_a_draft_is_replaced_by_the_next_one_or_discarded(
    console: FlaskClient, alice: Client, run_jobs: Callable[[], None], sql: Sql
) -> None:
    first = upload(console, shlink(sale("first")))
    second = upload(console, shlink(sale("second")))
    assert console.get(first).status_code == 404
    assert console.post(f"{second}/delete").headers["Location"] == "/console/imports"
    run_jobs()
    assert sql("SELECT FROM imports") == sql("SELECT FROM import_rows") == []


def test_a_draft_remains_while_other_imports_begin(
    console: FlaskClient, alice: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    path = upload(console, shlink(sale("draft")))
    assert send(alice, shlink(sale("other"))).status_code == 200
    assert "Import all rows" in console.get(path).text
    assert console.post(path, data={"on_conflict": "skip"}).headers["Location"] == path
    run_jobs()
    assert aliases(sql, alice) == ["draft", "other"]


def test_a_draft_begins_within_the_limit_of_unfinished_imports(
    console: FlaskClient, alice: Client, run_jobs: Callable[[], None]
) -> None:
    path = upload(console, shlink(sale("draft")))
    for number in range(3):
        assert send(alice, shlink(sale(f"row-{number}"))).status_code == 200
    assert console.post(path).headers["Location"] == path
    page = seen(console.get(path).text)
    assert "You have 3 unfinished imports. Wait until one ends, or cancel one." in page
    assert "Import all rows" in page
    run_jobs()
    console.post(path)
    assert "Import all rows" not in console.get(path).text


def test_the_purge_deletes_drafts_after_a_day(app: Flask, console: FlaskClient, sql: Sql) -> None:
    path = upload(console, shlink(sale("first")))
    for age, status in (("23 hours", 200), ("25 hours", 404)):
        sql("UPDATE imports SET created = now() - %(age)s::interval RETURNING 1", age=age)
        with app.app_context():
            purge.purge()
        assert console.get(path).status_code == status


def test_a_service_is_read_and_cancelled(console: FlaskClient, alice: Client) -> None:
    form = {"source": "shlink", "address": "https://s.example.com", "token": "x", "on_conflict": "update"}
    path = console.post("/console/imports/new", data=form).headers["Location"]
    assert "Cancel the import" in console.get(path).text
    console.post(f"{path}/delete")
    assert "cancelled" in seen(console.get(path).text)
    [listed] = alice.get("/api/imports").get_json()["data"]["imports"]
    assert (listed["state"], listed["on_conflict"]) == ("cancelled", "update")


def test_links_and_the_account_are_downloaded(console: FlaskClient, alice: Client, bob: Client) -> None:
    for client, alias in ((alice, "mine"), (bob, "theirs")):
        client.add("/api/url/add", {"url": "https://example.com/", "custom": alias})
    page = console.get("/console/imports").text
    links, account = re.findall(r'href="(/console/export/[^"]+)"', page)
    table = console.get(links)
    assert (table.mimetype, table.headers["Cache-Control"]) == ("text/csv", "no-store")
    assert "mine" in table.text
    assert "theirs" not in table.text
    again = upload(console, console.get(account).data)
    assert "The columns are those of an account of this service." in console.get(again).text


@pytest.mark.usefixtures("small_batches")
def test_an_import_leads_to_its_links_and_is_undone_for_a_day(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    kept = [factories.link(sql, owner.id) for owner in (alice, bob)]
    path = upload(console, shlink(*(sale(f"a{number}", f"https://example.com/{number}") for number in range(45))))
    console.post(path)
    run_jobs()
    own = {row["alias"]: row["id"] for row in sql("SELECT alias, id FROM links WHERE alias LIKE 'a%' AND alias < 'b'")}
    [shown] = re.findall(r'href="(/console/links\?import=\d+)"', console.get(path).text)
    page = get(console, shown)
    assert (ids_of(page), "Import " in seen(page)) == (sorted(own.values(), reverse=True)[:25], True)
    assert "Select all 45" in seen(page)
    changed, in_channel, restored = own["a7"], own["a8"], own["a9"]
    kept += [changed, in_channel, restored]
    alice.put(f"/api/url/{changed}/update", {"title": "Changed since"})
    sql("UPDATE imports SET finished = now() RETURNING 1")  # as if that had been before its end
    alice.post(f"/api/channel/{factories.channel(sql, alice.id)}/assign/links/{in_channel}")
    alice.delete(f"/api/url/{restored}/delete?bin=1")
    alice.post(f"/api/url/{restored}/restore")
    assert "Undo this import" in console.get(path).text
    for _ in range(2):
        assert console.post(f"{path}/undo").status_code == 303
        assert "are being deleted" in console.get(path).text
    assert len(sql("SELECT 1 FROM jobs WHERE task = 'import_undo'")) == 1
    run_jobs()
    assert {row["id"] for row in sql("SELECT id FROM links")} == set(kept)
    assert {row["id"] for row in sql("SELECT id FROM binned_links")} == set(own.values()) - set(kept)
    sql("UPDATE imports SET finished = finished - interval '25 hours' RETURNING 1")
    assert "Undo this import" not in console.get(path).text
    console.post(f"{path}/undo")
    assert "Only an import that ended in the last 24 hours can be undone." in console.get(path).text
    assert sql("SELECT 1 FROM jobs WHERE task = 'import_undo'") == []


def test_nobody_undoes_the_import_of_another_user(
    app: Flask, console: FlaskClient, bob: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    path = upload(console, shlink(sale("summer")))
    console.post(path)
    run_jobs()
    bobs = signed_in(app, "bob@example.com")
    bobs.post(f"{path}/undo")
    run_jobs()
    assert [row["alias"] for row in sql("SELECT alias FROM links")] == ["summer"]
    assert bob.get("/api/urls").get_json()["data"]["result"] == 0


def test_tags_that_differ_in_case_become_one_channel(
    console: FlaskClient, alice: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    sql("INSERT INTO channels (user_id, name, color) VALUES (%(id)s, 'Web', '#fff') RETURNING 1", id=alice.id)
    tags = ("print", "Print", "PRINT|print|web")
    rows = [sale(f"a{n}", f"https://example.com/{n}").replace(",,", f",{text},") for n, text in enumerate(tags)]
    path = upload(console, shlink(*rows))
    console.post(path)
    run_jobs()
    items = sql("""
        SELECT name, count(*)::int AS number FROM channels c JOIN channel_items i ON i.channel_id = c.id
         GROUP BY c.id ORDER BY lower(name)
        """)
    assert [(row["name"].lower(), row["number"]) for row in items] == [("print", 3), ("web", 1)]
    assert len(sql("SELECT 1 FROM channels")) == 2


def test_links_of_a_domain_that_were_imported_before_it_are_moved_to_it(
    console: FlaskClient, alice: Client, sql: Sql, run_jobs: Callable[[], None]
) -> None:
    path = upload(console, shlink(*(sale(f"a{number}", f"https://example.com/{number}") for number in range(3))))
    console.post(path)
    run_jobs()
    domain = alice.add("/api/domain/add", {"domain": "https://s.example.com"})
    alice.add("/api/url/add", {"url": "https://example.com", "custom": "a2", "domain": "s.example.com"})
    factories.link(sql, alice.id)
    page = get(console, f"/console/domains/{domain}/edit")
    assert "3 links of it were imported to" in seen(page)
    answer = console.post(
        "/console/links/selected?source=s.example.com", data={"all": "1", "domain": domain, "action": "domain"}
    )
    assert "Move 2 links to s.example.com ?" in seen(answer.text)
    assert "All links that match: Imported from s.example.com" in seen(answer.text)
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', answer.text))
    answer = console.post("/console/links/selected?source=s.example.com", data=fields | {"action": "domain"})
    assert "1 link stays as it is" in seen(answer.text)
    rows = sql("SELECT alias, domain_id FROM links WHERE alias LIKE 'a_' AND source_host <> '' ORDER BY alias")
    assert [row["domain_id"] for row in rows] == [domain, domain, None]
    assert "1 link of it was imported to" in seen(get(console, f"/console/domains/{domain}/edit"))
