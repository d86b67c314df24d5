"""Statistics over time: /api/stats and /api/stats/live."""

import csv
import io
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg2
import pytest
from flask import Flask

from linkmgr.db import session
from linkmgr.fields.stats import BY, DIMENSIONS
from tests import factories
from tests.conftest import Client
from tests.explain import rows_read
from tests.factories import Sql
from tests.targets import FIREFOX, IPHONE, Target
from tests.visited import Store, Visited

NOW = datetime.now(UTC)
TODAY = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
DAY = timedelta(days=1)


def report(client: Client, query: str = "") -> dict[str, Any]:
    answer = client.get(f"/api/stats?{query}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def rows(client: Client, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = report(client, query)["data"]["rows"]
    return found


def refusal(client: Client, query: str, status: int = 400) -> str:
    answer = client.get(f"/api/stats?{query}")
    assert answer.status_code == status, answer.text
    return str(answer.get_json()["message"])


def date(days_ago: int) -> str:
    return (TODAY - days_ago * DAY).date().isoformat()


@pytest.fixture
def link(sql: Sql, alice: Client) -> int:
    return factories.link(sql, alice.id)


@pytest.fixture
def visited(store: Store, link: int) -> list[Visited]:
    """Visits of a link: two from Germany by one visitor, one from Peru, and one by a bot."""
    visits = [
        Visited(link, TODAY - 3 * DAY, b"one"),
        Visited(link, TODAY - 2 * DAY, b"one", device="phone"),
        Visited(link, TODAY - 2 * DAY, b"two", country="Peru", referrer="Direct, email and other"),
        Visited(link, TODAY - 2 * DAY, b"bot", bot=True),
    ]
    store(visits)
    return visits


# --- rows and totals


def test_without_parameters_the_last_30_days_are_counted_by_day(alice: Client, visited: list[Visited]) -> None:
    answer = report(alice)
    expected = {date(3): 1, date(2): 2}
    assert answer["data"] == {
        "rows": [{"time": date(ago), "clicks": expected.get(date(ago), 0)} for ago in range(29, -1, -1)],
        "totals": {"clicks": 3},
    }
    assert answer["meta"] == {
        "metrics": ["clicks"],
        "by": ["time:day"],
        "ids": None,
        "campaign": None,
        "channel": None,
        "domain": None,
        "from": f"{date(29)}T00:00:00+00:00",
        "to": f"{date(-1)}T00:00:00+00:00",
        "period": "30d",
        "timezone": "UTC",
        "filters": {},
        "bots": "exclude",
        "order": "time",
        "limit": 333,
        "truncated": False,
        "source": "rollups",
        "detailed_since": None,
        "utc_days_before": date(400),
        "visitors_null_because": None,
    }


def test_an_account_without_visits_has_rows_of_zeros(alice: Client) -> None:
    assert rows(alice, "period=7d") == [{"time": date(ago), "clicks": 0} for ago in range(6, -1, -1)]
    assert report(alice, "by=country")["data"] == {"rows": [], "totals": {"clicks": 0}}
    assert rows(alice, "period=all&metrics=visitors") == [{"time": date(0), "visitors": 0}]


def test_each_label_has_a_row_for_each_day(alice: Client, visited: list[Visited]) -> None:
    found = rows(alice, f"by=time:day,country&from={date(3)}&to={date(1)}&metrics=clicks,visitors")
    assert found == [
        {"time": date(3), "country": "Germany", "clicks": 1, "visitors": 1},
        {"time": date(3), "country": "Peru", "clicks": 0, "visitors": 0},
        {"time": date(2), "country": "Germany", "clicks": 1, "visitors": 1},
        {"time": date(2), "country": "Peru", "clicks": 1, "visitors": 1},
    ]


def test_a_visitor_of_two_days_is_counted_once_in_the_totals(alice: Client, visited: list[Visited]) -> None:
    answer = report(alice, "metrics=clicks,visitors&period=7d")
    assert answer["data"]["totals"] == {"clicks": 3, "visitors": 2}
    assert sum(row["visitors"] for row in answer["data"]["rows"]) == 3
    assert answer["meta"]["source"] == "visits"


def test_a_visit_without_a_visitor_is_a_click(alice: Client, store: Store, link: int) -> None:
    store([Visited(link, TODAY, b""), Visited(link, TODAY, b"")])
    assert report(alice, "metrics=clicks,visitors")["data"]["totals"] == {"clicks": 2, "visitors": 0}


@pytest.mark.parametrize("name", [name for name in BY if not name.startswith("time:")])
@pytest.mark.parametrize("selected", [False, True])
def test_every_dimension_is_counted_from_both_sources_alike(
    alice: Client, visited: list[Visited], link: int, name: str, selected: bool
) -> None:
    query = f"by={name}" + (f"&ids={link}" if selected else "")
    member = "target_id" if name == "target" else name
    expected = Counter(getattr(visit, member) for visit in visited if not visit.bot)
    for metrics, source in (("clicks", "rollups"), ("clicks,visitors", "visits")):
        answer = report(alice, f"{query}&metrics={metrics}")
        assert {row[name]: row["clicks"] for row in answer["data"]["rows"]} == expected
        assert answer["meta"]["source"] == source


def test_two_dimensions_are_counted_from_the_visits(alice: Client, visited: list[Visited]) -> None:
    answer = report(alice, "by=country,device")
    assert answer["meta"]["source"] == "visits"
    assert answer["data"]["rows"] == [
        {"country": "Germany", "device": "desktop", "clicks": 1},
        {"country": "Germany", "device": "phone", "clicks": 1},
        {"country": "Peru", "device": "desktop", "clicks": 1},
    ]


def test_visits_of_bots_are_counted_only_on_request(alice: Client, visited: list[Visited], link: int) -> None:
    for selection in ("", f"&ids={link}", f"&ids={link}&metrics=clicks,visitors", "&by=country,os"):
        found = [report(alice, f"bots={bots}{selection}") for bots in ("exclude", "include", "only")]
        assert [answer["data"]["totals"]["clicks"] for answer in found] == [3, 4, 1]


def test_the_totals_are_those_of_the_statistics_object_and_of_the_visits(
    alice: Client, sql: Sql, target: Target
) -> None:
    for number in range(12):
        target.visit(agent=(FIREFOX, IPHONE)[number % 2], Referer=f"https://site{number % 3}.example.com/")
    target.visit(agent="curl/8.5.0")
    statistics = alice.get(f"/api/qr/{target.id}").get_json()["data"]
    for query in ("", f"ids={target.id}&"):
        totals = report(alice, f"{query}metrics=clicks,visitors")["data"]["totals"]
        assert totals == {"clicks": statistics["clicks"], "visitors": statistics["uniqueClicks"]}
        for name, member in {"country": "topCountries", "referrer": "topReferrers", "browser": "topBrowsers"}.items():
            counted = {row[name]: str(row["clicks"]) for row in rows(alice, f"{query}by={name}")}
            assert counted == statistics[member]
    assert report(alice, "device=phone")["data"]["totals"] == {"clicks": 6}
    assert sql("SELECT count(*) AS n FROM visits WHERE NOT bot") == [{"n": 12}]


# --- selections


def test_a_selection_counts_its_targets_only(alice: Client, sql: Sql, store: Store, link: int) -> None:
    code, other = factories.qr(sql, alice.id), factories.link(sql, alice.id)
    campaign, channel = factories.campaign(sql, alice.id), factories.channel(sql, alice.id)
    domain = factories.domain(sql, alice.id)
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=domain)[0]["host"]
    sql("UPDATE links SET campaign_id = %(to)s, domain_id = %(domain)s WHERE id = %(id)s RETURNING 1",
        to=campaign, domain=domain, id=link)  # fmt: skip
    for kind, item in (("links", link), ("qr", code)):
        assert alice.post(f"/api/channel/{channel}/assign/{kind}/{item}").status_code == 200
    store([Visited(link, TODAY), Visited(code, TODAY), Visited(code, TODAY), Visited(other, TODAY)])
    for query, expected in {
        "": {link: 1, code: 2, other: 1},
        f"ids={link},{other},{link}": {link: 1, other: 1},
        f"campaign={campaign}": {link: 1},
        f"channel={channel}": {link: 1, code: 2},
        f"channel={channel}&ids={code},{other}": {code: 2},
        f"domain={host}": {link: 1},
        f"domain=https://{host.upper()}/": {link: 1},
        "domain=127.0.0.1": {other: 1},
        f"domain={host}&ids={other}": {},
    }.items():
        for metrics in ("clicks", "clicks,visitors"):
            answer = report(alice, f"by=target&metrics={metrics}&{query}")
            assert {row["target"]: row["clicks"] for row in answer["data"]["rows"]} == expected, (query, metrics)
            assert answer["data"]["totals"]["clicks"] == sum(expected.values())


def test_another_users_rows_are_the_same_404_as_missing_ones(alice: Client, bob: Client, sql: Sql, link: int) -> None:
    own = factories.link(sql, bob.id)
    for name, make in {"ids": factories.link, "campaign": factories.campaign, "channel": factories.channel}.items():
        foreign = make(sql, alice.id)
        answers = [bob.get(f"/api/stats?{name}={value}") for value in (foreign, 2**62, 2**70, 0)]
        assert [answer.status_code for answer in answers] == [404] * 4
        assert len({answer.text for answer in answers}) == 1
    assert bob.get(f"/api/stats?ids={own},{link}").status_code == 404
    host = sql("SELECT host FROM domains WHERE id = %(id)s", id=factories.domain(sql, alice.id))[0]["host"]
    answers = [bob.get(f"/api/stats?domain={name}") for name in (host, "missing.example.com")]
    assert [answer.get_json()["code"] for answer in answers] == ["domain_unknown"] * 2


def test_a_deleted_link_stays_in_the_numbers_of_its_account(
    alice: Client, visited: list[Visited], link: int, run_jobs: Callable[[], None]
) -> None:
    assert alice.delete(f"/api/url/{link}/delete").status_code == 200
    run_jobs()
    assert report(alice)["data"]["totals"] == {"clicks": 3}
    assert rows(alice, "by=target") == [{"target": link, "clicks": 3}]


# --- filters


@pytest.mark.parametrize(
    ("query", "clicks"),
    [
        ("country=Germany", 2),
        ("country=germany", 2),
        ("country=DE", 2),
        ("country=de,PE", 3),
        ("country=-DE", 1),
        ("country=DE,PE,-PE", 2),
        ("country=FR", 0),
        ("referrer=t.co", 2),
        ('referrer="Direct, email and other"', 1),
        ('referrer="-Direct, email and other"', 2),
        ("device=phone", 1),
        ("device=phone&country=PE", 0),
        ("device=phone&country=-PE&by=browser", 1),
        ("city=berlin&language=de&os=linux&browser=firefox", 3),
    ],
)
def test_a_filter_includes_and_excludes_labels(alice: Client, visited: list[Visited], query: str, clicks: int) -> None:
    ids = f"ids={visited[0].target_id}"
    for other in ("metrics=clicks", "metrics=clicks,visitors", ids, f"{ids}&metrics=visitors,clicks"):
        answer = report(alice, f"{query}&{other}")
        assert answer["data"]["totals"]["clicks"] == clicks
        assert sum(row["clicks"] for row in answer["data"]["rows"]) == clicks


# --- order and limit


def test_rows_are_sorted_by_a_column(alice: Client, visited: list[Visited]) -> None:
    query = f"by=time:day,country&from={date(3)}&to={date(1)}"
    assert [row["country"] for row in rows(alice, f"{query}&order=-country")] == ["Peru", "Peru", "Germany", "Germany"]
    assert [row["time"] for row in rows(alice, f"{query}&order=-time")] == [date(2), date(2), date(3), date(3)]
    assert [row["clicks"] for row in rows(alice, f"{query}&order=clicks")] == [0, 1, 1, 1]
    assert [row["country"] for row in rows(alice, "by=country")] == ["Germany", "Peru"]


def test_the_limit_keeps_the_labels_with_the_most_clicks(alice: Client, visited: list[Visited]) -> None:
    answer = report(alice, "by=country&limit=1&order=country")
    assert answer["data"] == {"rows": [{"country": "Germany", "clicks": 2}], "totals": {"clicks": 3}}
    assert answer["meta"]["truncated"] is True
    answer = report(alice, "by=time:day,country&limit=1&period=7d")
    assert [row["country"] for row in answer["data"]["rows"]] == ["Germany"] * 7


def test_a_response_has_at_most_10000_rows(alice: Client, store: Store, link: int) -> None:
    store([Visited(link, TODAY, referrer=f"site{number}.example") for number in range(500)])
    answer = report(alice, "by=time:day,referrer&period=90d&limit=10000")
    assert answer["meta"]["limit"] == 111
    assert answer["meta"]["truncated"] is True
    assert len(answer["data"]["rows"]) == 90 * 111
    assert answer["data"]["totals"] == {"clicks": 500}


# --- ranges


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
        ("mtd", TODAY.replace(day=1)),
        ("ytd", TODAY.replace(day=1, month=1)),
        ("24h", NOW.replace(minute=0, second=0, microsecond=0) - timedelta(hours=23)),
    ],
)
def test_a_period_ends_with_the_current_day_or_hour(alice: Client, period: str, since: datetime) -> None:
    meta = report(alice, f"period={period}")["meta"]
    assert meta["from"] == since.isoformat()
    assert meta["to"] == (since + DAY if period == "24h" else TODAY + DAY).isoformat()


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


# --- visitors beyond the retention period, and detailed data


@pytest.fixture
def free(register: Callable[..., Client]) -> Client:
    """A user whose plan keeps visits for 90 days."""
    return register("free", plan="Free")


def test_visitors_are_null_beyond_the_retention_period_and_the_answer_says_why(
    free: Client, sql: Sql, store: Store
) -> None:
    link = factories.link(sql, free.id)
    store([Visited(link, TODAY - 80 * DAY), Visited(link, TODAY - 100 * DAY)])
    answer = report(free, "metrics=clicks,visitors&period=90d")
    assert answer["data"]["totals"] == {"clicks": 1, "visitors": 1}
    assert answer["meta"]["visitors_null_because"] is None
    answer = report(free, f"metrics=clicks,visitors&from={date(100)}")
    assert answer["data"]["totals"] == {"clicks": 2, "visitors": None}
    assert {row["visitors"] for row in answer["data"]["rows"]} == {None}
    assert answer["meta"]["source"] == "rollups"
    assert "detailed_since" in answer["meta"]["visitors_null_because"]
    assert answer["meta"]["detailed_since"][:10] in (date(90), date(89))
    assert report(free, "metrics=visitors,clicks&by=country&period=12mo&order=visitors")["data"]["rows"] == [
        {"country": "Germany", "visitors": None, "clicks": 2}
    ]


def test_two_dimensions_beyond_the_retention_period_are_refused(free: Client, sql: Sql, store: Store) -> None:
    for query in ("by=country,os", "by=country&os=iOS", "by=time:day&country=DE&os=iOS"):
        assert "The" not in refusal(free, f"{query}&from={date(100)}")[:3]
        assert "let from be later, or name one dimension" in refusal(free, f"{query}&from={date(100)}")
    link = factories.link(sql, free.id)
    store([Visited(link, TODAY - 80 * DAY), Visited(link, TODAY - 100 * DAY)])
    answer = report(free, "by=country,os&period=all")
    assert answer["data"]["totals"] == {"clicks": 1}
    assert answer["meta"]["from"] >= answer["meta"]["detailed_since"][:10]


# --- strictness


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("colour=red", "colour is not a parameter of this operation; these are: metrics, by, ids"),
        ("colour=", "colour is not a parameter"),
        ("%00=1", "a parameter is not a parameter"),
        ("metrics=clicks,clics", "metrics must be from the list clicks, visitors, separated by commas"),
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
        ("ids=" + ",".join(str(number) for number in range(1, 102)), "ids must be at most 100 ids"),
        ("campaign=Sale", "campaign must be an id such as 17"),
        ("ids=1&ids=2", "ids must not be repeated"),
        ("timezone=Europe/Berln", "timezone must be an IANA time zone such as Europe/Berlin"),
        ("timezone=../../etc/passwd", "timezone must be an IANA time zone"),
        ("timezone=localtime", "timezone must be an IANA time zone"),
        ("from=2026-13-01", "from must be a date or time"),
        ("from=2026-1-1", "from must be a date or time"),
        ("from=1999-01-01", "from 2000 to 2099"),
        ("from=2026-01-01T10:00:00+01:00", "from must be a date or time"),
        ("from=2026-01-01T10:07", "from must be a full quarter of an hour"),
        ("from=2026-01-02&to=2026-01-02", "from must be before to"),
        ("to=2026-01-02", "to needs from"),
        ("from=2026-01-02&period=7d", "period and from exclude each other"),
        ("from=2000-01-01&to=2099-01-01", "at most 10000 days apart"),
        ("by=time:hour&from=2026-01-01&to=2026-06-01", "time:hour allows a range of at most 100 days"),
        ("country=XX", "XX is no code"),
        ("country=DE,", "country must be at most 50 values"),
        ("referrer=-", "referrer must be at most 50 values"),
        ('referrer="a', "referrer must be at most 50 values"),
        ("device=laptop", "device must be from the list phone, tablet, desktop, unknown"),
        ("device=%0A", "device must be at most 50 values"),
        ("browser=%00", "browser must be at most"),
        ("os=" + ",".join("a" * 51), "os must be at most 50 values"),
        ("period=all&from=2026-01-01", "exclude each other"),
    ],
)  # fmt: skip
def test_an_invalid_query_is_refused_with_what_is_allowed(alice: Client, query: str, message: str | None) -> None:
    if message is None:
        assert report(alice, query)["meta"]["by"] == ["time:day"]
    else:
        assert message in refusal(alice, query)


def test_an_offset_can_be_sent_encoded(alice: Client) -> None:
    meta = report(alice, "from=2026-01-01T01:00:00%2B01:00&to=2026-01-02&timezone=Europe/Berlin")["meta"]
    assert (meta["from"], meta["to"]) == ("2026-01-01T01:00:00+01:00", "2026-01-02T00:00:00+01:00")


def test_statistics_that_take_too_long_name_the_remedy(
    alice: Client, raw: psycopg2.extensions.connection, make_app: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = f"{session.STARTUP_OPTIONS} -c statement_timeout=200 -c lock_timeout=0"
    monkeypatch.setattr(session, "STARTUP_OPTIONS", options)
    impatient = Client(make_app().test_client(), alice.key)
    assert impatient.get("/api/stats").status_code == 200
    raw.autocommit = False
    with raw.cursor() as cursor:
        cursor.execute("LOCK account_days IN ACCESS EXCLUSIVE MODE")
        answer = impatient.get("/api/stats")
    raw.rollback()
    assert (answer.status_code, answer.get_json()["code"], answer.headers["Retry-After"]) == (503, "too_slow", "60")
    assert "Narrow the range" in answer.get_json()["message"]


@pytest.fixture
def crowded(raw: psycopg2.extensions.connection, sql: Sql, link: int, bob: Client, store: Store) -> int:
    """A link with a visit, among those of another user in 4,000 quarters of an hour."""
    other = factories.link(sql, bob.id)
    store([Visited(link, NOW), *(Visited(other, NOW - number * timedelta(minutes=15)) for number in range(4000))])
    with raw.cursor() as cursor:
        cursor.execute("ANALYZE target_quarters, account_rollups, account_days, visits")
    return link


def test_statistics_read_no_rows_of_other_users(
    alice: Client, dsn: str, monkeypatch: pytest.MonkeyPatch, crowded: int
) -> None:
    for query in ("", "by=country", "by=time:month,country", "timezone=Asia/Kathmandu", "by=target", "metrics=visitors",
                  "by=country,os", "by=time:hour&period=7d", "period=all"):  # fmt: skip
        for selection in ("", f"&ids={crowded}"):
            read = rows_read(monkeypatch, dsn, partial(report, alice, query + selection))
            assert len(read) >= 3
            assert max(read) < 200, query + selection


# --- administrators


@pytest.fixture
def bob_link(bob: Client, sql: Sql) -> tuple[Client, int]:
    return bob, factories.link(sql, bob.id)


def test_an_administrator_reads_the_statistics_of_a_user_and_of_all(
    admin: Client, alice: Client, bob_link: tuple[Client, int], store: Store, visited: list[Visited]
) -> None:
    bob, link = bob_link[0], visited[0].target_id
    store([Visited(bob_link[1], TODAY)])
    assert report(admin)["data"]["totals"] == {"clicks": 0}
    for metrics in ("clicks", "clicks,visitors"):
        counted = {
            user: report(admin, f"metrics={metrics}&user={user}")["data"]["totals"]["clicks"]
            for user in (alice.id, bob.id, "all")
        }
        assert counted == {alice.id: 3, bob.id: 1, "all": 4}
    assert report(admin, f"user={alice.id}&ids={link}")["data"]["totals"] == {"clicks": 3}
    assert report(admin, "user=all&period=all")["data"]["totals"] == {"clicks": 4}
    assert refusal(admin, f"user={bob.id}&ids={link}", 404) == refusal(admin, f"ids={link}", 404)
    assert refusal(admin, "user=987654321", 404) == "There is no user with this id."
    assert "user must be an id such as 17, or all" in refusal(admin, "user=everyone")
    assert "without ids" in refusal(admin, f"user=all&ids={link}")


@pytest.mark.parametrize("path", ["/api/stats", "/api/stats/live"])
def test_only_administrators_name_a_user(alice: Client, bob: Client, path: str) -> None:
    for user in (alice.id, bob.id, 2**62, "all", "x"):
        answer = alice.get(f"{path}?user={user}")
        assert (answer.status_code, answer.get_json()["code"]) == (403, "administrators_only")


# --- live


def test_live_counts_the_last_30_minutes_by_minute(
    alice: Client, admin: Client, bob: Client, store: Store, link: int
) -> None:
    minute = timedelta(minutes=1)
    now = datetime.now(UTC)
    store([Visited(link, now), Visited(link, now, bot=True), Visited(link, now - 10 * minute),
                 Visited(link, now - 31 * minute)])  # fmt: skip
    answer = alice.get("/api/stats/live").get_json()
    assert len(answer["data"]["rows"]) == 30
    counted = {row["time"]: row["clicks"] for row in answer["data"]["rows"] if row["clicks"]}
    assert counted == {at.strftime("%Y-%m-%d %H:%M:00"): 1 for at in (now, now - 10 * minute)}
    assert answer["data"]["totals"] == {"clicks": 2}
    assert alice.get("/api/stats/live?bots=include").get_json()["data"]["totals"] == {"clicks": 3}
    assert bob.get("/api/stats/live").get_json()["data"]["totals"] == {"clicks": 0}
    for user, clicks in ((alice.id, 2), (bob.id, 0), ("all", 2)):
        assert admin.get(f"/api/stats/live?user={user}").get_json()["data"]["totals"] == {"clicks": clicks}
    assert admin.get("/api/stats/live?user=987654321").status_code == 404
    assert alice.get("/api/stats/live?period=7d").status_code == 400


# --- CSV

CSV = {"Accept": "text/csv"}


def table(client: Client, path: str) -> list[list[str]]:
    answer = client.get(path, headers=CSV)
    assert (answer.status_code, answer.mimetype) == (200, "text/csv")
    assert answer.text.endswith("\r\n")
    return list(csv.reader(io.StringIO(answer.text, newline="")))


def test_csv_has_the_same_rows(alice: Client, visited: list[Visited]) -> None:
    query = "by=time:day,referrer&metrics=clicks,visitors&period=7d"
    expected = rows(alice, query)
    assert table(alice, f"/api/stats?{query}") == [
        list(expected[0]),
        *[[str(value) for value in row.values()] for row in expected],
    ]
    assert table(alice, "/api/stats?by=country&metrics=visitors")[0] == ["country", "visitors"]
    assert len(table(alice, "/api/stats/live")) == 31


def test_a_null_is_an_empty_cell(free: Client) -> None:
    assert table(free, f"/api/stats?metrics=visitors&from={date(100)}&to={date(99)}") == [
        ["time", "visitors"],
        [date(100), ""],
    ]


@pytest.mark.parametrize("label", ["=1+1", "+1", "-1", "@sum", "\tx", "\rx", 'a"b,c\nd'])
def test_a_cell_that_looks_like_a_formula_is_neutralized(alice: Client, store: Store, link: int, label: str) -> None:
    store([Visited(link, TODAY, browser=label)])
    shown = label if label.startswith("a") else f"'{label}"
    assert table(alice, "/api/stats?by=browser") == [["browser", "clicks"], [shown, "1"]]


def test_json_is_returned_unless_csv_is_preferred(alice: Client) -> None:
    for accept in ("*/*", "application/json", "text/html", "text/csv;q=0.5, application/json", "text/*;q=0.1, */*"):
        assert alice.get("/api/stats", headers={"Accept": accept}).mimetype == "application/json", accept
    assert alice.get("/api/stats", headers={"Accept": "text/csv, application/json;q=0.9"}).mimetype == "text/csv"
    assert alice.get("/api/stats?by=x", headers=CSV).mimetype == "application/json"


def test_all_dimensions_can_be_filtered_and_shown() -> None:
    assert set(DIMENSIONS) <= set(BY)
