"""Imports whose aliases are in use."""

import pytest

from linkmgr.db.transaction import Transaction
from linkmgr.imports import job
from linkmgr.web import passwords
from tests.conftest import Client
from tests.support.archives import archive, export
from tests.support.factories import Sql
from tests.support.imported import Import, counts, details, sale, shlink
from tests.support.stage import Stage

PAGE = "https://example.com"
# The same alias on two domains that the user does not have, with other targets.
FOREIGN = [sale("sale").replace("s.example.com", "a.example.com"),
           sale("sale", "https://example.com/other").replace("s.example.com", "b.example.com")]  # fmt: skip
EVERY_MEMBER = {
    "url": "https://example.com/every",
    "custom": "every",
    "password": "secret",
    "expiry": "2090-01-01 10:00",
    "geotarget": [{"location": "Germany", "link": "https://example.com/de"}],
    "devicetarget": [{"device": "iPhone", "link": "https://example.com/iphone"}],
    "languagetarget": [{"language": "de", "link": "https://example.com/german"}],
    "parameters": [{"name": "ref", "value": "zip"}],
    "metatitle": "Title",
    "metadescription": "Description",
    "metaimage": "https://example.com/image.png",
    "description": "A note",
    "status": "private",
}


def line(alias: str, password_hash: str | None, custom: str = "abc") -> bytes:
    """Return the zip of an account with one link."""
    link = {"id": 1, "url": PAGE, "custom": custom, "alias": alias, "plain": False, "password_hash": password_hash}
    return archive(links=[link])


@pytest.mark.parametrize("has_password", [True, False])
@pytest.mark.parametrize("before", ["", "older"])
def test_an_update_from_a_zip_protects_the_link_or_keeps_its_password(
    alice: Client, run_import: Import, sql: Sql, *, has_password: bool, before: str
) -> None:
    alice.add("/api/url/add", {"url": f"{PAGE}/old", "custom": "abc", "password": before})
    [link] = sql("SELECT url, password_hash FROM links")
    new = passwords.hashed("secret") if has_password else None
    assert counts(run_import(alice, line("abc", new), "?on_conflict=update")) == ("done", 1, 0, 1, 0, 0)
    assert sql("SELECT url, password_hash FROM links") == [{"url": PAGE, "password_hash": new or link["password_hash"]}]
    assert details(alice, "abc")["haspassword"] is bool(new or before)


def test_a_url_that_is_shortened_again_does_not_return_a_link_that_an_update_protected(
    alice: Client, run_import: Import
) -> None:
    link = alice.post("/api/url/add", {"url": PAGE}).get_json()
    file = line(link["shorturl"].rpartition("/")[2], passwords.hashed("secret"), custom="")
    assert counts(run_import(alice, file, "?on_conflict=update")) == ("done", 1, 0, 1, 0, 0)
    assert alice.post("/api/url/add", {"url": PAGE}).get_json()["id"] != link["id"]


def test_an_update_from_a_zip_restores_every_member_of_a_link(stage: Stage, run_import: Import, sql: Sql) -> None:
    link_id = stage.alice.add("/api/url/add", EVERY_MEMBER)
    members = "SELECT to_jsonb(links) - 'version' FROM links WHERE id = %(id)s"
    before = sql(members, id=link_id)
    exported = export(stage.alice)
    others = {name: type(value)() for name, value in EVERY_MEMBER.items() if name not in ("url", "custom")}
    changed = others | {"url": "https://example.com/other", "status": "public", "password": "other"}
    assert stage.alice.put(f"/api/url/{link_id}/update", changed).status_code == 200
    assert run_import(stage.alice, exported, "?on_conflict=update")["updated"] == 2
    assert sql(members, id=link_id) == before


@pytest.mark.parametrize("size", [500, 1])
def test_the_same_alias_on_two_foreign_domains_is_a_failure_of_the_second_row(
    alice: Client, run_import: Import, sql: Sql, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(job, "MAX_ROWS", size)
    found = run_import(alice, shlink(*FOREIGN, FOREIGN[0]))
    assert counts(found) == ("done", 3, 1, 0, 1, 1)
    assert sql("SELECT number, code FROM import_rows WHERE code IS NOT NULL") == [{"number": 2, "code": "alias_taken"}]
    assert details(alice, "sale")["longurl"] == "https://example.com/sale"
    assert counts(run_import(alice, shlink(*FOREIGN)))[3:] == (0, 2, 0), "a file that is imported again is skipped"


@pytest.mark.parametrize("path", ["/api/urls/export", "/api/account/export"])
def test_an_update_from_our_own_export_counts_no_clicks_twice(
    alice: Client, run_import: Import, sql: Sql, path: str
) -> None:
    link_id = alice.add("/api/url/add", {"url": "https://example.com/sale", "custom": "sale"})
    sql("UPDATE links SET imported_clicks = 100 WHERE id = %(id)s RETURNING 1", id=link_id)
    sql("INSERT INTO totals (tracked_id, clicks, visitors) VALUES (%(id)s, 10, 10) RETURNING 1", id=link_id)
    for _ in range(2):
        exported = alice.get(path).data
        assert counts(run_import(alice, exported, "?on_conflict=update")) == ("done", 1, 0, 1, 0, 0)
        assert details(alice, "sale")["imported_clicks"] == 100


@pytest.mark.parametrize("form", ["csv", "jsonl", "json"])
def test_a_generated_alias_of_our_own_export_is_kept_and_is_still_none_that_was_chosen(
    alice: Client, run_import: Import, form: str
) -> None:
    added = alice.post("/api/url/add", {"url": "https://example.com/sale"}).get_json()
    chosen = alice.add("/api/url/add", {"url": "https://example.com/sale", "custom": "sale"})
    exported = alice.get(f"/api/urls/export?format={form}").data
    for link_id in (added["id"], chosen):
        alice.delete(f"/api/url/{link_id}/delete")
    assert counts(run_import(alice, exported)) == ("done", 2, 2, 0, 0, 0)
    imported = details(alice, added["details"]["alias"])
    assert (imported["alias"], imported["custom"]) == (added["details"]["alias"], "")
    assert details(alice, "sale")["custom"] == "sale"


@pytest.mark.parametrize("kind", ["links", "splash"])
def test_an_import_leaves_few_subtransactions_in_a_transaction(
    alice: Client, run_import: Import, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """With more than 64, PostgreSQL looks them up on disk whenever another transaction reads their rows."""
    names = [f"row-{n}" for n in range(100)]
    rows = [{"url": "https://example.com", "custom": name, "alias": name, "name": name} for name in names]
    if kind == "links":
        run_import(alice, archive(links=rows))
    file = archive(**{kind: [row | {"description": "New"} for row in rows]})
    numbers: list[int] = []
    commit = Transaction.commit

    def count(self: Transaction) -> None:
        sql = "SELECT (pg_stat_get_backend_subxact(id)).subxact_count AS number, pg_stat_get_backend_pid(id) AS pid"
        backends = self.execute(f"{sql} FROM pg_stat_get_backend_idset() id", {}, idempotent=False)
        [backend] = self.execute("SELECT pg_backend_pid() AS pid", {}, idempotent=False)
        numbers.extend(row["number"] for row in backends if row["pid"] == backend["pid"])
        commit(self)

    monkeypatch.setattr(Transaction, "commit", count)
    assert counts(run_import(alice, file, "?on_conflict=update"))[0] == "done"
    assert 30 <= max(numbers) < 64


def test_a_creation_date_in_the_future_becomes_now(alice: Client, run_import: Import, sql: Sql) -> None:
    line = {"id": 1, "url": PAGE, "custom": "zip", "alias": "zip", "date": "2999-01-31 10:00:00"}
    for file in (shlink(sale("csv").replace("2024", "2999")), archive(links=[line])):
        assert counts(run_import(alice, file)) == ("done", 1, 1, 0, 0, 0)
    assert len(sql("SELECT FROM links WHERE created BETWEEN now() - interval '5 minutes' AND now()")) == 2
