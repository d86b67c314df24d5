"""Aliases without regard to case, on branded domains and on the host of the service."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
import pytest
from flask import Flask

from linkmgr.core.settings import InvalidSetting
from linkmgr.repository import domains
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.imported import Import, aliases, counts, sale, shlink
from tests.support.races import at_once, during
from tests.support.shortlinks import PAGE, refused
from tests.support.targets import FIREFOX

HOST = "go.example.org"
TAKEN = "This alias is already in use. Choose another one."


@pytest.fixture
def domain(alice: Client) -> int:
    return alice.add("/api/domain/add", {"domain": f"https://{HOST}", "ignorecase": True})


def add(client: Client, alias: str, **members: Any) -> int:
    return client.add("/api/url/add", {"url": PAGE, "custom": alias, "domain": HOST} | members)


def target(app: Flask, path: str, host: str = HOST) -> str | None:
    answer = app.test_client().get(path, headers={"Host": host, "User-Agent": FIREFOX})
    return answer.headers["Location"] if answer.status_code == 302 else None


@pytest.mark.usefixtures("domain")
def test_an_alias_is_found_and_taken_in_any_case(app: Flask, alice: Client) -> None:
    link_id = add(alice, "Summer", url="https://example.com/summer")
    assert alice.get(f"/api/url/{link_id}").get_json()["details"]["shorturl"] == f"https://{HOST}/Summer"
    for path in ("/Summer", "/summer", "/SUMMER"):
        assert target(app, path) == "https://example.com/summer"
        found = alice.get("/api/urls", query_string={"short": HOST + path}).get_json()
        assert found["id"] == link_id
        assert refused(alice, custom=path[1:], domain=HOST) == TAKEN
        image = app.test_client().get(f"{path}/qr", headers={"Host": HOST})
        assert (image.status_code, image.mimetype) == (200, "image/png")
    assert target(app, "/summer", "127.0.0.1:5000") is None
    bulk = [{"url": PAGE, "custom": alias, "domain": HOST} for alias in ("SUMMER", "Winter", "wINTER")]
    results = alice.post("/api/urls/bulk", {"urls": bulk}).get_json()["results"]
    assert [result.get("code") for result in results] == ["alias_taken", None, "alias_taken"]


def test_letters_with_two_small_or_no_capital_forms_are_the_same(app: Flask, alice: Client) -> None:
    alice.add("/api/domain/add", {"domain": f"https://{HOST}", "ignorecase": True, "widealiases": True})
    streets = ("\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c2", "\u03bf\u03b4\u03bf\u03c3")
    for same in (streets, ("stra\u00dfe", "STRA\u1e9eE")):
        link_id = add(alice, same[0])
        for alias in same:
            assert target(app, f"/{alias}") == PAGE
            assert refused(alice, custom=alias, domain=HOST) == TAKEN
            short = {"short": f"https://{HOST}/{alias}"}
            assert alice.get("/api/urls", query_string=short).get_json()["id"] == link_id
    alice.add("/api/qr/add", {"type": "link", "data": f"https://{HOST}/\u03bf\u03b4\u03bf\u03c2"})


@pytest.mark.usefixtures("domain")
def test_other_hosts_keep_the_difference(app: Flask, alice: Client) -> None:
    add(alice, "Spring", domain="", url="https://example.com/a")
    assert target(app, "/spring", "127.0.0.1:5000") is None
    add(alice, "spring", domain="", url="https://example.com/b")
    assert target(app, "/spring", "127.0.0.1:5000") == "https://example.com/b"
    assert target(app, "/Spring", "127.0.0.1:5000") == "https://example.com/a"


@pytest.mark.usefixtures("domain")
def test_a_link_changes_case_moves_and_is_restored_with_its_alias(app: Flask, alice: Client, sql: Sql) -> None:
    link_id = add(alice, "Summer")
    assert alice.put(f"/api/url/{link_id}/update", {"custom": "SUMMER"}).status_code == 200
    assert alice.get(f"/api/url/{link_id}").get_json()["details"]["custom"] == "SUMMER"
    kept = {"ids": [link_id], "data": {"custom": "Autumn"}, "kept_until": "2099-01-01"}
    assert alice.put("/api/urls/bulk", kept).status_code == 200
    assert target(app, "/summer") == target(app, "/autumn") == PAGE
    assert refused(alice, custom="sumMER", domain=HOST) == TAKEN
    assert alice.put(f"/api/url/{link_id}/update", {"custom": "summer"}).status_code == 200
    assert target(app, "/Autumn") is None
    assert alice.delete(f"/api/url/{link_id}/delete?bin=1").status_code == 200
    assert "in your bin" in refused(alice, custom="Summer", domain=HOST)
    assert alice.post(f"/api/url/{link_id}/restore").status_code == 200
    assert target(app, "/SUMMER") == PAGE
    assert alice.put(f"/api/url/{link_id}/update", {"domain": "", "custom": "Summer"}).status_code == 200
    assert target(app, "/summer") is None
    assert target(app, "/Summer", "127.0.0.1:5000") == PAGE
    assert alice.delete(f"/api/url/{link_id}/delete").status_code == 200
    assert sql("SELECT alias FROM aliases") == []


@pytest.mark.usefixtures("domain")
def test_of_many_at_once_one_has_the_alias(app: Flask, alice: Client) -> None:
    def create(number: int) -> int:
        client = Client(app.test_client(), alice.key)
        alias = "Summer" if number % 2 else "summer"
        return client.post("/api/url/add", {"url": PAGE, "custom": alias, "domain": HOST}).status_code

    assert sorted(at_once(20, create)) == [200, *[400] * 19]


@pytest.mark.usefixtures("domain")
def test_bulk_requests_with_the_same_aliases_do_not_wait_for_each_other(app: Flask, alice: Client) -> None:
    def create(number: int) -> int:
        names = [f"Sale{n}" if (n + number) % 2 else f"sale{n}" for n in range(40)]
        urls = [{"url": PAGE, "custom": name, "domain": HOST} for name in (names if number % 3 else names[::-1])]
        client = Client(app.test_client(), alice.key)
        return int(client.post("/api/urls/bulk", {"urls": urls}).get_json()["created"])

    assert sum(at_once(8, create)) == 40


def test_it_only_changes_while_the_domain_has_no_links(alice: Client, domain: int) -> None:
    def change(*, ignorecase: bool) -> tuple[int, str | None]:
        answer = alice.put(f"/api/domain/{domain}/update", {"ignorecase": ignorecase})
        return answer.status_code, answer.get_json().get("code")

    assert change(ignorecase=False) == change(ignorecase=True) == (200, None)
    link_id = add(alice, "Summer")
    assert change(ignorecase=True) == (200, None)
    assert change(ignorecase=False) == (400, "domain_has_links")
    alice.delete(f"/api/url/{link_id}/delete?bin=1")
    assert change(ignorecase=False) == (400, "domain_has_links")
    alice.post(f"/api/url/{link_id}/restore")
    moved = {"ids": [link_id], "data": {"domain": ""}, "kept_until": "2099-01-01"}
    assert alice.put("/api/urls/bulk", moved).status_code == 200
    assert change(ignorecase=False) == (400, "domain_has_links")  # for the old short URL
    alice.delete(f"/api/url/{link_id}/delete")
    assert change(ignorecase=False) == (200, None)


def test_a_change_waits_for_a_link_that_is_being_stored(
    alice: Client, domain: int, raw: psycopg2.extensions.connection
) -> None:
    storing = f"INSERT INTO links (user_id, domain_id, alias, url) VALUES ({alice.id}, {domain}, 'Summer', '{PAGE}')"
    answer = during(raw, storing, lambda: alice.put(f"/api/domain/{domain}/update", {"ignorecase": False}))
    assert answer.get_json()["code"] == "domain_has_links"


def test_a_link_waits_for_a_change_that_is_being_stored(
    alice: Client, domain: int, raw: psycopg2.extensions.connection, sql: Sql
) -> None:
    changing = f"SELECT FROM domains WHERE id = {domain} FOR UPDATE; UPDATE domains SET ignorecase = false"
    during(raw, changing, lambda: add(alice, "Summer"))
    assert sql("SELECT alias FROM aliases") == [{"alias": "Summer"}]


@pytest.mark.usefixtures("domain")
def test_an_import_meets_its_link_in_another_case(alice: Client, run_import: Import, sql: Sql) -> None:
    add(alice, "Summer", url="https://example.com/sale")
    other = sale("SUMMER", "https://example.com/other").replace("s.example.com", HOST)
    file = shlink(sale("summer").replace("s.example.com", HOST), other)
    assert counts(run_import(alice, file)) == ("done", 2, 0, 0, 2, 0)
    assert counts(run_import(alice, file, "?on_conflict=rename")) == ("done", 2, 2, 0, 0, 0)
    assert aliases(sql, alice) == ["SUMMER-3", "Summer", "summer-2"]


# --- the host of the service


@pytest.fixture
def own(app_with: Callable[..., Flask], sql: Sql) -> Iterator[Flask]:
    """The service with a host that ignores case."""
    ignoring = app_with(aliases="ignorecase")
    with ignoring.app_context():
        domains.prepare_own_host()
    yield ignoring
    sql("UPDATE service SET ignorecase = false RETURNING 1")


def test_the_host_of_the_service_can_ignore_case(own: Flask, register: Callable[..., Client]) -> None:
    client = register("dana", via=own)
    client.add("/api/url/add", {"url": PAGE, "custom": "Summer"})
    client.add("/api/bio/add", {"name": "Dana", "alias": "Dana"})
    assert target(own, "/SUMMER", "127.0.0.1:5000") == PAGE
    assert own.test_client().get("/dana").status_code == 200
    assert refused(client, custom="summer") == refused(client, custom="DANA") == TAKEN
    for word in ("Login", "Docs"):
        assert "is reserved" in refused(client, custom=word)
    with own.app_context():
        domains.prepare_own_host()  # the next start


def test_that_host_only_changes_before_it_has_links(app: Flask, own: Flask, register: Callable[..., Client]) -> None:
    register("dana", via=own).add("/api/url/add", {"url": PAGE})
    with app.app_context(), pytest.raises(InvalidSetting, match="removed from LINKMGR_ALIASES before the host"):
        domains.prepare_own_host()


def test_an_unknown_option_stops_the_start(make_app: Callable[..., Flask]) -> None:
    with pytest.raises(InvalidSetting, match="LINKMGR_ALIASES must be"):
        make_app(aliases="case")
