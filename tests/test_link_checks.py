"""Checks of the targets of links, by a real web server."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from html import unescape
from http.server import BaseHTTPRequestHandler
from itertools import pairwise
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from protego import Protego

from linkmgr.core.web import outbound_budget
from linkmgr.features.health import checks as worker
from linkmgr.features.health import requests
from linkmgr.features.health.requests import Checks, Result
from linkmgr.schemas.links import HEALTH
from tests.conftest import BASE_URL, Client
from tests.support.checked_sites import HTML, PAGE, Check, Site, health
from tests.support.factories import Sql
from tests.support.foreign import answering, publish, server
from tests.support.receivers import Deliver, events, subscribe

HOSTS = [f"shop{number}.example.com" for number in range(1, 4)]


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    made = Site()
    with server(made) as port:
        publish(monkeypatch, {f"{host}:80": port for host in HOSTS})
        yield made


def test_the_title_of_the_page_is_shown_in_place_of_one(
    alice: Client, site: Site, check: Check, console: FlaskClient
) -> None:
    link_id = alice.add("/api/url/add", {"url": f"http://{HOSTS[0]}/page"})
    assert health(alice, link_id) == {"state": "unchecked", "reason": "", "url": "", "title": "", "checked": None}
    assert alice.get("/api/urls?health=unchecked").get_json()["data"]["result"] == 1
    check()
    found = health(alice, link_id)
    assert found.pop("checked")
    assert found == {"state": "ok", "reason": "", "url": "", "title": "Gr\u00fc\u00dfe & Caf\u00e9"}
    assert (site.paths, site.agents) == (
        [("GET", "/robots.txt"), ("GET", "/page")],
        {f"linkmgr-link-check/1.0 (+{BASE_URL})"},
    )
    [listed] = alice.get("/api/urls?health=ok").get_json()["data"]["urls"]
    details = alice.get(f"/api/url/{link_id}").get_json()["details"]
    assert (listed["health"]["title"], listed["title"], details["metatitle"]) == (found["title"], "", "")
    for page in ("/console/links", "/console/links?q=is:broken"):
        assert ("Gr\u00fc\u00dfe &amp; Caf\u00e9" in console.get(page).text) == (page == "/console/links")
    assert "<h1><bdi>Gr\u00fc\u00dfe &amp; Caf\u00e9</bdi></h1>" in console.get(f"/console/links/{link_id}").text
    check(days=8)
    assert site.paths[2:] == [("GET", "/robots.txt"), ("HEAD", "/page")]


def test_a_link_is_broken_after_two_failures_a_day_apart_until_its_target_responds(
    alice: Client, site: Site, check: Check, console: FlaskClient, deliver: Deliver
) -> None:
    subscribe(alice, "", "link.broken", "link.recovered")
    link_id = alice.add("/api/url/add", {"url": f"http://{HOSTS[0]}/gone", "title": "Gone"})
    states = []
    for days in (0, 0.9, 0.2, 8):
        check(days=days)
        states.append(health(alice, link_id)["state"])
    assert states == ["unchecked", "unchecked", "broken", "broken"]
    assert site.paths.count(("HEAD", "/gone")) == site.paths.count(("GET", "/gone")) == 3
    listed = [alice.get(f"/api/urls?health={state}").get_json()["data"]["result"] for state in HEALTH]
    assert dict(zip(HEALTH, listed, strict=True)) == {"broken": 1, "ok": 0, "unchecked": 0}
    for page in ("/console/links?health=broken", f"/console/links/{link_id}"):
        assert ">broken</span>" in (text := console.get(page).text)
        assert "The response has the status 404." in text
    site.answers["/gone"] = answering(b"")
    check(days=8)
    deliver()
    assert health(alice, link_id)["state"] == "ok"
    assert [event["type"] for event in events(alice)] == ["link.broken", "link.recovered"]
    assert events(alice)[0]["data"]["id"] == link_id


def test_all_targets_are_checked_and_the_same_one_must_fail_twice(
    alice: Client, site: Site, check: Check, console: FlaskClient, deliver: Deliver
) -> None:
    subscribe(alice, "", "link.broken", "link.recovered")
    page, *others = (f"http://{HOSTS[n % 3]}/{path}" for n, path in enumerate(["page", *"abcdefgh"]))
    rules = [{"when": {"browser": ["Firefox"]}, "url": url} for url in (*others[2:5], page)]
    link_id = alice.add(
        "/api/url/add",
        {
            "url": page,
            "expiredurl": others[0],
            "geotarget": [{"location": "Germany", "link": others[1]}],
            "rules": rules,
            "variants": [{"name": name, "url": url, "weight": 1} for name, url in zip("ab", others[5:7], strict=True)],
            "languagetarget": [{"language": "German", "link": others[7]}],
        },
    )

    def fail(*paths: str, days: float) -> tuple[str, str]:
        site.answers |= {f"/{path}": answering(b"", 404 if path in paths else 200) for path in "abcdefgh"}
        check(days=days)
        check()  # the second turn
        found = health(alice, link_id)
        return found["state"], found["url"].rpartition("/")[2]

    assert fail("b", days=0) == ("unchecked", "b")
    assert health(alice, link_id)["title"] == "Gr\u00fc\u00dfe & Caf\u00e9"
    site.requests.clear()
    assert fail(days=2) == ("ok", "")
    requested = [path for path in site.paths if path[1] != "/robots.txt"]
    assert sorted(requested) == [("HEAD", f"/{path}") for path in (*"abcdefgh", "page")]
    assert fail("b", days=8) == ("ok", "b")
    assert fail("h", days=1.1) == ("ok", "h")
    assert fail("b", "h", days=1.1) == ("broken", "h")
    for path in ("/console/links?health=broken", f"/console/links/{link_id}"):
        assert f'The response has the status 404. <bdi dir="ltr">{others[7]}</bdi>' in console.get(path).text
    assert fail("b", days=8) == ("ok", "b")
    assert fail("b", days=1.1) == ("broken", "b")
    alice.put(f"/api/url/{link_id}/update", {"geotarget": []})
    assert fail(days=0) == ("ok", "")
    deliver()
    assert [event["type"] for event in events(alice)] == ["link.broken", "link.recovered"] * 2


def test_a_broken_target_is_checked_again_soon_and_then_every_week(
    alice: Client, site: Site, check: Check, sql: Sql
) -> None:
    link_id = alice.add("/api/url/add", {"url": f"http://{HOSTS[0]}/gone"})
    hours = []
    for days in (0, 1.1, 0.1, 0.3, 1.1, 7.1):
        check(days=days)
        [row] = sql("SELECT extract(epoch FROM due - now()) / 3600 AS hours FROM link_checks")
        hours.append(round(float(row["hours"])))
    assert hours == [24, 1, 6, 24, 7 * 24, 7 * 24]
    site.answers["/gone"] = answering(b"")
    check(days=7.1)
    assert health(alice, link_id)["state"] == "ok"
    site.answers["/gone"] = answering(b"", 404)
    for days in (7.1, 1.1):
        check(days=days)
    [row] = sql("SELECT due < now() + interval '61 minutes' AS soon, state FROM link_checks")
    assert row == {"soon": True, "state": "broken"}


def test_the_first_link_of_an_installation_is_checked(alice: Client, site: Site, check: Check, sql: Sql) -> None:
    [used] = sql("SELECT last_value FROM tracked_ids")
    sql("SELECT setval('tracked_ids', 1, false)")
    sql("UPDATE service SET checks_until = 0 RETURNING 1")
    try:
        check()
        assert alice.add("/api/url/add", {"url": f"http://{HOSTS[0]}/page"}) == 1
        check()
        assert health(alice, 1)["state"] == "ok"
    finally:
        sql("SELECT setval('tracked_ids', %(last)s)", last=used["last_value"])


def test_a_link_is_checked_again_at_once_over_the_api_and_in_the_console(
    *, alice: Client, bob: Client, site: Site, check: Check, console: FlaskClient
) -> None:
    link_id = alice.add("/api/url/add", {"url": f"http://{HOSTS[0]}/gone"})
    unknown = alice.add("/api/url/add", {"url": f"http://{HOSTS[0]}/page", "title": "New"})
    path = f"/api/url/{link_id}/check"
    assert alice.post(f"/api/url/{unknown}/check").status_code == 200  # before its first check
    listed = alice.get("/api/urls?health=unchecked").get_json()["data"]
    assert ([row["id"] for row in listed["urls"]], listed["result"]) == ([unknown, link_id], 2)
    for days in (0, 1.1):
        check(days=days)
    assert health(alice, link_id)["state"] == "broken"
    assert "Check again" in console.get(f"/console/links/{link_id}").text
    requested = len(site.requests)
    check()
    assert len(site.requests) == requested
    site.answers["/gone"] = answering(b"")
    assert bob.post(path).status_code == 404
    assert alice.post(path).get_json() == {"error": 0, "message": "The targets will be checked in a moment."}
    check()
    assert health(alice, link_id)["state"] == "ok"
    answer = console.post(f"/console/links/{link_id}/check")
    assert "will be checked in a moment" in console.get(answer.headers["Location"]).text
    requested = len(site.requests)
    check()
    assert len(site.requests) > requested


@pytest.mark.usefixtures("site")
def test_a_broken_link_is_checked_again_in_the_list_which_stays_as_it_was(
    alice: Client, console: FlaskClient, check: Check
) -> None:
    link_id = alice.add("/api/url/add", {"url": f"http://{HOSTS[0]}/gone"})
    alice.add("/api/url/add", {"url": f"http://{HOSTS[0]}/page"})
    for days in (0, 1.1):
        check(days=days)
    page = console.get("/console/links?health=broken&order=click").text
    [path] = re.findall('formaction="([^"]+)" name="back" value="1">Check again', page)
    answer = console.post(unescape(path), data={"back": "1"})
    assert answer.headers["Location"] == "/console/links?health=broken&order=click"
    assert "will be checked in a moment" in console.get(answer.headers["Location"]).text
    assert path.startswith(f"/console/links/{link_id}/check")
    assert console.get("/console/links").text.count(">Check again<") == 1


def test_checks_that_a_user_wants_are_bounded(
    alice: Client, bob: Client, console: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound_budget, "PER_HOUR", 2)
    link_id = alice.add("/api/url/add", {"url": "https://example.com/"})
    answers = [alice.post(f"/api/url/{link_id}/check") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].get_json()["code"] == "fetches_limited"
    refused = console.post(f"/console/links/{link_id}/check", follow_redirects=True)
    assert "will be checked" not in refused.text
    assert bob.post(f"/api/url/{bob.add('/api/url/add', {'url': 'https://example.com/'})}/check").status_code == 200


def test_no_check_is_wanted_where_checks_are_off(app_with: Callable[..., Flask], alice: Client) -> None:
    service, link_id = app_with(link_check="0"), alice.add("/api/url/add", {"url": "https://example.com/"})
    answer = Client(service.test_client(), alice.key).post(f"/api/url/{link_id}/check")
    assert (answer.status_code, answer.get_json()["code"]) == (409, "checks_off")


def test_a_broken_link_that_refuses_programs_is_not_broken_for_receivers_either(
    alice: Client, site: Site, check: Check, deliver: Deliver
) -> None:
    """Otherwise they would get no event when it responds, since `unchecked` becomes `ok`."""
    subscribe(alice, "", "link.broken", "link.recovered")
    link_id = alice.add("/api/url/add", {"url": f"http://{HOSTS[0]}/a"})
    states = []
    for status, days in ((404, 0), (404, 1.1), (503, 8), (200, 8)):
        site.answers["/a"] = answering(b"", status)
        check(days=days)
        states.append(health(alice, link_id)["state"])
    assert states == ["unchecked", "broken", "unchecked", "ok"]
    deliver()
    assert [event["type"] for event in events(alice)] == ["link.broken", "link.recovered"]


def test_a_target_recovers_although_the_url_cannot_be_checked(
    alice: Client, site: Site, check: Check, deliver: Deliver
) -> None:
    subscribe(alice, "", "link.broken", "link.recovered")
    site.answers["/robots.txt"] = answering(b"User-agent: *\nDisallow: /page")
    alice.add("/api/url/add", {"url": f"http://{HOSTS[0]}/page", "expiredurl": f"http://{HOSTS[0]}/a"})
    for status, days in ((404, 0), (404, 1.1), (200, 8)):
        site.answers["/a"] = answering(b"", status)
        check(days=days)
    deliver()
    assert [event["type"] for event in events(alice)] == ["link.broken", "link.recovered"]


@pytest.mark.parametrize(
    ("passed", "slow", "checked", "left"),
    [(0, "", "cuabd", 5), (0, "a", "cu", 1), (0, "u", "c", None), (5, "", "cef", 0), (5, "f", "ce", 6)],
)
def test_a_turn_ends_in_time_and_the_next_one_continues(
    passed: int, slow: str, checked: str, left: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def check(_: Checks, url: str, *_options: Any, **_more: Any) -> Result:
        if url == slow:
            raise TimeoutError
        seen.append(url)
        return Result("ok")

    monkeypatch.setattr(Checks, "check", check)
    link = {"targets": [*"uabcdefu", ""], "url": "u", "target": "c", "passed": passed, "wants_title": False}
    with pytest.raises(TimeoutError) if left is None else nullcontext():
        changes = Checks(BASE_URL).check_next(link, ())
        assert (changes["passed"], changes.get("outcome")) == (left, None if passed else "ok")
    assert "".join(seen) == checked


def test_a_new_url_begins_without_the_results_of_the_old_one(alice: Client, site: Site, check: Check, sql: Sql) -> None:
    link_id = alice.add("/api/url/add", {"url": f"http://{HOSTS[0]}/page"})

    def change(request: BaseHTTPRequestHandler) -> None:
        changed = alice.put(f"/api/url/{link_id}/update", {"url": f"http://{HOSTS[0]}/gone"})
        assert changed.get_json()["details"]["health"]["title"] == ""
        answering(PAGE, Content_Type=HTML)(request)

    check()
    same = alice.put(f"/api/url/{link_id}/update", {"url": f"http://{HOSTS[0]}/page", "description": "x"})
    assert same.get_json()["details"]["health"]["title"]
    sql("UPDATE link_checks SET title = '' RETURNING 1")
    site.answers["/page"] = change
    check(days=8)
    assert health(alice, link_id)["reason"] == "The response has the status 404."
    assert health(alice, link_id)["title"] == ""


def test_links_are_not_broken_while_no_host_responds(
    alice: Client, check: Check, sql: Sql, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A target is broken once another one responds, also one that is not due."""
    away, site = {f"{host}:80": 1 for host in HOSTS}, Site()
    with server(site) as port:
        publish(monkeypatch, dict.fromkeys(away, port))
        broken, other = (alice.add("/api/url/add", {"url": f"http://{host}/page"}) for host in HOSTS[:2])
        check()
        publish(monkeypatch, away)
        for days in (8.0, 2):
            check(days=days)
        sql("UPDATE link_checks SET due = now() + interval '7 days' WHERE link_id = %(id)s RETURNING 1", id=other)
        check(days=1.1)
        assert [health(alice, link_id)["state"] for link_id in (broken, other)] == ["ok", "ok"]
        assert caplog.messages.count("none of 2 hosts responded: their links are checked again in an hour") == 3
        publish(monkeypatch, away | {f"{HOSTS[1]}:80": port})
        for days in (1, 1.1):
            check(days=days)
    assert [health(alice, link_id)["state"] for link_id in (broken, other)] == ["broken", "ok"]
    assert site.paths.count(("HEAD", "/page")) == 2  # of the other one, the second time when it was not due


def test_the_only_link_is_broken_if_its_host_does_not_respond(
    alice: Client, site: Site, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    link_id = alice.add("/api/url/add", {"url": f"http://{HOSTS[0]}/page"})
    check()
    publish(monkeypatch, {f"{HOSTS[0]}:80": 1})
    for days in (8, 1.1):
        check(days=days)
    assert health(alice, link_id) | {"checked": ""} == {
        "state": "broken", "reason": "The host could not be reached.", "checked": "",
        "url": f"http://{HOSTS[0]}/page", "title": "Gr\u00fc\u00dfe & Caf\u00e9",
    }  # fmt: skip


def slow(request: BaseHTTPRequestHandler) -> None:
    request.rfile.read(1)  # until the client closes the connection


def streaming(request: BaseHTTPRequestHandler) -> None:
    """Send a page that never ends, without an end of its title."""
    if request.command == "HEAD":
        answering(b"", 405)(request)
    else:
        request.send_response(200)
        request.send_header("Content-Type", HTML)
        request.end_headers()
        request.wfile.write(b"<title>News")
        slow(request)


def redirecting(number: int) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        done = int(request.path.partition("?")[2] or 0)
        answering(b"", 302 if done < number else 200, Location=f"/target?{done + 1}")(request)

    return answer


def wanting_a_cookie(request: BaseHTTPRequestHandler) -> None:
    if "consent=1" in request.headers.get("Cookie", ""):
        answering(b"")(request)
    else:
        answering(b"", 302, Location="/target", Set_Cookie="consent=1; Path=/")(request)


@pytest.mark.parametrize("wants_title", [False, True])
@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [
        *((answering(b"", status), "ok", "") for status in (200, 204, 401, 403, 405, 429)),
        *((answering(b"", status), "failed", f"status {status}") for status in (404, 410, 500, 502, 504, 531)),
        *((answering(b"", status), "unchecked", f"status {status}") for status in (503, 520, 530, 999)),
        (streaming, "ok", ""),
        (answering(b"", 200, Location="/nowhere"), "ok", ""),
        (redirecting(10), "ok", ""),
        (redirecting(11), "failed", "redirects more than 10 times"),
        (wanting_a_cookie, "ok", ""),
        (answering(b"", 302, Location="/page"), "ok", ""),
        (answering(b"", 302, Location="/nowhere"), "failed", "status 404"),
        (answering(b"", 302, Location="app:open"), "ok", ""),
        (answering(b"", 302, Location="http://10.0.0.1/"), "unchecked", "no public IP address"),
        (slow, "failed", "did not respond"),
        (lambda request: request.connection.close(), "failed", "could not be reached"),
    ],
)
def test_these_responses_are_failures(
    *,
    site: Site,
    answer: Callable[..., None],
    outcome: str,
    reason: str,
    wants_title: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("linkmgr.features.health.requests.SPACING", 0)
    if answer in (slow, streaming):
        monkeypatch.setattr("linkmgr.features.health.requests.DEADLINE", 1)
    site.answers["/target"] = answer
    result = Checks(BASE_URL).check(f"http://{HOSTS[0]}/target", (), wants_title=wants_title)
    assert (result.outcome, reason in result.reason) == (outcome, True), result
    assert (result.title == "News") == (wants_title and answer is streaming)


@pytest.mark.parametrize(
    ("body", "content_type", "title"),
    [
        (b"<title>A" + b"a" * 300, HTML, "A" + "a" * 254),
        (b"<meta charset='koi8-r'><title>\xed\xc9\xd2</title>", "text/html", "\u041c\u0438\u0440"),
        (b"<meta charset=zlib><title>&#0;Plain&#7;&lt;</title>", "text/html", "\ufffdPlain<"),
        (b"<title>Image</title>", "image/svg+xml", ""),
        (b"<!-- <title>Old draft</title> --><title>Real title</title>", HTML, "Real title"),
        (b"<!--><title>A</title><!-- --><title>B</title>", HTML, "A"),
        (b"<svg/><SVG x=1>\n<title>Logo</title></svg><title>A</title>", HTML, "A"),
        (b"<script>'<title>B</title>'</script><style>/*<title>C*/</style ><title>A</title>", HTML, "A"),
        (b"<svg><title>Logo</title>", HTML, ""),
        (b"<!-- <title>Old draft</title>", HTML, ""),
        (b"<title> \n</title>" + b" " * (1 << 20), "text/html", ""),
    ],
)
def test_titles_of_pages(site: Site, body: bytes, content_type: str, title: str) -> None:
    site.answers["/target"] = answering(body, Content_Type=content_type)
    assert Checks(BASE_URL).check(f"http://{HOSTS[0]}/target", (), wants_title=True) == ("ok", "", title)


@pytest.mark.parametrize(
    ("status", "rules", "is_allowed"),
    [
        (200, b"User-agent: *\nDisallow: /", False),
        (200, b"User-agent: linkmgr-link-check\nDisallow: /target", False),
        (200, b"User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /other", True),
        (200, b"User-agent: *\nDisallow: http://[\n\xff\0", True),
        (200, b"\xef\xbb\xbfUser-agent: *\nDisallow: /target", False),
        (200, b"User-agent: *\rDisallow: /t*t$", False),
        (200, b"User-agent: *\nDisallow: /targe$", True),
        (200, b"User-agent: *\nDisallow: /*.pdf$\nDisallow: /*get", False),
        (200, b"User-agent: *\nDisallow: /\nAllow: /tar", True),
        (200, b"User-agent: *\nAllow: /tar\nDisallow: /targ", False),
        (200, b"User-agent: *\nAllow: /target\nDisallow: /target", True),
        (200, b"User-agent: *\nDisallow: /%74arget", False),
        (200, b"USER-AGENT: Linkmgr-Link-Check/1.0 # us\nAllow: /\n\nUser-agent: *\nDisallow: /", True),
        (200, b"User-agent: a\nUser-agent: *\nUser-agent: b\nDisallow: /target", False),
        (200, b"User-agent: linkmgr\nDisallow: /", True),
        (200, b"User agent *\nDisallow: /target", False),
        (200, b"User-agent: *\n" + b"#\n" * 150_000 + b"Disallow: /", False),
        (404, b"User-agent: *\nDisallow: /", True),
        (429, b"User-agent: *\nDisallow: /", True),
        (500, b"", False),
        (503, b"", False),
    ],
)
def test_a_robots_txt_decides(site: Site, status: int, rules: bytes, is_allowed: bool) -> None:
    site.answers |= {"/robots.txt": answering(rules, status), "/target": answering(b"")}
    outcome = Checks(BASE_URL).check(f"http://{HOSTS[0]}/target", (), wants_title=True).outcome
    assert (outcome, ("GET", "/target") in site.paths) == (("ok" if is_allowed else "unchecked"), is_allowed)


def test_a_robots_txt_that_redirects_for_ever_allows_everything(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linkmgr.features.health.requests.SPACING", 0)
    site.answers |= {"/robots.txt": answering(b"", 302, Location="/robots.txt"), "/target": answering(b"")}
    assert Checks(BASE_URL).check(f"http://{HOSTS[0]}/target", (), wants_title=True).outcome == "ok"


@pytest.mark.parametrize("name", ["User-agent:", "USER\tAGENT :", "useragent", "user-agent", "User  agent"])
def test_a_robots_txt_with_many_agents_and_rules_is_read_in_time(name: str) -> None:
    """The parser also reads lines without a colon, and the name of the rule as two words."""
    text = "".join(f"{name} a{number}\n" for number in range(2500)) + "Allow: /a*$\n" * 5000
    response = requests._Response(200, "", "text/plain", text.encode())
    began = time.monotonic()
    rules = requests._parsed(response)
    assert isinstance(rules, Protego)
    assert rules.can_fetch("http://example.com/b", requests.AGENT)
    assert time.monotonic() < began + 5


def test_a_host_gets_one_request_at_a_time_and_no_user_occupies_a_batch(
    alice: Client, site: Site, check: Check, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("linkmgr.features.health.requests.SPACING", 0.2)
    monkeypatch.setattr(worker, "PER_HOST", 2)
    monkeypatch.setattr(worker, "PER_USER", 3)
    site.answers["/elsewhere"] = answering(b"", 302, Location=f"http://{HOSTS[0]}/page")
    urls = [f"http://{HOSTS[0]}/page?{number}" for number in range(4)] + [f"http://{HOSTS[1]}/elsewhere"]
    for url in [*urls, f"http://{HOSTS[2]}/page"]:
        alice.add("/api/url/add", {"url": url})
    check()
    waiting = sql("SELECT due > now() AS later FROM link_checks WHERE checked IS NULL ORDER BY 1")
    assert [row["later"] for row in waiting] == [True, True, True]
    for host in HOSTS[:2]:
        of_host = sorted((r for r in site.requests if r.host == host), key=lambda request: request.began)
        assert of_host
        assert all(later.began - earlier.ended > 0.15 for earlier, later in pairwise(of_host))


def test_a_check_that_would_take_too_long_is_tried_an_hour_later(
    alice: Client, site: Site, check: Check, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("linkmgr.features.health.requests.LINK_SECONDS", -1)
    link_id = alice.add("/api/url/add", {"url": f"http://{HOSTS[0]}/page"})
    check()
    [row] = sql("SELECT due > now() + interval '50 minutes' AS later, checked FROM link_checks")
    assert (row, site.requests, health(alice, link_id)["reason"]) == ({"later": True, "checked": None}, [], "")
