"""The service behind nginx with the configuration in deploy/nginx."""

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from linkmgr.core.error_catalogue import CATALOGUE
from linkmgr.core.web import middleware
from tests.conftest import BASE_URL, MANY, ROOT, Client, check, structured_list
from tests.support import acme, nginx
from tests.support.factories import Sql
from tests.support.nginx import BRANDED, OWN, SERVED, Nginx
from tests.support.servers import free_port, serving
from tests.support.targets import wait_until

pytestmark = pytest.mark.services

TOKEN = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE"
PIXEL = {"type": "bing", "name": "n", "tag": "t"}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of the service behind nginx."""
    return tmp_path_factory.mktemp("service") / "log"


def logged(log: Path) -> list[dict[str, Any]]:
    """Return the logged requests. Each is written after its response."""
    return [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line[0] + line[-1] == "{\n"]


@pytest.fixture(scope="module")
def port(app: Flask, dsn: str, log: Path) -> Iterator[int]:
    port, data_dir = free_port(), app.extensions["linkmgr_settings"].data_dir
    settings = {"database_url": dsn, "data_dir": data_dir, "base_url": BASE_URL, "domain_check": "off"}
    with serving(port, log, "--workers", "1", rate_limit=MANY, trusted_proxies="1", **settings):
        yield port


@pytest.fixture(scope="module")
def front(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    with nginx.running(tmp_path_factory.mktemp("nginx"), port) as started:
        yield started


def failed(answer: TestResponse, status: int, code: str) -> None:
    """Check an error of nginx itself under /api, which meets all rules of the service's own errors."""
    body = answer.get_json()
    assert (answer.status_code, answer.mimetype) == (status, "application/json")
    assert body == {"error": 1, "code": code, "message": body["message"]}
    assert body["message"].endswith(".")
    assert code in CATALOGUE
    assert (answer.headers["X-RateLimit-Limit"], answer.headers["X-RateLimit-Remaining"]) == ("30", "0")
    assert answer.headers["X-RateLimit-Reset"].isdigit()
    assert structured_list(answer.headers["RateLimit-Policy"]) == [("default", {"q": 30})]
    assert structured_list(answer.headers["RateLimit"]) == [("default", {"r": 0})]
    assert ("Retry-After" in answer.headers) == (status == 503)
    assert answer.headers["X-Request-Id"]


def test_errors_of_nginx_itself_are_json_for_programs_and_a_page_for_browsers(front: Nginx) -> None:
    large, long = "x" * (64 * 1024 + 1), "a" * 9000
    for tls in (True, False):
        name = OWN if tls else BRANDED
        refused = front.ask("/api/pixel/add", name, method="POST", body=large, tls=tls)
        failed(refused, 413, "too_large")
        assert refused.headers.get("Access-Control-Allow-Origin") == ("*" if name == OWN else None)
        assert refused.headers.get("Access-Control-Expose-Headers") == (middleware.CORS[1][1] if name == OWN else None)
        failed(front.ask(f"/api/urls?q={long}", name, tls=tls), 414, "address_too_long")
        failed(front.ask("/api/urls", name, headers={"X-Long": long}, tls=tls), 400, "bad_request")
        failed(front.ask("/api/urls", name, method="TRACE", tls=tls), 405, "bad_request")
        morse = front.ask("/api/urls", name, headers={"Transfer-Encoding": "morse"}, tls=tls)
        failed(morse, 501, "not_implemented")
        assert morse.get_json()["message"] == CATALOGUE["not_implemented"][1]
        page = front.ask("/login", name, method="POST", body=large, tls=tls)
        assert (page.status_code, page.mimetype) == (413, "text/html")
        assert "64 KiB" in page.text
    largest = front.ask("/api/pixel/add", method="POST", body=" " * 64 * 1024, headers=SERVED)
    assert largest.status_code == 401


def test_a_file_to_import_may_be_larger(front: Nginx, alice: Client) -> None:
    headers = {"Authorization": f"Bearer {alice.key}", "Content-Type": "text/csv"} | SERVED
    file = "longUrl,shortCode\r\n" + "".join(f"https://example.com/{n},row-{n}\r\n" for n in range(100_000))
    answer = front.ask("/api/imports", method="POST", body=file, headers=headers)
    assert (answer.status_code, answer.get_json()["error"]) == (200, 0)
    refused = front.ask("/api/imports", method="POST", headers=headers | {"Content-Length": str(66 << 20)})
    failed(refused, 413, "file_too_large")
    assert refused.get_json()["message"] == CATALOGUE["file_too_large"][1]


@pytest.mark.parametrize("path", ["/api/urls/bulk", "/api/urls/bulk/delete", "/api/qr/bulk"])
def test_a_bulk_request_may_be_larger(front: Nginx, path: str) -> None:
    largest = " " * (2 << 20)
    assert front.ask(path, method="POST", body=largest, headers=SERVED).status_code == 401
    refused = front.ask(path, method="POST", body=largest + " ", headers=SERVED)
    failed(refused, 413, "bulk_too_large")
    assert refused.get_json()["message"] == CATALOGUE["bulk_too_large"][1]
    failed(front.ask(f"{path}x", method="POST", body=largest, headers=SERVED), 413, "too_large")
    assert front.ask(path, BRANDED, method="POST", body="{}", tls=False).status_code == 404


def test_a_preflight_reaches_the_service(front: Nginx) -> None:
    headers = {"Origin": "https://app.example.com", "Access-Control-Request-Method": "PUT"} | SERVED
    answer = front.ask("/api/pixel/1/update", method="OPTIONS", headers=headers)
    assert (answer.status_code, answer.headers["Access-Control-Allow-Methods"]) == (204, "PUT")
    assert answer.headers.getlist("Access-Control-Allow-Origin") == ["*"]


def test_a_browser_with_http_2_gets_the_same(front: Nginx) -> None:
    if not shutil.which("curl"):
        pytest.skip("curl is missing: apt-get install curl")
    asked = ["curl", "--silent", "--insecure", "--http2", "--connect-to", f"::127.0.0.1:{front.https}"]
    output_options = ["--data-binary", "@-", "--write-out", "\n%{http_version} %{http_code} %{content_type}"]
    printed = subprocess.run(
        [*asked, *output_options, f"https://{OWN}/api/pixel/add"],
        input="x" * (64 * 1024 + 1),
        capture_output=True,
        text=True,
        check=True,
    )
    body, told_of = printed.stdout.splitlines()
    assert told_of == "2 413 application/json"
    assert json.loads(body)["code"] == "too_large"


def test_an_unavailable_service_is_a_503_with_retry_after(tmp_path: Path) -> None:
    with nginx.running(tmp_path, free_port()) as front:
        for method in ("GET", "POST"):
            failed(front.ask("/api/account", method=method), 503, "unavailable")
        page = front.ask("/login")
        assert (page.status_code, page.mimetype, page.headers["Retry-After"]) == (503, "text/html", "2")


def test_a_request_is_retried_on_another_service_unless_it_may_have_been_executed(
    port: int, tmp_path: Path, alice: Client
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broken:
        ending = threading.Thread(target=break_off, args=(broken,))
        ending.start()
        try:
            with nginx.running(tmp_path, broken.getsockname()[1], port) as front:
                caller = SERVED | {"Authorization": f"Bearer {alice.key}"}
                made = [
                    front.ask("/api/pixel/add", method="POST", body=json.dumps(PIXEL), headers=caller).status_code
                    for _ in range(4)
                ]
                read = [front.ask("/api/pixels", headers=caller) for _ in range(4)]
        finally:
            broken.shutdown(socket.SHUT_RDWR)
            ending.join()
    assert set(made) == {200, 503}
    assert {answer.status_code for answer in read} == {200}
    assert read[-1].get_json()["data"]["result"] == made.count(200)


def break_off(server: socket.socket) -> None:
    """Read requests and close the connection without a response."""
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.recv(65536)


def test_forged_headers_do_not_change_the_client_address(front: Nginx, sql: Sql) -> None:
    for number in range(5):
        address = f"203.0.113.{number}"
        forged = {"X-Forwarded-For": address, "Forwarded": f"for={address}", "X-Real-IP": address}
        forged |= {"X-Forwarded-Proto": "http", "X-Forwarded-Ssl": "off", "X-Forwarded-Host": "evil.example"}
        check(front.open("/api/account", headers=forged))
    [counted] = sql("SELECT bucket, count FROM rate_windows")
    assert "127.0.0.1" in counted["bucket"]
    assert counted["count"] == 5


def test_behind_a_cdn_wrong_passwords_count_for_their_visitor_only(port: int, tmp_path: Path) -> None:
    documented = (ROOT / "deploy/README.md").read_text()
    [block] = re.findall(r"\n\n((?:    .*\n)+)", documented.partition("## Behind a CDN")[2].partition("## ")[0])
    (tmp_path / "cdn.conf").write_text(block.replace("192.0.2.0/24", "127.0.0.1"))
    with nginx.running(tmp_path, port) as front:

        def sign_in(forged: int, visitor: str) -> int:
            sent = {"X-Forwarded-For": f"203.0.113.{forged}, {visitor}"} | SERVED
            headers = sent | {"Content-Type": "application/x-www-form-urlencoded"}
            return front.ask("/login", method="POST", body="email=nobody&password=x", headers=headers).status_code

        assert [sign_in(forged, "198.51.100.7") for forged in range(11)] == [401] * 10 + [429]
        assert sign_in(0, "198.51.100.8") == 401


def test_a_request_has_the_same_id_everywhere(front: Nginx, log: Path) -> None:
    given = front.ask("/api/account", headers={"X-Request-Id": "of-the.client"}).headers["X-Request-Id"]
    made = front.ask("/api/account", headers={"X-Request-Id": "not plain"}).headers["X-Request-Id"]
    assert given == "of-the.client"
    for secret in (f"linkmgr_{TOKEN}", TOKEN, "linkmgr_x"):
        for method in ("GET", "TRACE"):  # nginx itself rejects the latter
            answer = front.ask("/api/account", method=method, headers={"X-Request-Id": secret})
            assert secret not in str(answer.headers)
    wait_until(lambda: [line["request"] for line in logged(log)][-5:-3] == [given, made])


def test_nginx_logs_no_login_link(front: Nginx) -> None:
    """The service logs each request without its secrets."""
    assert front.ask(f"/login/{TOKEN}", headers=SERVED).status_code == 410
    log = front.folder / "access.log"
    assert not log.exists() or not log.read_text()


def test_a_branded_domain_is_served_by_both_schemes_with_its_own_certificate(front: Nginx, alice: Client) -> None:
    alice.add("/api/domain/add", {"domain": f"https://{BRANDED}", "redirectroot": "https://example.com/"})
    for tls in (True, False):
        answer = front.ask("/", BRANDED, tls=tls)
        assert (answer.status_code, answer.headers["Location"]) == (302, "https://example.com/")
        assert front.ask("/api/account", BRANDED, tls=tls).status_code == 404
        assert front.ask("/metrics", BRANDED, tls=tls).status_code == 404


def test_a_certificate_is_issued_and_renewed_by_an_acme_server_and_used_at_once(
    front: Nginx, alice: Client, tmp_path: Path
) -> None:
    later = "later.example.net"
    alice.add("/api/domain/add", {"domain": f"https://{later}", "redirectroot": "https://example.com/"})
    with socket.create_connection(("127.0.0.1", front.https)) as plain, pytest.raises(ssl.SSLError, match="alert"):
        ssl.create_default_context().wrap_socket(plain, server_hostname=later)
    (tmp_path / "a clone").symlink_to(front.folder / "linkmgr")
    installed = tmp_path / "a clone/certificates" / f"{later}.pem"
    own = {"CERTIFICATES": str(installed.parent), "NGINX_GROUP": str(os.getgid())}
    own |= {"CHALLENGES": str(front.folder / "challenges"), "LINEAGES": str(tmp_path / "config/live")}
    with acme.authority(tmp_path, front.http) as certbot:

        def run(*command: str, **environment: str) -> str:
            subprocess.run(command, env=certbot | environment, check=True, umask=0o027)
            assert front.ask("/", later).status_code == 302
            return installed.read_text()

        script = str(ROOT / "deploy/certificate")
        issued = run(script, later, **own)
        renewed = run("certbot", "renew", "--force-renewal", "--no-random-sleep-on-renew")
        installed.unlink()
        again = run(script, later, **own)
    assert issued != renewed == again
    assert (installed.parent.stat().st_mode & 0o777, installed.stat().st_mode & 0o777) == (0o750, 0o640)
    assert [path.name for path in installed.parent.glob("*later*")] == [installed.name]


def test_our_own_host_is_served_over_https_only_except_for_challenges(front: Nginx) -> None:
    for method in ("GET", "POST"):
        answer = front.ask("/login?next=1", method=method, tls=False)
        assert (answer.status_code, answer.headers["Location"]) == (308, f"https://{OWN}/login?next=1")
    for host in (OWN, f"{OWN}:80", OWN.upper(), f"{OWN}."):  # the service gets Host, not the host of the URL
        answer = front.ask(f"http://{BRANDED}/api/account", tls=False, headers={"Host": host})
        assert answer.status_code == 308, host
    assert front.ask("/qr/abcd", tls=False).headers["Location"] == f"https://{OWN}/qr/abcd"
    folder = front.folder / "challenges/.well-known/acme-challenge"
    folder.mkdir(parents=True)
    (folder / "token").write_text("proof")
    for name in (OWN, BRANDED):
        assert front.ask("/.well-known/acme-challenge/token", name, tls=False).text == "proof"
        assert len(front.ask("/.well-known/linkmgr/token", name, tls=False).text) == 64 or name == OWN


def test_an_image_is_cached_and_revalidated_each_time(front: Nginx, alice: Client, log: Path) -> None:
    made = alice.post("/api/qr/add", {"type": "wifi", "data": {"ssid": "home"}}).get_json()
    path = made["link"].removeprefix(BASE_URL)

    def statuses() -> list[int]:
        return [line["status"] for line in logged(log) if line["path"] == path]

    first, second = front.ask(path, headers=SERVED), front.ask(path, headers=SERVED)
    assert first.data == second.data == alice.http.get(path).data
    wait_until(lambda: statuses() == [200, 304])  # the second was revalidated, and sent by nginx
    assert front.ask(path, headers=SERVED | {"If-None-Match": first.headers["ETag"]}).status_code == 304
    assert second.headers["Cache-Control"] == "no-cache"
    assert "X-Accel-Expires" not in second.headers
    alice.put(f"/api/qr/{made['id']}/update", {"data": {"ssid": "away"}})
    third = front.ask(path, headers=SERVED)
    assert third.data == alice.http.get(path).data != first.data
    wait_until(lambda: statuses() == [200, 304, 304, 200])
    alice.delete(f"/api/qr/{made['id']}/delete")
    assert front.ask(path, headers=SERVED).status_code == 404
