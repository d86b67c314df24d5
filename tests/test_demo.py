"""The demo data of `make dev`."""

import re
import shlex
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from flask import Flask

from linkmgr import demo
from tests.conftest import BASE_URL, ROOT, Client
from tests.support.factories import Sql
from tests.support.lists import LISTS
from tests.support.reports import report
from tests.support.rollups import DIFFERENCES
from tests.support.schemas import execute

pytestmark = [pytest.mark.usefixtures("drop_past_months"), pytest.mark.slow]


@pytest.fixture
def clients(app: Flask) -> Iterator[dict[str, Client]]:
    with app.app_context():
        yield {name: Client(app.test_client(), key) for name, key in demo.seed(with_demo=True).items()}


def lengths(client: Client) -> dict[str, int]:
    paths = [path for path in LISTS if "{" not in path]
    return {path: client.get(path).get_json()["data"]["result"] for path in paths}


def test_demo_has_rows_in_each_list_and_a_page_that_links_to_each_feature_and_admin_has_none(
    app: Flask, clients: dict[str, Client]
) -> None:
    assert set(clients) == {"admin", "demo"}
    assert clients["demo"].get("/api/account").get_json()["data"]["status"] == "pro"
    empty = {path for path, length in lengths(clients["demo"]).items() if not length}
    # The first two connect to other services, and the plan of demo has no members, whose activity is kept.
    assert empty == {"/api/imports", "/api/webhooks", "/api/members", "/api/activity"}
    assert clients["admin"].get("/api/users").status_code == 200
    assert not any(lengths(clients["admin"]).values())
    shelf = clients["demo"].get("/api/channels?limit=1&page=2").get_json()["data"]["channels"][0]
    items = clients["demo"].get(f"/api/channel/{shelf['id']}").get_json()["data"]["items"]
    assert {item["type"] for item in items} == {"links", "bio", "qr"}
    newsletter = clients["demo"].get("/api/overlay?limit=1&page=5").get_json()["data"]["cta"][0]
    answers = clients["demo"].get(f"/api/overlay/{newsletter['id']}/answers").get_json()["data"]["answers"]
    assert [answer["answer"] for answer in answers] == [{"email": "robin@example.com"}]
    bio_id = clients["demo"].get("/api/bio").get_json()["data"]["bios"][0]["id"]
    page = clients["demo"].get(f"/api/bio/{bio_id}").get_json()["data"]
    browser = app.test_client()
    assert "Dana Demo" in browser.get(urlsplit(page["shorturl"]).path).text
    shown = {link["title"]: browser.get(link["url"].removeprefix(BASE_URL)) for link in page["links"]}
    assert {title: answer.status_code for title, answer in shown.items()} == {
        "A link with tracking pixels": 200,
        "A link with targets by device, country and language": 302,
        "A splash page": 200,
        "A newsletter": 200,
        "A contact form": 200,
        "A poll": 200,
        "A coupon": 200,
        "A message": 200,
        "One of the links of a campaign": 302,
    }
    assert "The rye bread is back" in shown["A splash page"].text
    assert shown["A newsletter"].text.count('type="email"') == 1
    assert shown["A poll"].text.count('type="radio"') == 3
    assert "RYE-10" in shown["A coupon"].text


def test_each_command_of_the_first_steps_works_with_the_key_of_demo(clients: dict[str, Client]) -> None:
    text = (ROOT / "README.md").read_text().partition("## First steps")[2].partition("\n## ")[0]
    commands = [shlex.split(line) for line in re.findall("^    curl (.*)$", text, re.MULTILINE)]
    assert len(commands) > 5
    for *options, url in commands:
        sent = dict(zip(options[1::2], options[::2], strict=True))  # each value, and its option
        headers = dict(value.split(": ") for value, option in sent.items() if option == "-H" and "$KEY" not in value)
        bodies = [value for value, option in sent.items() if option == "-d"]
        path = url.removeprefix("$BASE")
        method = "POST" if bodies else "GET"
        answer = clients["demo"].call(method, path, data="".join(bodies), headers=headers)
        assert (path, answer.status_code) == (path, 200)


def test_the_data_is_created_only_once_even_if_it_is_deleted_later(
    app: Flask, clients: dict[str, Client], sql: Sql
) -> None:
    before = lengths(clients["demo"])
    assert demo.seed(with_demo=True) == {name: client.key for name, client in clients.items()}
    assert lengths(clients["demo"]) == before
    for statement in ("DELETE FROM pixels", "DELETE FROM channels", "DELETE FROM qrs"):
        sql(statement)
    demo.seed(with_demo=True)
    assert lengths(clients["demo"])["/api/pixels"] == 0


def test_without_demo_there_is_an_administrator_only(app: Flask, sql: Sql) -> None:
    with app.app_context():
        assert list(demo.seed(with_demo=False)) == ["admin"]
    assert sql("SELECT username FROM users") == [{"username": "admin"}]


def test_a_name_taken_by_another_user_does_not_stop_the_start(app: Flask, alice: Client) -> None:
    alice.add("/api/campaign/add", {"slug": "spring"})
    with app.app_context():
        assert set(demo.seed(with_demo=True)) == {"admin", "demo"}


def test_demo_has_three_months_of_visits_that_agree_with_its_statistics(
    clients: dict[str, Client], sql: Sql, dsn: str
) -> None:
    assert execute(dsn, DIFFERENCES) == []
    days = sql(
        """
        SELECT extract(isodow FROM at AT TIME ZONE 'UTC') > 5 AS weekend, avg(visits)::int AS visits, count(*) AS days
          FROM account_sums WHERE dimension = '' AND NOT bot
         GROUP BY weekend ORDER BY weekend
        """
    )
    assert sum(day["days"] for day in days) >= 90
    [clicks] = sql(
        """
        SELECT (SELECT total FROM visit_months WHERE month = this_month() AND NOT (bot OR imported)) AS of_the_plan,
               coalesce(sum(visits), 0) AS counted
          FROM account_sums
         WHERE dimension = '' AND NOT bot AND at >= date_trunc('month', now(), 'UTC')
        """
    )
    assert clicks["of_the_plan"] == clicks["counted"]
    assert days[0]["visits"] > 1.2 * days[1]["visits"], "working days have more visits"
    for dimension in ("country", "referrer", "browser", "os", "device", "language", "target"):
        assert len(report(clients["demo"], f"by={dimension}")["data"]["rows"]) > 2, dimension
    link = clients["demo"].get("/api/urls?limit=1&order=click").get_json()["data"]["urls"][0]
    assert link["clicks"] > link["uniqueclicks"] > 0
    assert clients["demo"].get(f"/api/url/{link['id']}").get_json()["data"]["clicks"] == link["clicks"]
    codes = clients["demo"].get("/api/qr").get_json()["data"]["qrs"]
    unscanned = [code["name"] for code in codes if not code["scans"]]
    assert unscanned == ["Guest network"], "phones connect without this service"
