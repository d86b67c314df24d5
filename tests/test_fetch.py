import ssl
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pycurl
import pytest

from linkmgr.core.errors import AppError
from linkmgr.core.outbound import fetch
from tests.support.certificates import certificate
from tests.support.foreign import Answer, Publish, answering, publish, resolve, server
from tests.support.servers import free_port

NAME = "go.example.com"
URL = f"http://{NAME}/"
REFUSED = "is not allowed. Use a public host, on port 80 or 443."


def refusal(url: str) -> str:
    with pytest.raises(AppError) as refused:
        fetch.fetch(url)
    assert refused.value.status == 400
    return refused.value.message


def sent_on_to(location: str) -> Answer:
    return answering(b"", 302, Location=location)


def test_a_public_page_is_fetched(web: Publish) -> None:
    web(answering(b"hello"))
    assert fetch.fetch(URL) == b"hello"


def test_an_international_name_is_fetched(web: Publish) -> None:
    web(answering(b"hello"), "xn--bcher-kva.example.com:80")
    assert fetch.fetch("http://b\u00fccher.example.com/\u00e4") == b"hello"


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254"),  # noqa: S104
        *("100.64.0.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "192.88.99.1", "224.0.0.1", "240.0.0.1"),
        *("255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0"),
        *("fc00::1", "fec0::1", "ff02::1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2001::1", "2001:db8::1"),
        *("2002:7f00:1::", "3fff::1", "5f00::1", "100::1"),
    ],
)
def test_a_private_address_is_not_allowed(address: str) -> None:
    assert not fetch.is_allowed(address, 80)


@pytest.mark.parametrize("address", ["9.9.9.9", "::ffff:9.9.9.9", "2606:4700::1111", "2a00:1450::1"])
def test_a_public_address_is_allowed_on_the_ports_80_and_443(address: str) -> None:
    ports = (1, 22, 79, 80, 81, 442, 443, 444, 8080, 65535)
    assert [port for port in ports if fetch.is_allowed(address, port)] == [80, 443]


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "localhost"),
        *("[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
        *("169.254.169.254", "10.0.0.1", "0", "\uff11\uff12\uff17.0.0.1"),
    ],
)
def test_no_spelling_of_a_private_address_is_allowed(host: str) -> None:
    assert REFUSED in refusal(f"http://{host}/")


def test_the_ports_of_other_services_are_rejected() -> None:
    assert REFUSED in refusal("http://9.9.9.9:22/")


def test_a_name_that_resolves_to_a_private_address_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, go_example_com="127.0.0.1")
    assert refusal("http://go.example.com/") == f"Fetching from go.example.com {REFUSED}"


def test_the_address_is_checked_when_the_socket_is_opened(web: Publish, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve a public name to a private address later. A check before the connection would miss it."""
    port = web(answering(b"secret"))
    asked = []

    def once(address: str, at: int) -> bool:
        asked.append((address, at))
        return len(asked) == 1

    monkeypatch.setattr(fetch, "is_allowed", once)
    assert fetch.fetch(URL) == b"secret"
    assert REFUSED in refusal(URL)
    assert asked == [("127.0.0.1", port)] * 2


@pytest.mark.parametrize(
    "location",
    [
        *("http://127.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[::1]/", "//127.0.0.1/"),
        *(
            "http://inside.example.com/",
            "http://9.9.9.9:6379/",
            "file:///etc/passwd",
            "gopher://9.9.9.9/",
            "ftp://9.9.9.9/",
        ),
    ],
)
def test_a_redirect_to_a_forbidden_url_is_rejected(
    web: Publish, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    web(sent_on_to(location))
    resolve(monkeypatch, inside_example_com="10.0.0.1")
    assert REFUSED in refusal(URL)


def counting_down(request: BaseHTTPRequestHandler) -> None:
    left = int(request.path[1:])
    (answering(b"arrived") if left == 0 else sent_on_to(f"/{left - 1}"))(request)


def test_three_redirects_are_followed_and_no_more(web: Publish) -> None:
    web(counting_down)
    assert fetch.fetch(URL + "3") == b"arrived"
    assert refusal(URL + "4") == (f"{NAME} responded with status 302 instead of 200. At most 3 redirects are followed.")


@pytest.mark.parametrize("status", [204, 304, 404, 500])
def test_any_status_other_than_200_is_an_error(web: Publish, status: int) -> None:
    web(answering(b"", status))
    assert f"responded with status {status} instead of 200" in refusal(URL)


def test_a_fetch_that_takes_too_long_is_aborted(web: Publish, monkeypatch: pytest.MonkeyPatch) -> None:
    def trickle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        for _ in range(20):
            request.wfile.write(b".")
            time.sleep(0.05)

    web(trickle)
    monkeypatch.setattr(fetch, "DEADLINE", 0.3)
    assert refusal(URL) == f"{NAME} did not respond within 0.3 seconds. Try again later."


def test_redirects_do_not_extend_the_timeout(web: Publish, monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(request: BaseHTTPRequestHandler) -> None:
        time.sleep(0.15)
        counting_down(request)

    web(slowly)
    monkeypatch.setattr(fetch, "DEADLINE", 0.35)
    assert "did not respond within" in refusal(URL + "3")


def test_a_response_that_is_too_large_is_aborted(web: Publish) -> None:
    web(answering(b"x" * fetch.MAX_BYTES))
    assert len(fetch.fetch(URL)) == fetch.MAX_BYTES
    web(answering(b"x" * (fetch.MAX_BYTES + 1)))
    assert refusal(URL) == f"The response from {NAME} is too large. The limit is 1 MiB."


def test_a_response_without_a_size_is_aborted_at_the_limit(web: Publish) -> None:
    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        while True:
            request.wfile.write(b"x" * 65536)

    web(endless)
    assert "is too large. The limit is 1 MiB." in refusal(URL)


def test_a_server_that_is_down_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    publish(monkeypatch, {f"{NAME}:80": free_port()})
    assert refusal(URL) == f"Could not connect to {NAME}. Check that its web server is reachable."


def test_a_name_without_an_address_is_reported() -> None:
    # libcurl never queries DNS for these.
    sentence = "The host name nowhere.onion does not resolve to an IP address. Check its DNS records."
    assert refusal("http://nowhere.onion/") == sentence


def test_the_proxy_of_the_environment_is_not_used(web: Publish, monkeypatch: pytest.MonkeyPatch) -> None:
    web(answering(b"direct"))
    for name in ("http_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert fetch.fetch(URL) == b"direct"


@pytest.mark.parametrize(
    "url", ["", "x", "ftp://example.com/", "http://", "http://a b/", "http://u:p@example.com/", "http://[::1"]
)
def test_an_invalid_url_is_rejected(url: str) -> None:
    assert refusal(url).startswith("The URL must ")


@pytest.fixture
def tls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ssl.SSLContext:
    """A server with a trusted certificate."""
    context = certificate(tmp_path, NAME)
    monkeypatch.setitem(fetch.OPTIONS, pycurl.CAINFO, str(tmp_path / "certificate.pem"))
    return context


def test_the_certificate_of_a_server_is_checked(
    web: Publish, monkeypatch: pytest.MonkeyPatch, tls: ssl.SSLContext
) -> None:
    web(answering(b"hello"), f"{NAME}:443", tls=tls)
    assert fetch.fetch(f"https://{NAME}/") == b"hello"
    monkeypatch.delitem(fetch.OPTIONS, pycurl.CAINFO)
    assert refusal(f"https://{NAME}/") == f"Could not connect to {NAME}. Check that its web server is reachable."


@pytest.mark.parametrize(
    ("location", "followed"),
    [
        (f"https://{NAME}/a?b", True),
        (f"http://{NAME}/a?b", False),
        (f"https://{NAME}/", False),
        ("https://other.example.com/a?b", False),
        ("/a", False),
    ],
)
def test_redirects_can_be_restricted_to_the_same_url_under_https(
    monkeypatch: pytest.MonkeyPatch, tls: ssl.SSLContext, location: str, followed: bool
) -> None:
    with server(sent_on_to(location)) as plain, server(answering(b"hello"), tls=tls) as secure:
        publish(monkeypatch, {f"{NAME}:80": plain, f"{NAME}:443": secure, "other.example.com:443": secure})
        attempt = fetch.Fetch(f"{URL}a?b", upgrade_only=True)
        if followed:
            assert attempt.body() == b"hello"
        else:
            with pytest.raises(AppError, match="responded with status 302"):
                attempt.body()
