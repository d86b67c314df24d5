"""Reports of /api/stats that tests read, and visits to count in them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import factories
from tests.support.factories import Sql
from tests.support.visited import Store, Visited

if TYPE_CHECKING:
    from tests.conftest import Client

NOW = datetime.now(UTC)
TODAY = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
DAY = timedelta(days=1)


def report(client: "Client", query: str = "") -> dict[str, Any]:
    answer = client.get(f"/api/stats?{query}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def rows(client: "Client", query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = report(client, query)["data"]["rows"]
    return found


def refusal(client: "Client", query: str, status: int = 400) -> str:
    answer = client.get(f"/api/stats?{query}")
    assert answer.status_code == status, answer.text
    return str(answer.get_json()["message"])


def date(days_ago: int) -> str:
    return (TODAY - days_ago * DAY).date().isoformat()


@pytest.fixture
def link(sql: Sql, alice: "Client") -> int:
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


@pytest.fixture
def free(register: Callable[..., "Client"]) -> "Client":
    """A user whose plan keeps visits for 90 days."""
    return register("free", plan="Free")


@pytest.fixture
def bob_link(bob: "Client", sql: Sql) -> tuple["Client", int]:
    return bob, factories.link(sql, bob.id)


NOTHING = {
    "clicks": 0,
    "uniqueClicks": 0,
    "topCountries": {},
    "topReferrers": {},
    "topBrowsers": {},
    "topOs": {},
    "socialCount": {"facebook": 0, "twitter": 0, "instagram": 0},
}
