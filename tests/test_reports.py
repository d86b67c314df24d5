"""Reports: what administrators decide over the API and in the console, and the list of blocked hosts."""

from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

import pytest
from flask import Flask

from linkmgr.features.reports import blocklist
from tests.conftest import Client
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.foreign import answering, server
from tests.support.receivers import Receiver, subscribe
from tests.support.sessions import sign_in
from tests.support.shortlinks import Make, Short
from tests.support.targets import wait_until

EVIL = "https://www.evil.example/x"
Listed = Callable[[bytes], list[str]]
LIST = b"""# A comment, and a host\nevil.example  # of today\n0.0.0.0 bad.example worse.example
127.0.0.1 localhost\n<html>\n10.3\nb\xc3\xbccher.example\n\xff\n"""


def statuses(base: str, alias: str) -> set[int]:
    """Return what the workers of a service answer."""
    found = set()
    for _ in range(8):
        connection = HTTPConnection(urlsplit(base).netloc)
        connection.request("GET", f"/{alias}")
        found.add(connection.getresponse().status)
        connection.close()
    return found


def report(link: Short, *reasons: str) -> None:
    for reason in reasons:
        link.ask(method="POST", path="+", data={"reason": reason, "text": f"It is {reason}."})


def test_an_administrator_decides_reports_and_takes_the_decision_back(
    short: Make, alice: Client, admin: Client, receiver: Receiver, deliver: Callable[[], None]
) -> None:
    for client in (alice, admin):
        subscribe(client, receiver.url, "link.blocked" if client is alice else "report.created")
    link, other, third = short(url=EVIL), short(url="https://evil.example/"), short()
    report(link, "phishing", "spam")
    report(other, "other")
    report(third, "malware")
    listed = admin.get("/api/reports").get_json()["data"]
    assert [row["link"] for row in listed] == [third.id, other.id, link.id]
    assert listed[2] | {"first": "", "last": "", "shorturl": ""} == {
        "link": link.id, "shorturl": "", "longurl": EVIL, "host": "www.evil.example", "user": alice.id,
        "targets": [{"host": "www.evil.example", "longurl": EVIL}], "hosts": 1,
        "username": "alice", "number": 2, "reasons": ["phishing", "spam"], "texts": ["It is spam.", "It is phishing."],
        "first": "", "last": "",
    }  # fmt: skip
    for row, decision in zip(listed, ("dismiss", "host", "link"), strict=True):
        answer = admin.post(f"/api/report/{row['link']}/decide", {"decision": decision})
        assert answer.get_json()["message"] == "The reports have been decided."
    assert admin.get("/api/reports").get_json()["data"] == []  # those of `link` were decided with the host
    wait_until(lambda: [one.ask().status_code for one in (link, other, third)] == [410, 410, 302])
    deliver()
    assert sorted(receiver.types) == ["link.blocked"] * 3 + ["report.created"] * 4
    blocks = admin.get("/api/blocks").get_json()["data"]
    assert [(block["kind"], block["host"]) for block in blocks] == [
        ("link", "www.evil.example"),
        ("host", "evil.example"),
    ]
    for block in blocks:
        assert admin.post(f"/api/block/{block['id']}/end").status_code == 200
        assert admin.post(f"/api/block/{block['id']}/end").status_code == 404
    wait_until(lambda: [one.ask().status_code for one in (link, other, third)] == [302] * 3)


@pytest.mark.parametrize("url", ["https://co.uk/", "https://example.com/"])
def test_a_host_that_cannot_be_blocked_by_hand_is_not_blocked_by_a_decision(
    short: Make, app_with: Callable[..., Flask], sql: Sql, admin: Client, url: str
) -> None:
    """Our own host is below the second one."""
    service, link = app_with(base_url="https://go.example.com"), short(url=url)
    client = Client(service.test_client(), admin.key)
    answer = client.post(f"/api/report/{link.id}/decide", {"decision": "host"}, base_url="https://go.example.com")
    assert (answer.status_code, answer.get_json()["code"]) == (400, "invalid")
    assert answer.get_json()["message"].startswith("The host of the target must ")
    assert sql("SELECT count(*) FROM reports") == [{"count": 0}]


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.0.0.1", "10.3", "a b.example", "", "https://", "co.uk", "com", "::1", "xn--55qx5d.cn", "[::g]"],
)
def test_a_host_that_cannot_be_blocked_is_refused(admin: Client, host: str) -> None:
    assert admin.post("/api/block/add", {"host": host}).get_json()["code"] == "invalid"


def test_the_hosts_of_a_list_are_blocked_until_it_no_longer_has_them(
    app_with: Callable[..., Flask], alice: Client, admin: Client, sql: Sql
) -> None:
    body = LIST

    def answer(request: BaseHTTPRequestHandler) -> None:
        answering(body)(request) if body else request.send_error(500)

    def update() -> list[str]:
        sql("UPDATE service SET list_due = now() - interval '1 hour'")
        with service.app_context():
            blocklist.update()
        return [row["host"] for row in sql("SELECT host FROM reports WHERE ended IS NULL ORDER BY host")]

    with server(answer) as port:
        service = app_with(blocklist_url=f"http://127.0.0.1:{port}/hosts")
        link = Short(service, sql, alice.id, url=EVIL)
        admin.post("/api/block/add", {"host": "https://Bad.example/x"})
        assert update() == ["bad.example", "evil.example", "worse.example", "xn--bcher-kva.example"]
        assert link.ask().status_code == 410
        body = b""
        assert len(update()) == 4
        body = b"worse.example"
        assert update() == ["bad.example", "worse.example"]
    with app_with().app_context():
        blocklist.update()
    assert update() == ["bad.example"]


@pytest.mark.parametrize("host", ["2001:DB8:0::1", "[2001:db8::1]", "http://[2001:db8::1]:80/x"])
def test_an_ipv6_address_is_blocked_in_every_spelling(short: Make, admin: Client, alice: Client, host: str) -> None:
    link, other = short(url="https://[2001:db8::1]:8443/x"), short(url="https://[2001:db8::2]/")
    admin.add("/api/block/add", {"host": host})
    wait_until(lambda: [row.ask().status_code for row in (link, other)] == [410, 302])
    [block] = admin.get("/api/blocks").get_json()["data"]
    assert block["host"] == "[2001:db8::1]"
    answer = alice.post("/api/url/add", {"url": "http://[2001:0db8::0001]/y"})
    assert answer.get_json()["code"] == "target_blocked"
    assert admin.post(f"/api/block/{block['id']}/end").status_code == 200
    public_suffix_of_one = admin.add("/api/block/add", {"host": "github.io"})
    assert admin.post(f"/api/block/{public_suffix_of_one}/end").status_code == 200


def test_the_host_of_a_long_url_is_blocked_as_the_document_says(admin: Client) -> None:
    document = admin.http.get("/api/openapi.json").get_json()
    host = document["components"]["schemas"]["HostToBlock"]["properties"]["host"]
    url = "https://evil.example/".ljust(host["maxLength"], "x")
    block = admin.add("/api/block/add", {"host": url})
    assert [row["host"] for row in admin.get("/api/blocks").get_json()["data"]] == ["evil.example"]
    assert admin.post(f"/api/block/{block}/end").status_code == 200
    assert admin.post("/api/block/add", {"host": f"{url}x"}).get_json()["code"] == "invalid"


def test_an_administrator_chooses_which_host_of_several_targets_is_blocked(short: Make, admin: Client) -> None:
    """A benign URL must not hide where the variants lead."""
    variants = [{"name": name, "url": f"https://{name}.evil.example/x", "weight": 1} for name in "ab"]
    link, other = short(variants=variants), short(url="https://b.evil.example/")
    bare = short()
    for reported in (link, other, bare):
        report(reported, "phishing")
    rows = {row["link"]: row for row in admin.get("/api/reports").get_json()["data"]}
    hosts = ["example.com", "a.evil.example", "b.evil.example"]
    assert [target["host"] for target in rows[link.id]["targets"]] == hosts
    assert (rows[link.id]["hosts"], rows[link.id]["targets"][1]["longurl"]) == (3, variants[0]["url"])
    path = f"/api/report/{link.id}/decide"
    for host, code in ((None, 400), ("other.example", 400), ("co.uk", 400), ("evil.example", 200)):
        assert admin.post(path, {"decision": "host", "host": host}).status_code == code
    assert [row["link"] for row in admin.get("/api/reports").get_json()["data"]] == [bare.id]
    wait_until(lambda: [one.ask().status_code for one in (link, other, bare)] == [410, 410, 302])
    [block] = admin.get("/api/blocks").get_json()["data"]
    assert admin.post(f"/api/block/{block['id']}/end").status_code == 200


@pytest.fixture
def listed(app_with: Callable[..., Flask], sql: Sql) -> Iterator[Listed]:
    """Serve this text as the list, let the service read it, and return all blocked hosts."""
    texts = [b""]

    def read(text: bytes) -> list[str]:
        texts.append(text)
        sql("UPDATE service SET list_due = now() - interval '1 hour'")
        with service.app_context():
            blocklist.update()
        return blocked_hosts(sql)

    def answer(request: BaseHTTPRequestHandler) -> None:
        answering(texts[-1])(request)

    with server(answer) as port:
        service = app_with(blocklist_url=f"http://127.0.0.1:{port}/hosts")
        yield read


def blocked_hosts(sql: Sql) -> list[str]:
    return [row["host"] for row in sql("SELECT host FROM reports WHERE ended IS NULL ORDER BY host")]


HOSTS = b"# a hosts file\n0.0.0.0 localhost\n0.0.0.0 a.example b.example # two\nc.example\n"
ADBLOCK = b"! for ad blockers\n[Adblock Plus]\n||a.example^\n||b.example^$all\n*.c.example\n"
OTHER_RULES = b"""@@||d.example^\n||d.example^$third-party\n||d.example/path^\nd.example##.banner
d.example###banner\nhttps://d.example/path\n/d.example/\nsee d.example\n*.co.uk\n||co.uk^\nco.uk\n"""
MOVED = b"""<!doctype html>\n<html><head><title>List has moved</title></head>
<body><p>See <a href="https://new.example/">new.example</a> our new address</p></body></html>\n"""


@pytest.mark.parametrize("text", [HOSTS, ADBLOCK, HOSTS + OTHER_RULES, b"\xef\xbb\xbfa.example\n" + ADBLOCK], ids=str)
def test_these_lines_of_a_list_are_hosts(text: bytes, listed: Listed) -> None:
    assert listed(text) == ["a.example", "b.example", "c.example"]


@pytest.mark.parametrize("text", [MOVED, b"", b"# none today\n", OTHER_RULES], ids=str)
def test_a_list_without_a_host_keeps_those_of_the_last_one(
    text: bytes, listed: Listed, caplog: pytest.LogCaptureFixture
) -> None:
    assert listed(HOSTS) == listed(text) == ["a.example", "b.example", "c.example"]
    assert "the list of blocked hosts has no host, so the last list stays" in caplog.text
    assert listed(b"d.example") == ["d.example"]


@pytest.mark.browser
def test_a_visitor_reports_a_link_and_an_administrator_blocks_its_host(
    base: str, app: Flask, browser: Browser, alice: Client, admin: Client
) -> None:
    def enter(user: Client, path: str) -> None:
        browser.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        sign_in(browser, base, app, user.id)
        browser.open(f"{base}/console/{path}")

    alias = alice.post("/api/url/add", {"url": EVIL}).get_json()["shorturl"].rsplit("/", 1)[1]
    browser.open(f"{base}/{alias}+")
    browser.click("Report this link")
    browser.find("#reason").send_keys("It imitates")
    browser.find("#text").send_keys("It asks for my password.")
    browser.click("Report link")
    browser.wait_for_text("Thank you.")

    enter(admin, "administration/reports")
    assert "1 report (phishing)" in browser.text
    assert "It asks for my password." in browser.text
    browser.find("button[name=host]").click()
    browser.wait_for_text("The reports have been decided.")
    assert "There are no open reports." in browser.text
    wait_until(lambda: statuses(base, alias) == {410})
    enter(alice, "links")
    browser.click("evil.example/x")
    browser.wait_for_text(", the host of a target. Visitors who would go there see a page that says so.")

    enter(admin, "administration/reports")
    browser.find("form[action$=unblock] button").click()
    browser.wait_for_text("Unblocked")
    wait_until(lambda: statuses(base, alias) == {302})
