"""Recognition of visitors by the setting VISITOR_SALT, privacy signals of browsers, and countries without set-up."""

import time
from collections.abc import Callable

import pytest
from flask import Flask

from linkmgr.visits.counting import DIRECT
from tests.conftest import Client
from tests.support import geoip
from tests.support.factories import Sql
from tests.support.targets import FIREFOX, IPHONE, Target

Open = Callable[..., Target]
DAY = 86400


@pytest.fixture
def open_target(app_with: Callable[..., Flask], sql: Sql, alice: Client) -> Open:
    return lambda **settings: Target(app_with(**settings), sql, alice.id)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let this number of days pass for the period of the visitor key."""
    gmtime, now = time.gmtime, time.time()

    def advance(days: int) -> None:
        monkeypatch.setattr(time, "gmtime", lambda *_: gmtime(now + days * DAY))

    return advance


@pytest.mark.parametrize(
    ("salt", "recognized", "unknown"), [("lasting", 4000, None), ("monthly", 0, 32), ("", 0, 32), ("daily", 0, 1)]
)
def test_a_visitor_is_recognized_in_the_period_of_the_setting(
    open_target: Open, later: Callable[[int], None], salt: str, recognized: int, unknown: int | None
) -> None:
    target = open_target(**{"visitor_salt": salt} if salt else {})  # a month by default
    target.visit()
    later(recognized)
    target.visit()
    assert target.statistics()["uniqueClicks"] == 1
    if unknown:
        later(unknown)
        target.visit()
        assert target.statistics()["uniqueClicks"] == 2
    assert target.clicks == 2 + bool(unknown)


@pytest.mark.parametrize("salt", ["lasting", "monthly", "daily"])
def test_all_processes_recognize_the_same_visitor(open_target: Open, make_app: Callable[..., Flask], salt: str) -> None:
    target = open_target(visitor_salt=salt)
    target.visit()
    target.app = make_app(visitor_salt=salt)
    target.visit()
    assert target.statistics()["uniqueClicks"] == 1


@pytest.mark.parametrize("signal", ["DNT", "Sec_GPC"])
def test_a_privacy_signal_is_respected_if_the_setting_says_so(open_target: Open, sql: Sql, signal: str) -> None:
    target = open_target(respect_dnt="1")
    target.visit(address="8.8.8.8", Referer="https://t.co/abc", **{signal: "1"})
    statistics = target.statistics()
    assert (statistics["clicks"], statistics["uniqueClicks"]) == (1, 0)
    assert statistics["topCountries"] == {"Unknown": "1"}
    assert statistics["topReferrers"] == {DIRECT: "1"}
    assert statistics["socialCount"]["twitter"] == 0
    assert sql("SELECT length(visitor) AS n FROM visits") == [{"n": 0}]
    target.visit(address="8.8.8.8", **{signal: "0"})
    assert target.statistics()["uniqueClicks"] == 1


def test_privacy_signals_are_ignored_by_default(open_target: Open) -> None:
    target = open_target()
    target.visit(address="8.8.8.8", DNT="1", Sec_GPC="1")
    assert target.statistics()["uniqueClicks"] == 1
    assert target.statistics()["topCountries"] == {"United States": "1"}


@pytest.mark.parametrize(
    ("address", "country"),
    [
        ("8.8.8.8", "United States"),
        ("5.9.0.1", "Germany"),
        ("2a02:908::1", "Germany"),
        ("1.0.16.1", "Japan"),
        *(
            (private, "Unknown")
            for private in ("127.0.0.1", "::1", "10.1.2.3", "192.168.1.1", "fe80::1", "fd00::1", "x")
        ),
    ],
)
def test_countries_need_no_set_up(open_target: Open, address: str, country: str) -> None:
    target = open_target()
    target.visit(address=address)
    assert target.statistics()["topCountries"] == {country: "1"}


def test_a_configured_file_replaces_the_built_in_countries(target: Target) -> None:
    target.visit(address="8.8.8.8")
    target.visit(address=geoip.PERU)
    assert target.statistics()["topCountries"] == {"Peru": "1", "Unknown": "1"}


TABLET = "Mozilla/5.0 (iPad; CPU OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Version/17.0 Mobile/15E148 Safari/604.1"


@pytest.mark.parametrize(
    ("agent", "device"), [(FIREFOX, "desktop"), (IPHONE, "phone"), (TABLET, "tablet"), ("QRScanner/3.2", "Unknown")]
)
def test_the_device_of_a_visit_is_its_kind(open_target: Open, sql: Sql, agent: str, device: str) -> None:
    open_target().visit(agent=agent)
    assert sql("SELECT visit_label(v, 'device') AS device FROM visits v") == [{"device": device}]


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("de-AT,de;q=0.9,en;q=0.8", "German"),
        ("en;q=0.5, fr", "French"),
        ("zh-Hant-TW", "Chinese"),
        ("en-US,en;q=0.9,de;q=0.8", "English"),
        ("qqq, fr;q=0.9", "French"),
        ("qqq, fr;q=0.8", "Unknown"),
        ("ht", "Haitian Creole"),
        ("CKB-IQ", "Central Kurdish"),
        ("nn-NO", "Norwegian"),
        ("*", "Unknown"),
        ("", "Unknown"),
        ("\xff;q=x,,", "Unknown"),
    ],
)
def test_the_language_of_a_visit_is_the_preferred_one_from_a_fixed_list(
    open_target: Open, sql: Sql, header: str, language: str
) -> None:
    open_target().visit(Accept_Language=header)
    assert sql("SELECT visit_label(v, 'language') AS language FROM visits v") == [{"language": language}]
