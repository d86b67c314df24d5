"""Statistics over time: ranges, time zones, the retention period and invalid queries."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import psycopg2
import pytest
from flask import Flask

from linkmgr.core.database import session
from tests.conftest import Client
from tests.support import factories, geoip
from tests.support.explain import rows_read
from tests.support.factories import Sql
from tests.support.reports import DAY, NOW, TODAY, date, refusal, report, rows
from tests.support.slots import taken
from tests.support.visited import Store, Visited

# --- ranges


def test_a_range_of_10000_days_has_10000_rows(alice: Client) -> None:
    assert len(rows(alice, "from=2000-01-01&to=2027-05-19")) == 10_000
    assert report(alice, "from=2000-01-01T12:00&to=2027-05-19T12:00&by=time:week")["data"]["totals"] == {"clicks": 0}


def test_a_range_contains_its_start_and_not_its_end(alice: Client, store: Store, link: int) -> None:
    store([Visited(link, TODAY - 2 * DAY), Visited(link, TODAY - DAY - timedelta(microseconds=1)),
                 Visited(link, TODAY - DAY)])  # fmt: skip
    for query in ("", f"ids={link}&", f"metrics=clicks,visitors&ids={link}&"):
        assert [row["clicks"] for row in rows(alice, f"{query}from={date(2)}&to={date(1)}")] == [2]
        quarter = f"{date(2)}T00:00:00Z&to={date(2)}T00:15:00Z"
        assert [row["clicks"] for row in rows(alice, f"{query}from={quarter}&by=time:hour")] == [1]


@pytest.mark.parametrize(
    ("period", "since"),
    [
        ("7d", TODAY - 6 * DAY),
        ("30d", TODAY - 29 * DAY),
        ("90d", TODAY - 89 * DAY),
        ("28d", TODAY - 27 * DAY),
        ("week", TODAY - TODAY.weekday() * DAY),
        ("mtd", TODAY.replace(day=1)),
        ("ytd", TODAY.replace(day=1, month=1)),
    ],
)
def test_a_period_ends_with_the_current_day(alice: Client, period: str, since: datetime) -> None:
    meta = report(alice, f"period={period}")["meta"]
    assert (meta["from"], meta["to"]) == (since.isoformat(), (TODAY + DAY).isoformat())


def test_the_period_24h_ends_with_the_current_hour(alice: Client) -> None:
    before = datetime.now(UTC)
    meta = report(alice, "period=24h")["meta"]
    ends = datetime.fromisoformat(meta["to"])
    assert before < ends <= datetime.now(UTC) + timedelta(hours=1)
    assert (ends.minute, ends.second) == (0, 0)
    assert datetime.fromisoformat(meta["from"]) == ends - DAY


def test_a_year_has_twelve_months(alice: Client) -> None:
    found = rows(alice, "period=12mo&by=time:month")
    assert len(found) == 12
    assert found[-1]["time"] == TODAY.replace(day=1).date().isoformat()


def test_all_begins_with_the_first_visit(alice: Client, store: Store, sql: Sql, link: int) -> None:
    other = factories.link(sql, alice.id)
    store([Visited(link, TODAY - 50 * DAY), Visited(other, TODAY - 70 * DAY)])
    assert report(alice, "period=all")["meta"]["from"] == f"{date(70)}T00:00:00+00:00"
    assert report(alice, f"period=all&ids={link}")["meta"]["from"] == f"{date(50)}T00:00:00+00:00"
    assert report(alice, "period=all&timezone=America/New_York")["data"]["totals"] == {"clicks": 2}


def test_weeks_begin_on_monday(alice: Client) -> None:
    found = rows(alice, "by=time:week&from=2026-06-10&to=2026-06-23")
    assert [row["time"] for row in found] == ["2026-06-08", "2026-06-15", "2026-06-22"]


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2026-03-29", ["00:00:00+01:00", "01:00:00+01:00", "03:00:00+02:00"]),
        ("Europe/Berlin", "2025-10-26", ["00:00:00+02:00", "01:00:00+02:00", "02:00:00+02:00", "02:00:00+01:00"]),
        ("Australia/Lord_Howe", "2026-04-05", ["00:00:00+11:00", "01:00:00+11:00", "01:30:00+10:30", "02:00:00+10:30"]),
        ("Australia/Lord_Howe", "2025-10-05", ["00:00:00+10:30", "01:00:00+10:30", "02:30:00+11:00", "03:00:00+11:00"]),
        ("Atlantic/Azores", "2025-10-26", ["00:00:00+00:00", "00:00:00-01:00", "01:00:00-01:00"]),
        ("America/Asuncion", "2023-10-01", ["01:00:00-03:00", "02:00:00-03:00"]),
        ("Pacific/Chatham", "2025-09-28", ["00:00:00+12:45", "01:00:00+12:45", "02:00:00+12:45", "03:45:00+13:45"]),
        ("Asia/Kathmandu", "2026-01-01", ["00:00:00+05:45", "01:00:00+05:45"]),
    ],
)
def test_hours_that_are_repeated_or_missing_have_their_own_rows(
    alice: Client, zone: str, day: str, hours: list[str]
) -> None:
    following = (datetime.fromisoformat(day) + DAY).date()
    found = rows(alice, f"by=time:hour&timezone={zone}&from={day}&to={following}")
    assert [row["time"] for row in found][: len(hours)] == [f"{day}T{hour}" for hour in hours]


# --- strictness


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("colour=red", "colour is not a parameter of this operation; these are: metrics, by, ids"),
        ("colour=", "colour is not a parameter"),
        ("%00=1", "a parameter is not a parameter"),
        ("metrics=clicks,clics", "metrics must be from the list clicks, visitors, conversions, value, rate, separated"),
        ("metrics=clicks, visitors", "metrics must be from the list"),
        ("by=time", "by must be from the list time:hour, time:day"),
        ("by=country,os,browser", "by must have at most 2 names"),
        ("by=time:day,time:week", "at most one of them with time:"),
        ("by=", None),
        ("bots=all", "bots must be one of exclude, include, only"),
        ("period=14d", "period must be one of 24h, 7d"),
        ("order=country", "order must be one of time, -time, clicks, -clicks"),
        ("order=-", "order must be one of"),
        ("limit=0", "limit must be an integer from 1 to 10000"),
        ("limit=10001", "limit must be an integer from 1 to 10000"),
        ("limit=x", "limit must be an integer from 1 to 10000"),
        ("ids=1,x", "ids must be ids separated by commas"),
        ("ids=-1", "ids must be ids separated by commas"),
        ("ids=" + ",".join(str(number) for number in range(1, 102)), "ids must have at most 100 ids"),
        ("campaign=Sale", "campaign must be an id such as 17"),
        ("timezone=UTC&timezone=UTC", "timezone must not be repeated"),
        ("by=country&by=os&by=city", "by must have at most 2 names"),
        ("timezone=Europe/Berln", "timezone must be an IANA time zone such as Europe/Berlin"),
        ("timezone=../../etc/passwd", "timezone must be an IANA time zone"),
        ("timezone=localtime", "timezone must be an IANA time zone"),
        ("from=2026-13-01", "from must be a date or time"),
        ("from=2026-1-1", "from must be a date or time"),
        ("from=1999-01-01", "from 2000 to 2099"),
        ("from=2026-01-01T10:00:00+01:00", "from must be a date or time"),
        ("from=2026-01-01T10:07", "from must be a full quarter of an hour"),
        ("from=2026-01-02&to=2026-01-02", "from must be before to"),
        ("to=2026-01-02", "to must be sent with from"),
        ("from=2026-01-02&period=7d", "period and from exclude each other"),
        ("from=2000-01-01&to=2099-01-01", "at most 10000 days apart"),
        ("from=2000-01-01T12:00&to=2027-05-19T12:00", "time:day allows a range that touches at most 10000 days"),
        ("by=time:hour&from=2026-01-01&to=2026-06-01", "time:hour allows a range of at most 100 days"),
        ("country=XX", "XX is not a code"),
        ("language=xx", "xx is not a code"),
        ("country=Atlantis", "names such as Germany, or ISO 3166 codes such as DE; Atlantis is not a name"),
        ("country=-Atlantis", "Atlantis is not a name"),
        ("language=Dothraki", "language must be names such as German, or codes such as de; Dothraki is not a name"),
        ("language=de,Dothraki", "Dothraki is not a name"),
        ("country=DE,", "country must be 1 to 50 values"),
        ("referrer=-", "referrer must be 1 to 50 values"),
        ('referrer="a', "referrer must be 1 to 50 values"),
        ("device=laptop", "device must be from the list phone, tablet, desktop, unknown"),
        ("device=%0A", "device must be 1 to 50 values"),
        ("browser=%00", "browser must be at most"),
        ("os=" + ",".join("a" * 51), "os must be 1 to 50 values"),
        ("period=all&from=2026-01-01", "exclude each other"),
    ],
)  # fmt: skip
def test_an_invalid_query_is_refused_with_what_is_allowed(alice: Client, query: str, message: str | None) -> None:
    if message is None:
        assert report(alice, query)["meta"]["by"] == ["time:day"]
    else:
        assert message in refusal(alice, query)


def test_a_geoip_database_may_have_further_names_of_countries(
    make_app: Callable[..., Flask], alice: Client, tmp_path: Path
) -> None:
    http = make_app(geoip_database=geoip.write(tmp_path / "test.mmdb")).test_client()
    assert Client(http, alice.key).get("/api/stats?country=Atlantis").status_code == 200


def test_an_offset_can_be_sent_encoded(alice: Client) -> None:
    meta = report(alice, "from=2026-01-01T01:00:00%2B01:00&to=2026-01-02&timezone=Europe/Berlin")["meta"]
    assert (meta["from"], meta["to"]) == ("2026-01-01T01:00:00+01:00", "2026-01-02T00:00:00+01:00")


def test_statistics_that_take_too_long_name_the_remedy(
    alice: Client, raw: psycopg2.extensions.connection, make_app: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = f"{session.STARTUP_OPTIONS} -c statement_timeout=1000 -c lock_timeout=0"
    monkeypatch.setattr(session, "STARTUP_OPTIONS", options)
    impatient = Client(make_app().test_client(), alice.key)
    assert impatient.get("/api/stats").status_code == 200
    raw.autocommit = False
    with raw.cursor() as cursor:
        cursor.execute("LOCK account_totals IN ACCESS EXCLUSIVE MODE")
        answer = impatient.get("/api/stats")
    raw.rollback()
    assert (answer.status_code, answer.get_json()["code"], answer.headers["Retry-After"]) == (503, "too_slow", "60")
    assert "Narrow the range" in answer.get_json()["message"]


def test_a_process_computes_one_long_query_of_a_user_and_two_of_all_users(
    app: Flask, alice: Client, bob: Client, admin: Client
) -> None:
    def ask(client: Client, query: str = "by=country,city&period=12mo") -> str:
        answer = client.get(f"/api/stats?{query}")
        assert answer.status_code == 200 or int(answer.headers["Retry-After"]) > 0
        return str(answer.get_json().get("code", answer.status_code))

    with taken(app, alice.id):
        assert (ask(alice), ask(bob), ask(alice, "by=time:month,country&period=12mo")) == ("stats_busy", "200", "200")
        assert (ask(alice, "by=country&limit=1001"), ask(alice, "by=country&limit=1000")) == ("stats_busy", "200")
        with taken(app, bob.id):
            assert (ask(admin), ask(admin, "metrics=visitors&period=30d")) == ("stats_busy", "200")
    assert (ask(alice), ask(alice)) == ("200", "200")


@pytest.fixture
def crowded(raw: psycopg2.extensions.connection, sql: Sql, link: int, bob: Client, store: Store) -> int:
    """A link with a visit, among those of another user in 4,000 quarters of an hour."""
    other = factories.link(sql, bob.id)
    store([Visited(link, NOW), *(Visited(other, NOW - number * timedelta(minutes=15)) for number in range(4000))])
    with raw.cursor() as cursor:
        cursor.execute("ANALYZE")
    return link


def test_statistics_read_no_rows_of_other_users(
    alice: Client, dsn: str, monkeypatch: pytest.MonkeyPatch, crowded: int
) -> None:
    for query in ("", "by=country", "by=time:month,country", "timezone=Asia/Kathmandu", "by=target", "metrics=visitors",
                  "by=country,os", "by=time:hour&period=7d", "period=all"):  # fmt: skip
        for selection in ("", f"&ids={crowded}"):
            # A partition of a few pages may be read as a whole.
            read = rows_read(monkeypatch, dsn, partial(report, alice, query + selection), "SET enable_seqscan = off")
            assert len(read) >= 2
            assert max(read) < 200, query + selection
