"""Link aliases: chosen, reserved, generated and taken."""

from collections.abc import Callable

import pytest
from flask import Blueprint, Flask

import linkmgr
from linkmgr.core.fields import aliases
from tests.conftest import BASE_URL, Client
from tests.support.factories import Sql
from tests.support.shortlinks import PAGE, refused


@pytest.mark.parametrize(
    "alias",
    [
        "a",
        "1Z",
        "a-_9",
        "x" * 100,
        "123",
        "---",
        "apis",
        "qr-codes",
        "q",
        "r",
        "u",
        "qr",
        "o",
        "avatar",
        "blog",
        "help",
        "mail",
        "status",
        "Login",
    ],
)
def test_an_alias_may_be_chosen(alice: Client, alias: str) -> None:
    answer = alice.post("/api/url/add", {"url": PAGE, "custom": alias})
    assert answer.get_json()["shorturl"] == f"{BASE_URL}/{alias}"


def test_the_first_words_of_all_paths_are_reserved(app: Flask, alice: Client) -> None:
    pages = {rule.rule.strip("/") for rule in app.url_map.iter_rules()}
    words = {"api", "static", *(page for page in pages if page.isalnum())}
    assert words == {"account", "api", "console", "docs", "healthz", "login", "metrics", "static", "user"}
    for word in words:
        assert "is reserved" in refused(alice, custom=word)
        assert alice.post("/api/bio/add", {"name": "Dana", "alias": word}).status_code == 400


def test_a_new_page_reserves_its_word(
    make_app: Callable[..., Flask], alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    bp = Blueprint("pricing", __name__)
    bp.add_url_rule("/pricing", view_func=lambda: "A page")
    with_page = linkmgr.DOCUMENTED._replace(blueprints=(*linkmgr.DOCUMENTED.blueprints, bp))
    monkeypatch.setattr(linkmgr, "DOCUMENTED", with_page)
    client = Client(make_app().test_client(), alice.key)
    assert "'pricing' is reserved" in refused(client, custom="pricing")
    assert alice.add("/api/url/add", {"url": PAGE, "custom": "pricing"})


def test_a_branded_domain_reserves_only_what_it_serves(alice: Client) -> None:
    alice.add("/api/domain/add", {"domain": "https://go.example.net"})
    for word in ("api", "healthz", "metrics", "static"):
        assert "is reserved" in refused(alice, custom=word, domain="go.example.net")
    for word in ("login", "account", "console", "user", "docs"):
        alice.add("/api/url/add", {"url": PAGE, "custom": word, "domain": "go.example.net"})


def test_a_link_cannot_move_to_the_path_of_a_page(alice: Client) -> None:
    alice.add("/api/domain/add", {"domain": "https://go.example.net"})
    branded = alice.add("/api/url/add", {"url": PAGE, "custom": "login", "domain": "go.example.net"})
    ours = alice.add("/api/url/add", {"url": PAGE, "custom": "sale"})
    for link_id, changes in ((branded, {"domain": ""}), (ours, {"custom": "login"})):
        answer = alice.put(f"/api/url/{link_id}/update", changes)
        assert (answer.status_code, answer.get_json()["code"]) == (400, "alias_reserved")
        [result] = alice.put("/api/urls/bulk", {"ids": [link_id], "data": changes}).get_json()["results"]
        assert result["code"] == "alias_reserved"
    assert alice.put(f"/api/url/{branded}/update", {"custom": "account"}).status_code == 200
    moved = alice.put(f"/api/url/{branded}/update", {"custom": "sales", "domain": ""})
    assert moved.get_json()["shorturl"] == f"{BASE_URL}/sales"


def test_generated_aliases_are_valid_as_chosen_ones(alice: Client) -> None:
    made = {aliases.new_alias() for _ in range(50)}
    assert len(made) == 50
    for alias in made:
        alice.add("/api/url/add", {"url": PAGE, "custom": alias})


def test_an_alias_is_unique_per_host_and_case_sensitive(alice: Client, bob: Client, sql: Sql) -> None:
    taken = "This alias is already in use. Choose another one."
    alice.add("/api/domain/add", {"domain": "https://go.example.net"})
    for members in ({"custom": "Spring"}, {"custom": "spring"}, {"custom": "Spring", "domain": "go.example.net"}):
        link_id = alice.add("/api/url/add", {"url": PAGE} | members)
        assert refused(alice, **members) == taken
    assert refused(bob, custom="Spring") == taken
    answer = alice.put(f"/api/url/{link_id}/update", {"domain": ""})
    assert (answer.status_code, answer.get_json()["message"]) == (400, taken)
    sql("INSERT INTO bios (user_id, alias, name) VALUES (%(id)s, 'dana', 'Dana') RETURNING 1", id=bob.id)
    assert refused(alice, custom="dana") == taken
    alice.add("/api/url/add", {"url": PAGE, "custom": "dana", "domain": "go.example.net"})
