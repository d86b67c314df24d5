"""Security headers of every page, and the forms that the service refuses."""

import re
from collections.abc import Callable

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.conftest import Client
from tests.support.pages import POLICY, login_path


@pytest.mark.parametrize("path", ["/", "/login", "/account", "/nowhere", "/avatar/bio/alice.png", "/favicon.ico"])
def test_no_external_script_runs_and_no_site_frames_a_page(app: Flask, path: str) -> None:
    with app.test_client().get(path) as answer:
        own_script = r"(; script-src 'nonce-[A-Za-z0-9_-]+')?"
        assert re.fullmatch(re.escape(POLICY) + own_script, answer.headers["Content-Security-Policy"])
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [("https://go.example.org", "max-age=31536000"), ("http://go.example.org", None)],
)
def test_browsers_must_stay_on_https(app_with: Callable[..., Flask], base_url: str, expected: str) -> None:
    browser = app_with(base_url=base_url, serve_loopback="1").test_client()
    for path in ("/", "/login", "/nowhere/at/all"):
        assert browser.get(path).headers.get("Strict-Transport-Security") == expected


def test_responses_of_the_api_are_not_sniffed(anonymous: Client) -> None:
    headers = anonymous.get("/api/account").headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Content-Security-Policy" not in headers


def test_a_script_needs_the_nonce_of_its_own_response(app: Flask, admin: Client, alice: Client) -> None:
    def nonce() -> str:
        page = app.test_client().get(login_path(admin, alice))
        found = re.findall('nonce="(.+?)"', page.text)
        assert page.headers["Content-Security-Policy"] == f"{POLICY}; script-src 'nonce-{found[0]}'"
        assert page.text.count("<script") == len(found) == 1
        return str(found[0])

    assert nonce() != nonce()


@pytest.mark.parametrize(
    ("base_url", "policy"),
    [
        ("https://go.example.org", "no-referrer"),
        ("http://127.0.0.1:5000", "no-referrer"),
        ("http://localhost:5000", "no-referrer"),
        ("http://go.example.org", "same-origin"),
    ],
)
def test_private_pages_are_not_cached_and_send_no_referrer(
    app_with: Callable[..., Flask], app: Flask, base_url: str, policy: str
) -> None:
    browser = app_with(base_url=base_url, serve_loopback="1").test_client()
    for path in ("/login", "/login/token", "/account", "/account/key"):
        headers = browser.get(path).headers
        assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", policy)


def sign_in(app: Flask, path: str, **headers: str) -> TestResponse:
    return app.test_client().post(path, headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:5001"},
        {"Origin": "https://127.0.0.1:5000"},
        {"Origin": "http://127.0.0.1:5000.evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:5000", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "null", "Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": ""},
    ],
)
def test_a_form_of_another_site_is_refused_and_consumes_no_link(
    app: Flask, admin: Client, alice: Client, headers: dict[str, str]
) -> None:
    path = login_path(admin, alice)
    refused = sign_in(app, path, **headers)
    assert refused.status_code == 403
    assert "Set-Cookie" not in refused.headers
    assert "This form was sent from another website." in refused.text
    assert sign_in(app, path).status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://127.0.0.1:5000"},
        {"Origin": "http://localhost"},
        {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "http://localhost:5000", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_a_form_of_our_own_site_is_accepted(app: Flask, admin: Client, alice: Client, headers: dict[str, str]) -> None:
    assert sign_in(app, login_path(admin, alice), **headers).status_code == 303


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}])
def test_every_page_with_a_form_refuses_forms_of_other_sites(app: Flask, headers: dict[str, str]) -> None:
    others = ("/api/", "/c/")  # that scripts of other pages call, without cookies
    posts = [
        rule for rule in app.url_map.iter_rules() if "POST" in (rule.methods or ()) and not rule.rule.startswith(others)
    ]
    assert len(posts) >= 6
    for rule in posts:
        with app.test_request_context():
            path = rule.build(dict.fromkeys(rule.arguments, "x") | {"type": "links"}, append_unknown=False)
        assert path is not None
        assert sign_in(app, path[1], **headers).status_code == 403


def test_the_api_accepts_calls_from_other_sites_because_it_uses_no_cookies(alice: Client) -> None:
    pixel = {"type": "bing", "name": "Shop", "tag": "1"}
    answer = alice.post(
        "/api/pixel/add", pixel, headers={"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site"}
    )
    assert answer.status_code == 200


def session_cookies(answer: TestResponse) -> list[str]:
    """Return all cookies except that of a known browser (tests/test_login_limits.py)."""
    return [cookie for cookie in answer.headers.getlist("Set-Cookie") if "linkmgr_known=" not in cookie]


def test_the_cookie_is_hidden_from_scripts_and_other_sites(
    app_with: Callable[..., Flask], app: Flask, admin: Client, alice: Client
) -> None:
    [plain] = session_cookies(sign_in(app, login_path(admin, alice)))
    assert plain.startswith("linkmgr=")
    assert "; HttpOnly; Path=/; SameSite=Lax" in plain
    assert "Secure" not in plain
    behind_https = app_with(base_url="https://go.example.org", serve_loopback="1")
    [secure] = session_cookies(sign_in(behind_https, login_path(admin, alice)))
    assert secure.startswith("__Host-linkmgr=")
    assert "; Secure; HttpOnly; Path=/; SameSite=Lax" in secure
    assert "Domain" not in secure


def test_other_responses_set_no_cookie(app: Flask, admin: Client, alice: Client) -> None:
    browser = app.test_client()
    browser.post(login_path(admin, alice))
    for path in ("/avatar/alice.png", "/static/style.css", "/nowhere", "/account"):
        with browser.get(path) as answer:
            assert "Set-Cookie" not in answer.headers
