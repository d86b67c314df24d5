"""Statistics: the recorded properties of a visit, and the requests that are not counted."""

from collections.abc import Callable
from pathlib import Path

import psycopg2
import pytest
from flask import Flask

from linkmgr.visits import store
from linkmgr.visits.counting import DIRECT
from tests.conftest import Client
from tests.support import geoip
from tests.support.factories import Sql
from tests.support.reports import NOTHING
from tests.support.targets import FIREFOX, IPHONE, Target

# --- counted visits


def test_a_target_without_visits_has_empty_statistics(target: Target) -> None:
    assert target.statistics() == NOTHING


def test_statistics_include_country_referrer_browser_system_network_and_visitors(target: Target) -> None:
    target.visit(agent=IPHONE, address=geoip.PERU, Referer="https://t.co/abc")
    target.visit(agent=IPHONE, address=geoip.PERU, Referer="https://news.example.com/a?b=c")
    target.visit(agent=FIREFOX, address=geoip.CHILE)
    assert target.statistics() == {
        "clicks": 3,
        "uniqueClicks": 2,
        "topCountries": {"Peru": "2", "Chile": "1"},
        "topReferrers": {DIRECT: "1", "news.example.com": "1", "t.co": "1"},
        "topBrowsers": {"Mobile Safari": "2", "Firefox": "1"},
        "topOs": {"iOS": "2", "Windows": "1"},
        "socialCount": {"facebook": 0, "twitter": 1, "instagram": 0},
    }


def test_labels_are_sorted_by_count_and_limited_to_ten(target: Target) -> None:
    for number in range(12):
        for _ in range(1 + (number == 7)):
            target.visit(Referer=f"https://site{number:02}.example.com/")
    hosts = [7, 0, 1, 2, 3, 4, 5, 6, 8, 9]
    assert list(target.statistics()["topReferrers"]) == [f"site{number:02}.example.com" for number in hosts]


def test_invented_referrers_are_counted_under_one_label(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_LABELS", 3)
    for number in (1, 2, 3, 4, 5, 1):
        target.visit(Referer=f"https://site{number}.example.com/")
    assert target.statistics()["topReferrers"] == {
        "Other": "2",
        "site1.example.com": "2",
        "site2.example.com": "1",
        "site3.example.com": "1",
    }


@pytest.mark.parametrize(
    ("referrer", "network"),
    [
        ("https://facebook.com", "facebook"),
        ("https://l.facebook.com", "facebook"),
        ("https://fb.me", "facebook"),
        ("https://t.co", "twitter"),
        ("https://mobile.twitter.com", "twitter"),
        ("https://L.Instagram.com", "instagram"),
        ("https://notfacebook.com", None),
        ("https://x.com.example.com", None),
        ("android-app://com.facebook.orca", "facebook"),
        ("android-app://com.twitter.android", "twitter"),
        ("android-app://org.com.twitter.android", None),
    ],
)
def test_a_social_network_is_recognized_by_its_hosts_and_apps(
    target: Target, referrer: str, network: str | None
) -> None:
    target.visit(Referer=f"{referrer}/path")
    social = {"facebook": 0, "twitter": 0, "instagram": 0} | ({network: 1} if network else {})
    assert target.statistics()["socialCount"] == social
    assert target.statistics()["topReferrers"] == {referrer.partition("//")[2].lower(): "1"}


@pytest.mark.parametrize("host", ["xn--bcher-kva.example", "bücher.example", "BÜCHER.example:443"])
def test_a_referrer_with_an_international_host_keeps_it(target: Target, host: str) -> None:
    """A program may send the host as it is. WSGI has a character for each byte of a header."""
    target.visit(Referer=f"https://{host}/a".encode().decode("latin-1"))
    assert target.statistics()["topReferrers"] == {"xn--bcher-kva.example": "1"}


@pytest.mark.parametrize(
    "referrer",
    ["", "http://127.0.0.1:5000/u/alice/list-1", "http://localhost/", "http://[", "about:blank", "https:// /",
     "https://\u0301a.example/".encode().decode("latin-1"), "https://b\xfc cher.example"],
)  # fmt: skip
def test_no_referrer_and_our_own_pages_count_as_direct(target: Target, referrer: str) -> None:
    target.visit(Referer=referrer)
    assert target.statistics()["topReferrers"] == {DIRECT: "1"}


@pytest.mark.parametrize("address", ["192.0.2.1", "127.0.0.1", "2001:db8::1", "unix:", ""])
def test_an_address_without_a_country_is_unknown(target: Target, address: str) -> None:
    target.visit(address=address)
    assert target.statistics()["topCountries"] == {"Unknown": "1"}


def test_an_invalid_mmdb_file_stops_the_start(make_app: Callable[..., Flask], tmp_path: Path) -> None:
    broken = tmp_path / "broken.mmdb"
    broken.write_bytes(b"\xab\xcd\xefMaxMind.com" + b"no database")
    with pytest.raises(SystemExit, match=r"LINKMGR_GEOIP_DATABASE must be a readable \.mmdb file\."):
        make_app(geoip_database=str(broken))


def test_a_visitor_is_one_network_of_ipv6(target: Target) -> None:
    for address in ("2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1"):
        target.visit(address=address)
    assert target.statistics()["uniqueClicks"] == 2


def test_a_visitor_is_one_address_with_one_user_agent_at_one_target(target: Target, sql: Sql, alice: Client) -> None:
    for _ in range(2):
        target.visit(address="192.0.2.1")
    target.visit(address="192.0.2.2")
    target.visit(address="192.0.2.1", agent=IPHONE)
    assert target.statistics()["uniqueClicks"] == 3
    other = Target(target.app, sql, alice.id)
    other.visit(address="192.0.2.1")
    assert other.statistics()["uniqueClicks"] == 1
    digests = sql("SELECT DISTINCT visitor FROM visits")
    assert len(digests) == 4, "the same visitor has another digest for another target"


def test_no_ip_address_is_stored(target: Target, raw: psycopg2.extensions.connection) -> None:
    target.visit(address="203.0.113.77", X_Forwarded_For="203.0.113.78")
    with raw.cursor() as cursor:
        cursor.execute("SELECT v::text FROM visits v UNION ALL SELECT t::text FROM tracked_rollups t")
        stored = " ".join(text for (text,) in cursor.fetchall())
    assert "Peru" in stored
    assert "203.0.113" not in stored


# --- requests that are not counted


@pytest.mark.parametrize(
    "headers",
    [
        {"method": "HEAD"},
        {"Sec_Purpose": "prefetch"},
        {"Sec_Purpose": "prefetch;prerender"},
        {"Purpose": "prefetch"},
        {"X_Purpose": "preview"},
        {"X_Moz": "prefetch"},
        {"agent": ""},
        {"agent": " "},
        {"agent": "some-unheard-of-crawler/1.0"},
        {"agent": "A link preview"},
    ],
)
def test_requests_by_programs_and_prefetches_are_not_counted(target: Target, headers: dict[str, str]) -> None:
    target.visit(**headers)
    assert target.statistics() == NOTHING


@pytest.mark.parametrize(
    "agent",
    [
        "x" * 5000,
        "\xff\xfe",
        "QRScanner/3.2",
        "QR Code Scanner/5.1 CFNetwork/1490.0.4 Darwin/23.2.0",
        "Mozilla/5.0 (Linux; Android 9; javaphone) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36",
    ],
)
def test_unusual_user_agents_are_visitors_too(target: Target, agent: str) -> None:
    target.visit(agent=agent)
    assert target.clicks == 1


# --- the client IP address


def forge(app: Flask, target: Target) -> int:
    """Send 100 visits from one address with 100 forged client addresses, and return the number of visitors."""
    target.app = app
    for number in range(100):
        target.visit(X_Forwarded_For=f"198.51.100.{number}, 203.0.113.1", X_Real_IP=f"198.51.100.{number}")
    assert target.clicks == 100
    return int(target.statistics()["uniqueClicks"])


def test_100_forged_headers_change_nothing_without_a_proxy(app: Flask, target: Target) -> None:
    assert forge(app, target) == 1


def test_of_several_forwarded_addresses_only_the_trusted_proxys_counts(
    make_app: Callable[..., Flask], target: Target
) -> None:
    setting = target.app.extensions["linkmgr_settings"].geoip_database
    assert forge(make_app(trusted_proxies="1", geoip_database=setting), target) == 1
    assert target.statistics()["topCountries"] == {"Peru": "100"}
