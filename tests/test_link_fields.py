"""URL fields: each host has one accepted spelling."""

from collections.abc import Callable
from itertools import cycle

import pytest
from flask import Flask
from marshmallow import ValidationError

from linkmgr.core.fields.urls import normalize_target
from tests.conftest import Client
from tests.support.browser import Browser


@pytest.mark.parametrize(
    "host",
    ["127.1", "2130706433", "0x7f.0.0.1", "0x7f000001", "127.0.0.01", "0177.0.0.1", "x.0x", "example.1", "9.9.9"],
)
def test_an_alternative_spelling_of_an_ip_address_is_rejected(app: Flask, host: str) -> None:
    with app.app_context(), pytest.raises(ValidationError, match="must contain a host name, or an IPv4 address"):
        normalize_target(f"http://{host}/")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1.", "\uff11\uff12\uff17.0.0.1"])
def test_the_url_of_the_service_is_rejected(app: Flask, host: str) -> None:
    with app.app_context(), pytest.raises(ValidationError, match="must not point to this service"):
        normalize_target(f"http://{host}/")


@pytest.mark.parametrize("host", ["9.9.9.9", "[2606:4700::1111]", "[::ffff:9.9.9.9]", "1.example.com", "0x7f.example"])
def test_names_and_addresses_in_canonical_form_are_accepted(app: Flask, host: str) -> None:
    with app.app_context():
        assert normalize_target(f"http://{host}/").startswith("http://")


def test_an_ipv4_mapped_ipv6_address_is_the_ipv4_address(app: Flask) -> None:
    with app.app_context():
        assert normalize_target("https://[::ffff:192.0.2.7]/x") == "https://192.0.2.7/x"
        with pytest.raises(ValidationError, match="must not point to this service"):
            normalize_target("http://[::ffff:127.0.0.1]:5000/")


LOOPBACK = ["localhost", "app.LOCALHOST", "localhost.", "127.0.0.1", "127.0.0.2", "0.0.0.0", "[::1]", "[::]"]  # noqa: S104
LOOPBACK += ["[0:0::1]", "[::ffff:127.0.0.1]", "\uff4cocalhost"]


BASE_URLS = cycle(["http://127.0.0.1:5000", "http://localhost:5000", "http://[::1]:5000"])


@pytest.mark.parametrize(("host", "base_url"), list(zip(LOOPBACK, BASE_URLS, strict=False)))
def test_while_the_base_url_is_a_loopback_address_all_of_them_are_rejected(
    app_with: Callable[..., Flask], register: Callable[..., Client], host: str, base_url: str
) -> None:
    alice = register("alice", via=app_with(base_url=base_url))
    problem = "must not point to this service."
    for url in (f"http://{host}/x", f"https://{host}:8443"):
        refused = alice.post("/api/url/add", {"url": url})
        assert (refused.status_code, refused.get_json()["message"]) == (400, f"url {problem}")
        for member in ("redirectroot", "redirect404"):
            refused = alice.post("/api/domain/add", {"domain": "https://links.example.net", member: url})
            assert (refused.status_code, refused.get_json()["message"]) == (400, f"{member} {problem}")
    made = alice.post(
        "/api/url/add", {"url": "https://example.com/", "domain": f"http://{host}:5000", "custom": "own1"}
    )
    assert made.get_json()["shorturl"] == f"{base_url}/own1"


@pytest.mark.parametrize("host", LOOPBACK)
def test_under_a_public_base_url_loopback_addresses_are_accepted(app_with: Callable[..., Flask], host: str) -> None:
    with app_with(base_url="https://go.example.org").app_context():
        assert normalize_target(f"http://{host}:3000/").endswith(":3000/")
    with (
        app_with(base_url="https://go.example.org", serve_loopback="1").app_context(),
        pytest.raises(ValidationError, match="must not point to this service"),
    ):
        normalize_target(f"http://{host}:3000/")


# Names that are invalid under IDNA 2008 or as host names, but that browsers look up.
TAKEN = {
    "my_bucket.s3.amazonaws.com": "my_bucket.s3.amazonaws.com",
    "r4---sn-x.googlevideo.com": "r4---sn-x.googlevideo.com",
    "_dmarc.Example.com": "_dmarc.example.com",
    "-a-.example": "-a-.example",
    "xn--i-7iq.ws": "xn--i-7iq.ws",
    "i\u2764.ws": "xn--i-7iq.ws",
    "I\u2764\ufe0f.ws": "xn--i-7iq.ws",
    "\U0001f4a9.la": "xn--ls8h.la",
    "stra\xdfe.example": "xn--strae-oqa.example",
    "B\xdccher.example": "xn--bcher-kva.example",
    "\uff42\u3002example": "b.example",
    "\u05d0\u05d1.example": "xn--4dbc.example",
    "\u30fb.example": "xn--vek.example",
    "a" * 63 + ".example": "a" * 63 + ".example",
}
REFUSED = ["a%62.example", "a<b.example", "a>b.example", "a^b.example", "a|b.example", "a[b.example"]
REFUSED += ["xn--\xfc.example", "\u2100.example", "\u0301a.example"]
REFUSED += ["a\u200db.example", "\xad", "\ufffe.example", "\ud800.example", "\u05d0a.example", "0\u05d0.example"]
# Chromium accepts these, but the URL standard does not, no name server has them, or they would need escaping elsewhere.
STRICTER = [
    "xn--.example",
    "xn--a.example",
    "xn--i-7iq2.ws",
    "xn--a-.example",
    "a..example",
    "\u05d0..example",
    "\U00011f04\u200d.example",
    ".example",
    "a" * 64 + ".example",
    "a." * 127 + "aa",
    "\u4e00" * 1000 + ".example",
    "a;b.example",
    "a'b.example",
    "a!b.example",
]


@pytest.mark.parametrize(("host", "kept"), TAKEN.items())
def test_a_host_name_that_browsers_look_up_is_accepted(alice: Client, host: str, kept: str) -> None:
    url = f"https://{host}/x"
    link_id = alice.add("/api/url/add", {"url": url, "metaimage": url})
    assert alice.get(f"/api/url/{link_id}").get_json()["details"]["longurl"] == f"https://{kept}/x"
    domain_id = alice.add("/api/domain/add", {"domain": "https://links.example.net", "redirectroot": url})
    assert alice.get(f"/api/domain/{domain_id}").get_json()["data"]["redirectroot"] == f"https://{kept}/x"


@pytest.mark.parametrize("host", [*REFUSED, *STRICTER])
def test_a_host_name_that_browsers_do_not_look_up_is_rejected(app: Flask, host: str) -> None:
    with app.app_context(), pytest.raises(ValidationError, match=r"must (contain a valid host name|be a valid URL)"):
        normalize_target(f"https://{host}/")


@pytest.mark.browser
def test_chromium_agrees(browser: Browser) -> None:
    def parsed(host: str) -> str | None:
        script = "try { return new URL(arguments[0]).hostname } catch { return null }"
        answer = browser.driver.execute_script(script, f"https://{host}/")
        return None if answer is None else str(answer)

    assert {host: parsed(host) for host in TAKEN} == TAKEN
    refused = [host for host in REFUSED if "%" not in host and "\ud800" not in host]  # Selenium sends UTF-8
    assert {host: parsed(host) for host in refused} == dict.fromkeys(refused)
