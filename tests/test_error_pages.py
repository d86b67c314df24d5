"""Errors are HTML pages for browsers and JSON for programs."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from linkmgr.core.web import attempts, session_store
from tests.conftest import BASE_URL, Client
from tests.support.pages import PASSWORD, signed_in

CHROMIUM = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


def asked(app: Flask, path: str, method: str = "GET", **headers: str) -> TestResponse:
    return app.test_client().open(path, method=method, headers=headers)


def is_page(answer: TestResponse, status: int, title: str) -> bool:
    """Return True if the response is an error page: shared layout, not cached, without API details."""
    assert (answer.status_code, answer.mimetype) == (status, "text/html")
    assert ('<link rel="stylesheet" href="/static/style.css">' in answer.text) != ("<style>" in answer.text)
    assert f"<h1>{title}</h1>" in answer.text
    assert f"<p>{title}" not in answer.text, "the heading says it already"
    assert "application/json" not in answer.text
    return True


@pytest.mark.parametrize("accept", [CHROMIUM, "*/*", "text/html", ""])
def test_an_unknown_path_is_an_error_page(app: Flask, accept: str) -> None:
    answer = asked(app, "/nowhere", Accept=accept)
    assert is_page(answer, 404, "Page not found")
    advice = "Check the URL, or ask the person who sent it for a new one. The page may have been removed."
    assert f"<p>{advice}</p>" in answer.text
    assert '<p data-back hidden><button class="button quiet" type="button">Go back</button></p>' in answer.text
    assert "/login" not in answer.text, "visitors of links do not sign in"
    assert answer.headers["Cache-Control"] == "no-store"


def test_the_error_page_of_a_signed_in_user_leads_to_the_account(app: Flask, alice: Client) -> None:
    browser = app.test_client()
    browser.post("/login", data={"email": "alice@example.com", "password": PASSWORD})
    assert '<a class="button quiet" href="/account">Go to your account</a>' in browser.get("/nowhere").text


def test_an_unknown_page_of_the_console_keeps_the_navigation_of_a_signed_in_user(app: Flask, alice: Client) -> None:
    browser = signed_in(app)
    for client, path, has_navigation in (
        (browser, "/console/nowhere", True),
        (browser, "/nowhere", False),
        (app.test_client(), "/console/nowhere", False),
    ):
        answer = client.get(path)
        assert (answer.status_code, 'aria-label="Console"' in answer.text) == (404, has_navigation)
        assert answer.headers["Cache-Control"] == "no-store"


def test_a_program_that_accepts_json_gets_json(app: Flask) -> None:
    answer = asked(app, "/nowhere", Accept="application/json")
    assert answer.status_code == 404
    assert (answer.get_json()["error"], answer.get_json()["code"]) == (1, "no_such_page")


@pytest.mark.parametrize("path", ["/api/nowhere", "/api/account", "/healthz/", "/healthz"])
def test_paths_that_only_programs_request_never_return_a_page(app: Flask, path: str) -> None:
    for method in ("GET", "POST"):
        answer = asked(app, path, method, Accept=CHROMIUM)
        assert answer.mimetype == "application/json"


def test_a_used_login_link_returns_410(app: Flask) -> None:
    assert is_page(asked(app, "/login/token"), 410, "Link no longer valid")
    assert is_page(asked(app, "/login/token", "POST"), 410, "Link no longer valid")


def test_a_method_that_a_page_does_not_support(app: Flask) -> None:
    for path, method, allowed in (("/account/sign-out", "GET", "POST"), ("/login", "PUT", "GET, HEAD, POST")):
        answer = asked(app, path, method)
        assert is_page(answer, 405, "Invalid request")
        assert answer.headers["Allow"] == allowed


def test_a_body_that_is_too_large(app: Flask) -> None:
    answer = app.test_client().post("/login", data={"email": "x" * 70_000})
    assert is_page(answer, 413, "Request too large")


def test_too_many_attempts_return_a_page_with_retry_after(app: Flask) -> None:
    for _ in range(attempts.ATTEMPTS):
        asked(app, "/login", "POST")
    answer = asked(app, "/login", "POST")
    assert is_page(answer, 429, "Too many requests")
    assert 0 < int(answer.headers["Retry-After"]) <= attempts.WINDOW
    assert f"Try again in {answer.headers['Retry-After']} seconds" in answer.text
    assert "Try again</a>" not in answer.text, "it would not send the form once more"


def test_while_the_database_is_unavailable(app_with: Callable[..., Flask]) -> None:
    stranded = app_with(database_url="postgresql://nobody@127.0.0.1:1/none")
    browser = stranded.test_client()
    answer = browser.get("/login/token")
    assert is_page(answer, 503, "Temporarily unavailable")
    assert answer.headers["Retry-After"] == "2"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Try again</a>" in answer.text
    with browser.get("/static/style.css") as style:
        assert style.status_code == 200
    assert browser.get("/$/where").status_code == 404
    assert browser.get("/avatar/bio/alice.png", base_url=BASE_URL).status_code == 200
    assert browser.get("/login", base_url=BASE_URL).status_code == 200  # no session, so no query


@pytest.mark.parametrize("host", ["brand.test..", f"{'a' * 70}.test", ".", "..", "a..b"])
def test_an_invalid_host_is_unknown_without_a_query(
    app_with: Callable[..., Flask], host: str, caplog: pytest.LogCaptureFixture
) -> None:
    stranded = app_with(database_url="postgresql://nobody@127.0.0.1:1/none")
    for path in ("/", "/nowhere", "/q/code", "/alias", "/static/style.css", "/login"):
        assert is_page(asked(stranded, path, Host=host, Accept=CHROMIUM), 404, "Page not found"), path
    answer = asked(stranded, "/alias", Host=host, Accept="application/json")
    assert (answer.status_code, answer.get_json()["code"]) == (404, "unknown_host")
    refused = Client(stranded.test_client()).get("/api/account", headers={"Host": host})
    assert (refused.status_code, refused.get_json()["code"]) == (404, "unknown_host")
    assert caplog.text == ""


def test_a_bug_is_reported_even_when_no_page_can_be_rendered(
    app: Flask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret of the machine")

    monkeypatch.setattr(session_store, "is_usable", broken)
    answer = asked(app, "/login/some-token", Accept=CHROMIUM)
    assert is_page(answer, 500, "Something went wrong on our side")
    assert f"report request id {answer.headers['X-Request-Id']}." in answer.text
    assert "secret of the machine" not in answer.text
    assert "some-token" not in caplog.text
    monkeypatch.setattr("linkmgr.core.web.error_pages.render_template", broken)
    for accept in (CHROMIUM, "application/json"):
        failed = asked(app, "/login/some-token", Accept=accept, **{"X-Request-Id": "mine"})
        body = failed.get_json()
        assert (failed.status_code, body["error"], body["code"]) == (500, 1, "bug")
        assert body["message"].endswith("report request id mine.")


def test_text_from_the_request_is_escaped(app: Flask, alice: Client) -> None:
    answer = app.test_client().post("/login", data={"email": '"><script>alert(1)</script>', "password": "x"})
    assert "<script>" not in answer.text
    assert "&lt;script&gt;" in answer.text
