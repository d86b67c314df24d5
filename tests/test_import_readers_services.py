"""Reading from APIs of other services."""

from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

import pytest

from linkmgr.imports import services
from linkmgr.imports.rows import RawVisit
from tests.support.foreign_services import (
    BITLY,
    HOST,
    LINKS,
    VISITS,
    Serve,
    bitly,
    failure,
    kutt,
    parameters,
    read,
    serving,  # noqa: F401 - a fixture
    shlink,
    yourls,
)


def test_all_links_and_visits_of_shlink_are_read(serve: Serve) -> None:
    serve(shlink)
    rows = read("shlink")
    links, visits = [row for row in rows if not row.is_visits], [row for row in rows if row.is_visits]
    assert [row.record["custom"] for row in links] == [f"code{number}" for number in range(1, LINKS + 1)]
    assert links[6].record == {
        "url": "https://example.com/7", "custom": "code7", "domain": "go.example.org", "expiry": "2027-01-01 00:00:00",
    }  # fmt: skip
    assert (links[6].tags, links[6].created, links[6].clicks) == (["news"], "2026-02-04 12:04:57", VISITS)
    assert rows.index(visits[0]) == 50
    assert [row.record for row in visits] == [{"custom": "code7", "domain": "go.example.org"}] * 3
    raw = [visit for row in visits for visit in row.visits]
    assert len(set(raw)) == VISITS
    assert raw[:2] == [
        RawVisit("2026-02-05 00:00:00", "https://news.example.net", "curl/8.5.0", ""),
        RawVisit("2026-02-05 00:00:01", "https://news.example.net", "curl/8.5.0", "DE"),
    ]


def test_visits_since_the_import_began_do_not_move_its_pages(serve: Serve) -> None:
    requests = serve(shlink)
    read("shlink")
    ends = {parameters(urlsplit(path).query)["endDate"] for path in requests if "/visits?" in path}
    assert len(ends) == 1


def test_a_link_that_is_deleted_meanwhile_has_no_visits(serve: Serve) -> None:
    serve(lambda path, *rest: 404 if path.endswith("/visits") else shlink(path, *rest))
    assert not any(row.is_visits for row in read("shlink"))


def test_pages_of_unreadable_visits_end(serve: Serve) -> None:
    def endless(path: str, query: dict[str, str], request: BaseHTTPRequestHandler) -> Any:
        if path.endswith("/visits"):
            return {"visits": {"data": [{"date": "soon"}], "pagination": {"pagesCount": 10**9}}}
        return shlink(path, query, request)

    requests = serve(endless)
    assert [row.number for row in read("shlink")] == list(range(1, LINKS + 1))
    assert len([path for path in requests if "/visits" in path]) == 1


def test_all_links_of_kutt_are_read(serve: Serve) -> None:
    requests = serve(kutt)
    rows = read("kutt")
    assert [row.record for row in rows] == [
        {"url": f"https://example.com/{number}", "custom": f"code{number}"} for number in range(1, 121)
    ]
    assert [(row.created, row.clicks, row.visits) for row in rows[:1]] == [("2026-02-04 12:04:57", 1, [])]
    assert [parameters(urlsplit(path).query)["skip"] for path in requests] == ["0", "50", "100"]


def test_all_links_of_yourls_are_read_and_the_token_is_not_in_a_url(serve: Serve) -> None:
    requests = serve(yourls)
    rows = read("yourls", f"http://{HOST}/yourls-api.php")
    assert [row.record["custom"] for row in rows] == [f"code{number}" for number in range(1, 71)]
    assert rows[0].record["metatitle"] == "Title 1"
    assert (rows[69].clicks, rows[69].created) == (70, "2026-02-04 12:04:57")
    assert requests == ["/yourls-api.php"]


@pytest.fixture
def plain_bitly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "BITLY", f"http://{BITLY}/v4")


@pytest.mark.usefixtures("plain_bitly")
def test_all_links_of_all_groups_of_bitly_are_read(serve: Serve) -> None:
    serve(bitly, host=BITLY)
    rows = read("bitly", "")
    aliases = [f"{group}-{number}" for group in ("Ba1", "Bb2") for number in range(60)]
    assert [row.record["custom"] for row in rows] == aliases
    assert rows[0].record == {"url": "https://example.com/0", "custom": "Ba1-0", "domain": "bit.ly"}
    assert (rows[0].created, rows[0].clicks) == ("2026-06-01 08:30:00", None)


@pytest.mark.usefixtures("plain_bitly")
def test_a_token_of_bitly_goes_to_bitly_only(serve: Serve) -> None:
    def elsewhere(path: str, *rest: Any) -> Any:
        return bitly(path, *rest) | {"pagination": {"next": f"http://{BITLY}.example.net/v4/groups"}}

    requests = serve(elsewhere, host=BITLY)
    assert "has no 'pagination'" in failure("bitly", "").message
    assert len(requests) == 2
