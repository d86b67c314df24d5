"""A logo is stored once for each user, and deleted with its last use. All logos of a user are bounded in bytes."""

from typing import Any

from linkmgr.core.error_catalogue import CATALOGUE
from linkmgr.qr import logos
from tests.conftest import Client
from tests.support.codes import TEXT
from tests.support.factories import Sql
from tests.support.logos import logo_file
from tests.support.races import during

BULK = "/api/qr/bulk"
STORED = "SELECT user_id, octet_length(image) AS size FROM logos"
MANY = """
    INSERT INTO logos (user_id, image)
    SELECT %(user_id)s, convert_to(i::text, 'UTF8') FROM generate_series(1, %(number)s) i RETURNING 1
"""
MOST = (logos.MAX_TOTAL << 20) // (logos.LEAST << 10)


def test_100_codes_of_a_bulk_request_store_their_logo_once(alice: Client, bob: Client, sql: Sql) -> None:
    code = TEXT | {"logo": logo_file(alice, "noise")}
    for user in (alice, bob):
        for _ in range(2):
            assert user.post(BULK, {"qrs": [code] * 100}).get_json()["created"] == 100
    stored = sql(STORED)
    assert sorted(logo["user_id"] for logo in stored) == [alice.id, bob.id]
    assert sum(logo["size"] for logo in stored) < 1 << 20


def test_a_logo_is_deleted_with_the_last_code_or_domain_that_has_it(alice: Client, sql: Sql) -> None:
    name, other = logo_file(alice, "noise"), logo_file(alice, "plain")
    first, second = (alice.add("/api/qr/add", TEXT | {"logo": name}) for _ in range(2))
    domain = alice.add("/api/domain/add", {"domain": "https://go.example.com", "brandlogo": name})
    uses: list[tuple[Any, ...]] = [
        (alice.put, f"/api/qr/{first}/update", {"data": "y", "logo": other}, 2),
        (alice.delete, f"/api/qr/{first}/delete", None, 2),
        (alice.delete, f"/api/qr/{first}/delete?bin=0", None, 1),
        (alice.put, f"/api/qr/{second}/update", {"data": "y", "logo": ""}, 1),
        (alice.put, f"/api/domain/{domain}/update", {"brandlogo": other}, 1),
        (alice.delete, f"/api/domain/{domain}/delete", None, 0),
    ]
    for call, path, body, left in uses:
        assert (call(path, body) if body else call(path)).status_code == 200
        assert len(sql(STORED)) == left, path


def test_a_logo_that_is_deleted_meanwhile_is_stored_again(alice: Client, raw: Any, sql: Sql) -> None:
    code = TEXT | {"logo": logo_file(alice, "noise")}
    qr_id = alice.add("/api/qr/add", code)
    assert (
        during(raw, f"DELETE FROM qrs WHERE id = {qr_id}", lambda: alice.post("/api/qr/add", code)).status_code == 200
    )
    assert len(sql(STORED)) == 1


def test_a_user_who_has_the_maximum_of_logos_can_use_these_only(alice: Client, sql: Sql) -> None:
    """Each counts as 4 KiB at least, so that their number is limited too."""
    noise, plain = (TEXT | {"logo": logo_file(alice, name)} for name in ("noise", "plain"))
    qr_id = alice.add("/api/qr/add", plain)
    sql(MANY, user_id=alice.id, number=MOST - 1)
    answer = alice.post("/api/qr/add", noise)
    assert (answer.status_code, answer.get_json()["code"]) == (400, "logos_full")
    assert f"{logos.MAX_TOTAL} MiB" in CATALOGUE["logos_full"][1]
    assert alice.put(f"/api/qr/{qr_id}/update", noise).get_json()["code"] == "logos_full"
    domain = {"domain": "https://go.example.com", "brandlogo": noise["logo"]}
    assert alice.post("/api/domain/add", domain).get_json()["code"] == "logos_full"
    codes = alice.post(BULK, {"qrs": [plain, noise, TEXT]}).get_json()
    assert [row.get("code") for row in codes["results"]] == [None, "logos_full", None]
    assert alice.post("/api/qr/add", plain).status_code == 200
