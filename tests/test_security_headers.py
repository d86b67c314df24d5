"""What every page tells the browser, and which forms are refused."""

import re
from collections.abc import Callable

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.conftest import Client

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def link(admin: Client, user: Client) -> str:
    """The path of a login link."""
    url: str = admin.get(f"/api/user/login/{user.id}").get_json()["url"]
    return "/login/" + url.rsplit("/", 1)[1]


@pytest.mark.parametrize("path", ["/", "/login", "/account", "/nowhere", "/avatar/alice.png", "/favicon.ico"])
def test_nothing_foreign_runs_or_frames_a_page(app: Flask, path: str) -> None:
    with app.test_client().get(path) as answer:
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [("https://go.example.org", "max-age=31536000"), ("http://go.example.org", None)],
)
def test_browsers_are_told_to_stay_with_https(make_app: Callable[..., Flask], base_url: str, expected: str) -> None:
    browser = make_app(base_url=base_url, serve_loopback="1").test_client()
    for path in ("/", "/login", "/nowhere/at/all"):
        assert browser.get(path).headers.get("Strict-Transport-Security") == expected


def test_answers_of_the_api_are_not_sniffed(anonymous: Client) -> None:
    headers = anonymous.get("/api/account").headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Content-Security-Policy" not in headers


def test_a_script_runs_by_a_nonce_that_no_other_answer_has(app: Flask, admin: Client, alice: Client) -> None:
    def nonce() -> str:
        page = app.test_client().get(link(admin, alice))
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
def test_private_pages_are_not_kept_and_their_addresses_not_told(
    make_app: Callable[..., Flask], app: Flask, base_url: str, policy: str
) -> None:
    browser = make_app(base_url=base_url, serve_loopback="1").test_client()
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
def test_a_form_of_another_site_is_refused_and_burns_nothing(
    app: Flask, admin: Client, alice: Client, headers: dict[str, str]
) -> None:
    path = link(admin, alice)
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
def test_a_form_of_ours_is_taken(app: Flask, admin: Client, alice: Client, headers: dict[str, str]) -> None:
    assert sign_in(app, link(admin, alice), **headers).status_code == 303


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}])
def test_every_page_that_takes_a_form_refuses_foreign_ones(app: Flask, headers: dict[str, str]) -> None:
    posts = [rule for rule in app.url_map.iter_rules() if "POST" in (rule.methods or ()) and rule.rule[:5] != "/api/"]
    assert len(posts) >= 6
    for rule in posts:
        with app.test_request_context():
            path = rule.build(dict.fromkeys(rule.arguments, "x"), append_unknown=False)
        assert path is not None
        assert sign_in(app, path[1], **headers).status_code == 403


def test_the_api_takes_calls_from_other_sites_since_it_knows_no_cookies(alice: Client) -> None:
    pixel = {"type": "bing", "name": "Shop", "tag": "1"}
    answer = alice.post(
        "/api/pixel/add", pixel, headers={"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site"}
    )
    assert answer.status_code == 200


def session_cookies(answer: TestResponse) -> list[str]:
    """Return the cookies but that of a known browser (tests/test_login_limits.py)."""
    return [cookie for cookie in answer.headers.getlist("Set-Cookie") if "linkmgr_known=" not in cookie]


def test_the_cookie_is_closed_to_scripts_and_foreign_sites(
    make_app: Callable[..., Flask], app: Flask, admin: Client, alice: Client
) -> None:
    [plain] = session_cookies(sign_in(app, link(admin, alice)))
    assert plain.startswith("linkmgr=")
    assert "; HttpOnly; Path=/; SameSite=Lax" in plain
    assert "Secure" not in plain
    behind_https = make_app(base_url="https://go.example.org", serve_loopback="1")
    [secure] = session_cookies(sign_in(behind_https, link(admin, alice)))
    assert secure.startswith("__Host-linkmgr=")
    assert "; Secure; HttpOnly; Path=/; SameSite=Lax" in secure
    assert "Domain" not in secure


def test_other_answers_set_no_cookie(app: Flask, admin: Client, alice: Client) -> None:
    browser = app.test_client()
    browser.post(link(admin, alice))
    for path in ("/avatar/alice.png", "/static/style.css", "/nowhere", "/account"):
        with browser.get(path) as answer:
            assert "Set-Cookie" not in answer.headers
