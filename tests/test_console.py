"""The console over HTTP: the first page, the list of links, and the page of one link."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from flask import Flask
from flask.testing import FlaskClient

from linkmgr import console as pages
from linkmgr.console.home import MAX_LINES
from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.pages import ROWS, by_link, console_rules, get, signed_in, visit, words
from tests.support.targets import Target
from tests.support.visited import Store


def shorten(console: FlaskClient, text: str) -> str:
    return console.post("/console", data={"urls": text}).text


def made(page: str) -> list[str]:
    return re.findall(r'id="made-\d+" href="([^"]+)" rel="noreferrer">\1<', page)


def box(page: str) -> list[str]:
    content = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert content
    return content[1].split()


# --- the first page


def test_signing_in_leads_to_the_console(app: Flask, alice: Client) -> None:
    console = app.test_client()
    assert console.get("/console").headers["Location"] == "/login"
    assert console.get("/", follow_redirects=True).request.path == "/login"
    console = signed_in(app)
    assert console.get("/", follow_redirects=True).request.path == "/console"
    page = get(console, "/console")
    assert re.findall(r'<a href="/console" aria-current="page">.*Home</a>', page)
    assert page.count("aria-current") == 1


def test_each_line_of_the_box_becomes_a_link_of_the_user(console: FlaskClient, alice: Client) -> None:
    page = shorten(console, "https://example.com/a\r\n\r\n  example.org/page \nhttps://example.com/a\n")
    assert "2 links created" in page
    links = alice.get("/api/urls").get_json()["data"]["urls"]
    assert {link["longurl"] for link in links} == {"https://example.com/a", "https://example.org/page"}
    assert made(page) == [link["shorturl"] for link in reversed(links)]
    assert box(page) == []


def test_a_url_that_has_a_link_already_is_not_called_new(console: FlaskClient, alice: Client) -> None:
    first = alice.post("/api/url/add", {"url": "https://example.com/a"}).get_json()
    assert {"error", "id", "shorturl", "short"} <= set(first)
    page = shorten(console, "https://example.com/a")
    assert "You already have this link" in page
    assert "Link created" not in page
    assert made(page) == [first["shorturl"]]
    page = shorten(console, "https://example.com/a\nhttps://example.com/b")
    assert "Link created" in page
    assert page.count("You already have this link") == 1
    assert "You already have these links" in shorten(console, "https://example.com/a\nhttps://example.com/b")
    for url, sentence in (
        ("https://example.com/a", "You already have this link."),
        ("https://example.com/c", "Link cre"),
    ):
        answer = console.post("/console/links/new", data={"url": url}, follow_redirects=True)
        assert [sentence in answer.text, "Link created." in answer.text] == [True, "cre" in sentence]


def test_bad_lines_stay_in_the_box_with_their_message_and_good_ones_are_made(console: FlaskClient) -> None:
    page = shorten(console, f"nonsense\nhttps://example.com/a\n{BASE_URL}/loop\n")
    assert "Link created" in page
    assert box(page) == ["nonsense", f"{BASE_URL}/loop"]
    assert "The URL must be a URL that begins with http:// or https://." in page
    assert "The URL must not point to this service." in page
    answer = console.post("/console", data={"urls": "<b>x</b>\0"})
    assert (answer.status_code, box(answer.text)) == (400, ["&lt;b&gt;x&lt;/b&gt;"])
    assert console.post("/console").status_code == 200


def test_a_form_makes_a_limited_number_of_links(console: FlaskClient) -> None:
    page = shorten(console, "\n".join(f"https://example.com/{number}" for number in range(MAX_LINES + 2)))
    assert f"{MAX_LINES} links created" in page
    assert box(page) == [f"https://example.com/{MAX_LINES}", f"https://example.com/{MAX_LINES + 1}"]


def test_the_limit_of_the_plan_is_shown_before_and_when_it_is_reached(
    app: Flask, register: Callable[..., Client], sql: Sql
) -> None:
    frida = register("frida", plan="Free")
    console = signed_in(app, "frida@example.com")
    assert "Near the limit of your plan" not in get(console, "/console")
    for _ in range(99):
        factories.link(sql, frida.id)
    page = shorten(console, "https://example.com/a\nhttps://example.com/b")
    assert box(page) == ["https://example.com/b"]
    assert "You have reached your plan&#39;s limit of 100 links." in page
    assert "Limit of your plan reached" in page
    assert "Near the limit of your plan" not in page


def test_the_first_page_of_a_new_account_has_one_field_an_example_and_three_words(
    console: FlaskClient, alice: Client, sql: Sql
) -> None:
    page = get(console, "/console").split('<main id="content"')[1].split('<dialog id="shortcuts"')[0]
    assert re.findall("<dt>([^<]+)</dt>", page) == ["Link", "Campaign", "Channel"]
    assert page.count("For example") == 1
    assert [name for name in re.findall(' name="([^"]+)"', page) if name != "timezone"] == ["urls"]
    assert page.count('class="card') == 2
    factories.link(sql, alice.id)
    page = get(console, "/console")
    assert "<dt>Channel</dt>" not in page
    assert "Visits of your links and QR codes appear here." in page


def test_the_first_page_shows_clicks_and_what_they_belong_to(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql, store: Store
) -> None:
    link_id, other = factories.link(sql, alice.id), factories.link(sql, bob.id)
    store([visit(link_id, days, country="France", referrer="") for days in range(25)])
    store([visit(link_id, 40) for _ in range(20)] + [visit(other)])
    code = factories.qr(sql, alice.id)
    store([visit(code, 1, country="France", kind="scan")])
    page = get(console, "/console")
    assert "26 visits in the last 28 days</bdi>" in page, "the period before began before the first visit"
    store([visit(link_id, 60)])
    page = get(console, "/console")
    assert "26 visits in the last 28 days, 30 % more than before" in page
    assert "25 clicks and 1 scan" in page
    assert f'<a href="/console/links/{link_id}">' in page
    assert f'<a href="/console/qrs/{code}">' in page
    assert '<a href="/console/statistics?dimension=target">Show all' in page
    assert "<bdi>France (FR)</bdi>" in page
    assert "<bdi>Germany" not in page
    assert page.count(", not complete yet</title>") == 1


def test_pages_with_figures_say_since_when_the_plan_counts_no_more(
    app: Flask, register: Callable[..., Client], sql: Sql
) -> None:
    sql("""
        INSERT INTO plans (name, free, limits)
        SELECT 'Tiny', false, jsonb_set(limits::jsonb, '{clicks}', '2') FROM plans WHERE name = 'Free' RETURNING 1
        """)
    tina = register("tina", plan="Tiny")
    link, target = factories.link(sql, tina.id), Target(app, sql, tina.id)
    console = signed_in(app, "tina@example.com")
    paths = ("/console", f"/console/links/{link}", "/console/statistics", f"/console/qrs/{target.id}")
    for number in (1, 2):
        target.visit()
        assert target.clicks == number
        assert not [path for path in paths if "are not counted" in get(console, path)]
    target.visit()
    assert target.clicks == 2
    for path in paths:
        page = get(console, path)
        now = f"{datetime.now(UTC):%b %-d, %Y}, [0-9:]{{5}} UTC"
        assert re.search(f"Visits since {now} are not counted: your plan counts 2 in a month.", page)
        assert re.search(f", counted until {now}<", page) or path == paths[1]
    sql("UPDATE plans SET limits = jsonb_set(limits::jsonb, '{clicks}', '9') WHERE name = 'Tiny' RETURNING 1")
    assert not [path for path in paths if "are not counted" in get(console, path)]


def test_the_owner_of_an_expired_link_is_told_where_to_edit_it(
    app: Flask, console: FlaskClient, alice: Client, bob: Client, sql: Sql
) -> None:
    for user, theirs in ((alice, True), (bob, False)):
        link = factories.link(sql, user.id)
        [row] = sql("UPDATE links SET expiry = '2020-01-01' WHERE id = %(id)s RETURNING alias", id=link)
        for viewer, owned in ((console, theirs), (app.test_client(), False)):
            answer = viewer.get(f"/{row['alias']}")
            assert answer.status_code == 410
            assert (f'href="/console/links/{link}/edit"' in answer.text) == owned
            assert ("It is your link." in answer.text) == owned


def test_clicks_of_a_deleted_link_have_a_row_without_a_link(
    console: FlaskClient, alice: Client, sql: Sql, store: Store
) -> None:
    link_id, code = factories.link(sql, alice.id), factories.qr(sql, alice.id)
    store([visit(link_id), visit(code)])
    alice.delete(f"/api/url/{link_id}/delete")
    page = get(console, "/console")
    assert "A deleted link or QR code" in page
    assert "QR code Poster" in page


# --- the list


def test_the_list_shows_clicks_states_and_pages(console: FlaskClient, alice: Client, sql: Sql, store: Store) -> None:
    for number in range(25):
        factories.link(sql, alice.id, title=f"Link {number}")
    link_id = alice.add(
        "/api/url/add",
        {"url": "https://example.com/x", "password": "secret", "expiry": "2020-01-01", "type": "frame",
         "status": "private"},
    )  # fmt: skip
    store([visit(link_id), visit(link_id, 3), visit(link_id, 40)])
    page = get(console, "/console/links")
    first = words(page.split('class="rows card"')[1].split("<li>")[1])
    for text in ("expired", "password", "frame", "private", "2 clicks in the last 28 days"):
        assert text in first
    assert "1 to 25 of 26" in page
    assert "26 to 26 of 26" in get(console, "/console/links?page=2")
    assert "has fewer pages" in get(console, "/console/links?page=3")


# --- who sees it


def test_the_row_of_another_user_is_a_404_on_each_route(
    app: Flask, console: FlaskClient, alice: Client, bob: Client, sql: Sql
) -> None:
    ids = {kind: make(sql, bob.id) for kind, make in ROWS.items()}
    link_id, ghost = ids["links"], 2**62
    before = [sql("SELECT * FROM links"), sql("SELECT * FROM qrs"), sql("SELECT * FROM bios")]
    rules = [(method, rule) for method, rule in console_rules(app) if "<" in rule and "administration" not in rule]
    assert len(rules) >= 6
    for method, rule in rules:
        pages = []
        for row_id in (ids[rule.split("/")[2]], ghost):
            path = re.sub("<id:[a-z_]+>", str(row_id), rule)
            answer = console.open(path, method=method, data={"url": "https://example.com/taken", "version": "1"})
            assert answer.status_code == 404, (method, path)
            pages.append(re.sub('nonce="[^"]+"', "", answer.text))
        assert pages[0] == pages[1]
    assert [sql("SELECT * FROM links"), sql("SELECT * FROM qrs"), sql("SELECT * FROM bios")] == before
    assert f"links/{link_id}" not in get(console, "/console/links") + get(console, "/console")


def test_without_a_session_every_route_leads_to_the_sign_in_page(app: Flask, alice: Client, sql: Sql) -> None:
    link_id = factories.link(sql, alice.id)
    for method, rule in console_rules(app):
        path = re.sub("<id:[a-z_]+>", str(link_id), re.sub(r"<any\((\w+).*?>", r"\1", rule))
        answer = app.test_client().open(path, method=method, data={"urls": "https://example.com/a"})
        assert (answer.status_code, answer.headers["Location"]) == (303, "/login")
    assert len(sql("SELECT 1 FROM links")) == 1


def test_every_url_of_the_console_is_text_in_a_module(app: Flask) -> None:
    """So that `git grep` finds the handler of a URL."""
    sources = "".join(path.read_text() for path in Path(pages.__file__).parent.rglob("*.py"))
    prefixes = ("/console/administration", "/console")
    for _, rule in console_rules(app):
        below = next(rule.removeprefix(prefix) for prefix in prefixes if rule.startswith(prefix))
        assert f'"{below.split("<any")[0]}' in sources, rule


def test_a_sign_in_link_leads_to_a_password_until_there_is_one(app: Flask, admin: Client, alice: Client) -> None:
    browser = by_link(app, admin, alice)
    assert "Set a password</a> to sign in again" in get(browser, "/console")
    browser.post("/account/password", data={"password": "another horse"})
    assert "Set a password</a>" not in get(browser, "/console")
