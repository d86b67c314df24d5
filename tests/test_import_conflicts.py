"""Imports whose aliases are in use."""

import pytest

from linkmgr.core.database.transaction import Transaction
from linkmgr.core.web import passwords
from linkmgr.features.imports import failed_rows as import_rows
from linkmgr.features.imports import job
from tests.conftest import Client
from tests.support.archives import archive, export
from tests.support.factories import Sql
from tests.support.imported import Import, counts, details, sale, shlink, yourls
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
    members = "SELECT to_jsonb(links) - '{version,updated}'::text[] FROM links WHERE id = %(id)s"
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
    told = sql("SELECT number, code FROM import_rows WHERE code IS NOT NULL ORDER BY number")
    assert [(row["number"], row["code"]) for row in told] == [(2, "alias_taken"), (3, "import_skipped")]
    assert details(alice, "sale")["longurl"] == "https://example.com/sale"
    for rule in ("skip", "update", "rename"):
        again = run_import(alice, shlink(FOREIGN[1]), f"?on_conflict={rule}")
        assert counts(again)[2:] == (0, 0, 0, 1), "the warning remains"
    assert counts(run_import(alice, shlink(*FOREIGN)))[3:] == (0, 1, 1)


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


def test_an_exported_account_keeps_from_where_a_link_was_imported(
    alice: Client, bob: Client, run_import: Import, sql: Sql
) -> None:
    first, later = (shlink(sale("sale", clicks=clicks)) for clicks in (5, 7))
    run_import(alice, first)
    exported = alice.get("/api/account/export").data
    assert counts(run_import(alice, exported, "?on_conflict=update")) == ("done", 1, 0, 1, 0, 0)
    alice.delete(f"/api/url/{details(alice, 'sale')['id']}/delete")
    for _ in range(2):
        run_import(bob, exported)
    [link] = sql("SELECT source_host, source_clicks, imported_clicks FROM links")
    assert link == {"source_host": "s.example.com", "source_clicks": 5, "imported_clicks": 5}
    for _ in range(2):
        assert counts(run_import(bob, later, "?on_conflict=update")) == ("done", 1, 0, 1, 0, 0)
        assert details(bob, "sale")["imported_clicks"] == 7


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


@pytest.mark.parametrize("rule", ["skip", "update", "rename"])
@pytest.mark.parametrize("is_moved_first", [False, True])
def test_no_rule_changes_a_link_of_another_host(
    alice: Client, run_import: Import, *, rule: str, is_moved_first: bool
) -> None:
    main = f"alias,url,title\nsale,{PAGE}/main,Main\n".encode()
    moved = shlink(sale("sale", f"{PAGE}/moved").replace("s.example.com", "go.example.org"))
    first, second = (moved, main) if is_moved_first else (main, moved)
    query = f"?on_conflict={rule}"
    assert run_import(alice, first, query)["made"] == 1
    for _ in range(2):
        found = run_import(alice, second, query)
        assert counts(found)[2:] == (0, 0, 0, 1)
        told = alice.get(f"/api/imports/{found['id']}/errors.csv").text
        assert "127.0.0.1:5000/sale" in told
        assert "go.example.org/sale" in told
    assert details(alice, "sale")["longurl"] == f"{PAGE}/{'moved' if is_moved_first else 'main'}"


def test_an_update_changes_a_link_that_was_imported_from_the_same_host(alice: Client, run_import: Import) -> None:
    run_import(alice, shlink(sale("sale", f"{PAGE}/old")))
    changed = shlink(sale("sale", f"{PAGE}/new"))
    assert counts(run_import(alice, changed))[2:] == (0, 0, 1, 0)
    assert counts(run_import(alice, changed, "?on_conflict=update"))[2:] == (0, 1, 0, 0)
    assert details(alice, "sale")["longurl"] == f"{PAGE}/new"
    alice.add("/api/domain/add", {"domain": "https://s.example.com"})
    domain = {"domain": "https://s.example.com"}
    assert alice.put(f"/api/url/{details(alice, 'sale')['id']}/update", domain).status_code == 200
    assert counts(run_import(alice, shlink(sale("sale", f"{PAGE}/3")), "?on_conflict=update"))[2:] == (0, 1, 0, 0)


def test_a_domain_that_a_user_adds_later_is_another_host(alice: Client, run_import: Import) -> None:
    run_import(alice, shlink(sale("sale", f"{PAGE}/old")))
    alice.add("/api/domain/add", {"domain": "https://s.example.com"})
    assert counts(run_import(alice, shlink(sale("sale", f"{PAGE}/new")), "?on_conflict=update"))[2:] == (1, 0, 0, 0)


def test_an_update_counts_clicks_once_that_were_imported_as_visits(alice: Client, run_import: Import) -> None:
    link_id = 0
    for clicks, imported in ((5, None), (5, None), (7, 2), (9, 4), (9, 4)):
        run_import(alice, yourls("sale", 5, clicks), "?on_conflict=update")
        link_id = details(alice, "sale")["id"]
        assert details(alice, "sale")["imported_clicks"] == imported
    assert alice.get(f"/api/url/{link_id}").get_json()["data"]["clicks"] == 5


def test_rows_that_are_skipped_are_listed_with_the_reason(
    alice: Client, run_import: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.add("/api/url/add", {"url": f"{PAGE}/sale", "custom": "sale"})
    merged, known = sale("sale", clicks=1200), sale("known")
    run_import(alice, shlink(known))
    found = run_import(alice, shlink(merged, known, sale("new")))
    assert counts(found)[2:] == (1, 0, 2, 0)
    path = f"/api/imports/{found['id']}/errors"
    rows = alice.get(path, headers={"Accept": "application/json"}).get_json()["data"]
    assert [(row["number"], row["code"], row["message"]) for row in rows] == [
        (1, "import_skipped", "s.example.com/sale and 127.0.0.1:5000/sale have the same target, and are one link here. "
                              "Its 1,200 clicks are not added."),
        (2, "import_skipped", "You have this row already, which is kept."),
    ]  # fmt: skip
    assert counts(run_import(alice, alice.get(f"{path}.csv").data))[2:] == (0, 0, 2, 0)
    monkeypatch.setattr(import_rows, "MAX_SKIPPED", 3)
    monkeypatch.setattr(job, "MAX_ROWS", 2)
    rows = [sale(f"row-{n}") for n in range(9)]
    run_import(alice, shlink(*rows))
    found = run_import(alice, shlink(*rows, sale("!")))
    told = alice.get(f"/api/imports/{found['id']}/errors", headers={"Accept": "application/json"}).get_json()["data"]
    assert [row["number"] for row in told] == [1, 2, 3, 10]
