"""/<alias>: link lookup, redirect and counted visits."""

from collections.abc import Callable

import pytest
from flask import Flask

from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.shortlinks import BRANDED, FACEBOOK, TARGET, Make, Short

OURS = "127.0.0.1:5000"


# --- lookup


def test_it_redirects_to_the_target_and_counts_the_visit(short: Make) -> None:
    link = short()
    assert link.redirect_target() == TARGET
    assert link.redirect_target(path="/") == TARGET
    assert link.clicks == 2


def test_an_alias_is_case_sensitive_and_matched_completely(short: Make) -> None:
    link = short(alias="Summer-2026_x")
    paths = [
        "/summer-2026_x",
        "/SUMMER-2026_X",
        "/Summer-2026_",
        "/Summer-2026_xx",
        "/Summer-2026_x%00",
        "/Summer-2026%",
    ]
    answers = [link.app.test_client().get(path) for path in paths]
    assert {(answer.status_code, answer.mimetype) for answer in answers} == {(404, "text/html")}
    assert link.redirect_target() == TARGET


@pytest.mark.parametrize("alias", ["abc", "x" * 100, "-_-", "123", "qrs", "API", "q", "r", "u", "qr", "o", "avatar"])
def test_aliases_of_every_form_redirect(short: Make, alias: str) -> None:
    assert short(alias=alias).redirect_target() == TARGET


def first_words(app: Flask) -> set[str]:
    """Return the paths of our pages that would be valid aliases."""
    return {word for rule in app.url_map.iter_rules() if (word := rule.rule[1:]).isalnum()}


def test_a_link_never_takes_precedence_over_another_path(short: Make, app: Flask) -> None:
    words = first_words(app)
    assert {"login", "account", "console", "healthz", "user"} <= words
    before = {word: app.test_client().post(f"/{word}").status_code for word in words}
    links = [short(alias=word) for word in words]
    assert {word: app.test_client().post(f"/{word}").status_code for word in words} == before
    for link in links:
        link.ask()
        assert link.ask(path="/qr").mimetype != "image/png"
    assert {link.clicks for link in links} == {0}


def test_each_host_has_links_of_its_own(short: Make, alice: Client, bob: Client, sql: Sql) -> None:
    ours, alices = short(alias="sale"), short(alias="sale2", url="https://example.com/alice")
    bobs = Short(ours.app, sql, bob.id, alias="sale3", url="https://example.com/bob")
    alices.brand()
    bobs.brand("bob.example.org")
    sql("UPDATE links SET alias = 'sale' RETURNING 1")
    targets = {
        host: ours.redirect_target(Host=host)
        for host in (OURS, BRANDED, f"{BRANDED}:8080", "GO.example.org.", "bob.example.org")
    }
    assert targets == {
        OURS: TARGET,
        BRANDED: "https://example.com/alice",
        f"{BRANDED}:8080": "https://example.com/alice",
        "GO.example.org.": "https://example.com/alice",
        "bob.example.org": "https://example.com/bob",
    }
    assert ours.ask(Host="unknown.example").status_code == 404
    assert (ours.clicks, alices.clicks, bobs.clicks) == (1, 3, 1)


def test_our_host_and_branded_hosts_do_not_share_links(short: Make, alice: Client, sql: Sql) -> None:
    ours, branded = short(), short()
    branded.brand()
    assert ours.ask(Host=BRANDED).status_code == 404
    assert branded.ask(Host=OURS).status_code == 404
    sql("UPDATE domains SET redirect404 = 'https://example.com/lost' RETURNING 1")
    lost = ours.ask(Host=BRANDED)
    assert (lost.status_code, lost.headers["Location"]) == (302, "https://example.com/lost")
    assert (ours.clicks, branded.clicks) == (0, 0)


def test_a_bio_page_is_shown_on_our_host_only(app: Flask, alice: Client, sql: Sql) -> None:
    alice.add("/api/domain/add", {"domain": f"https://{BRANDED}"})
    bio_id = factories.bio(sql, alice.id, title="Dana Demo")
    alias = sql("SELECT alias FROM bios WHERE id = %(id)s", id=bio_id)[0]["alias"]
    page = app.test_client().get(f"/{alias}")
    assert page.status_code == 200
    assert "Dana Demo" in page.text
    assert app.test_client().get(f"/{alias}", headers={"Host": BRANDED}).status_code == 404


@pytest.mark.parametrize("host", [OURS, BRANDED])
def test_a_visitor_waits_for_one_statement(
    short: Make, monkeypatch: pytest.MonkeyPatch, executed: list[str], host: str
) -> None:
    link = short()
    if host == BRANDED:
        link.brand()
    monkeypatch.setattr(link.app.extensions["linkmgr_visit_queue"], "flush", lambda: True)
    executed.clear()
    assert link.redirect_target(Host=host) == TARGET
    assert len([text for text in executed if "SELECT blocks" not in text]) == 1  # that is read once in two seconds


# --- counted visits


def test_head_prefetch_and_crawlers_redirect_and_are_not_counted(short: Make) -> None:
    link = short()
    for request in ({"method": "HEAD"}, {"Sec_Purpose": "prefetch"}, {"agent": FACEBOOK}):
        assert link.redirect_target(**request) == TARGET
    assert link.clicks == 0


def test_an_unknown_alias_is_a_404_page(app: Flask, app_with: Callable[..., Flask]) -> None:
    answer = app.test_client().get("/nobodys")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (404, "no-store")
    assert "Page not found" in answer.text
    for method in ("PUT", "DELETE", "PATCH"):
        assert app.test_client().open("/nobodys", method=method).status_code == 405
    lost = app_with(database_url="postgresql://postgres@127.0.0.1:1/linkmgr").test_client()
    assert lost.get("/nobodys").status_code == 503


@pytest.mark.parametrize("type_", ["frame", "splash", "overlay"])
def test_an_interstitial_page_counts_once(short: Make, type_: str) -> None:
    link = short(type=type_)
    page = link.ask()
    assert (page.status_code, page.headers["Cache-Control"]) == (200, "no-store")
    assert TARGET in page.text
    assert link.clicks == 1
