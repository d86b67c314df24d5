"""`+` behind a short URL, and reports."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from linkmgr.features.reports import repository as reports
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.shortlinks import BRANDED, TARGET, Make, Short
from tests.support.targets import wait_until

HIDDEN: dict[str, dict[str, Any]] = {
    "is not active yet": {"starts": "2999-01-01 00:00:00+00"},
    "has expired": {"expiry": "2020-01-01 00:00:00+00", "expiredurl": "https://example.com/over"},
    "protected by a password": {"password_hash": "hash"},
    "have blocked the link": {"blocked": "2020-01-01 00:00:00+00"},
}


def report(link: Short, address: str = "127.0.0.1", **members: str) -> int:
    return link.ask(method="POST", path="+", data={"reason": "phishing"} | members, address=address).status_code


def test_the_preview_shows_the_target_and_counts_no_visit(short: Make, sql: Sql) -> None:
    link = short(metatitle="Summer sale", created="2020-01-01", languagetarget={"fr": "https://fr.example.com/"})
    answer = link.ask(path="+")
    assert answer.status_code == 200
    for text in (f'href="{TARGET}" rel="nofollow noopener', "Summer sale", "years ago", "example.com",
                 "Which target visitors get", "https://fr.example.com/", 'content="noindex"',
                 "Report this link"):  # fmt: skip
        assert text in answer.text
    assert link.ask(path="x+").status_code == 404
    assert link.clicks == 0


@pytest.mark.parametrize("text", HIDDEN)
def test_a_link_that_does_not_lead_to_its_target_shows_none(short: Make, text: str) -> None:
    page = short(**HIDDEN[text]).ask(path="+").text
    assert text in page
    assert TARGET not in page
    assert ("example.com" in page) == ("expiredurl" in HIDDEN[text])


def test_it_shows_a_target_on_each_host_that_visitors_may_be_led_to(short: Make, admin: Client) -> None:
    urls = [f"https://{name}.example/x" for name in ("de", "mac", "fr", "rule", "a", "b", "over", "app")]
    german, mac, french, rule, *variants, over, store = urls
    link = short(
        geotarget={"germany": german},
        devicetarget={"mac": mac},
        languagetarget={"fr": french},
        rules=[{"when": {"browser": ["Firefox"]}, "url": rule}],
        variants=[{"name": url, "url": url, "weight": 1} for url in variants],
        expiredurl=over,
        deeplink={"apple": store},
    )
    page = link.ask(path="+").text
    assert [url for url in (TARGET, *urls) if f'href="{url}"' not in page] == []
    number = admin.add("/api/block/add", {"host": "b.example"})
    wait_until(lambda: "have blocked the host" in link.ask(path="+").text)
    page = link.ask(path="+").text
    assert (variants[1] in page, german in page) == (False, True)
    assert admin.post(f"/api/block/{number}/end").status_code == 200
    many = short(geotarget={str(number): f"https://n{number}.example/" for number in range(50)})
    page = many.ask(path="+").text
    assert (page.count("<dt>Target</dt>"), "There are 31 more targets." in page) == (20, True)


def test_a_target_does_not_hide_another_one_on_the_same_host(short: Make, admin: Client) -> None:
    """Many users share the host of a service, such as one for documents and forms."""
    urls = [f"https://{host}/{path}" for host in ("docs.example", "forms.example") for path in "ab"]
    link = short(url=urls[0], variants=[{"name": url, "url": url, "weight": 1} for url in urls])
    page = link.ask(path="+").text
    assert [page.count(f'href="{url}"') for url in urls] == [1, 1, 1, 1]
    report(link, reason="phishing")
    [row] = [row for row in admin.get("/api/reports").get_json()["data"] if row["link"] == link.id]
    shown = [urls[0], urls[2], urls[1], urls[3]]  # at first one on each host
    assert ([target["longurl"] for target in row["targets"]], row["hosts"]) == (shown, 2)


def test_it_works_on_a_branded_domain(short: Make) -> None:
    link = short()
    link.brand()
    assert f"https://{BRANDED}/{link.alias}" in link.ask(path="+", Host=BRANDED).text
    assert link.ask(path="+").status_code == 404


def test_reports_are_bounded_by_address_by_link_and_in_size(short: Make, sql: Sql) -> None:
    link = short()
    assert report(link, text="It wants my password.") == 200
    assert [report(link, **wrong) for wrong in ({"reason": "x"}, {"text": "x" * 501}, {"reason": ""})] == [400] * 3
    assert link.ask(method="POST", path="+", data={"reason": "spam"}, Origin="https://evil.example").status_code == 403
    assert [report(link) for _ in range(5)] == [200] * 4 + [429]
    for number in range(30):
        report(link, f"10.0.{number}.1")
    stored = sql("SELECT * FROM reports ORDER BY id")
    assert len(stored) == reports.MAX_OF_LINK
    assert (stored[0]["reason"], stored[0]["text"]) == ("phishing", "It wants my password.")
    assert "127.0.0.1" not in str(stored)


def test_reports_of_one_person_do_not_silence_others(short: Make, sql: Sql) -> None:
    link, other = short(), short()
    for number in range(20):
        assert report(link, f"2001:db8:0:1::{number}") == 200
        sql("DELETE FROM rate_windows WHERE bucket LIKE '%%600 seconds%%' RETURNING 1")
    assert report(other, "2001:db8:0:1::21") == 429  # of the day
    sql("DELETE FROM rate_windows RETURNING 1")
    assert report(other, "2001:db8:0:1::21") == 200
    for number in range(18):
        report(link, f"10.0.{number}.1")
    stored = sql("SELECT link_id, count(*) AS number, count(DISTINCT reporter) AS persons FROM reports GROUP BY 1")
    assert {row["link_id"]: (row["number"], row["persons"]) for row in stored} == {link.id: (20, 19), other.id: (1, 1)}


def test_reports_can_be_turned_off(app_with: Callable[..., Flask], alice: Client, sql: Sql) -> None:
    link = Short(app_with(reports="0"), sql, alice.id)
    assert "Report" not in link.ask(path="+").text
    assert report(link) == 404
