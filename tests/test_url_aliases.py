"""Link aliases: chosen, reserved, generated and taken."""

import pytest
from flask import Flask

from linkmgr.fields import aliases
from tests.conftest import BASE_URL, Client
from tests.support.factories import Sql
from tests.support.shortlinks import PAGE, refused


@pytest.mark.parametrize("alias", ["a", "1Z", "a-_9", "x" * 50, "123", "---", "apis", "qr-codes"])
def test_an_alias_may_be_chosen(alice: Client, alias: str) -> None:
    answer = alice.post("/api/url/add", {"url": PAGE, "custom": alias})
    assert answer.get_json()["shorturl"] == f"{BASE_URL}/{alias}"


def test_the_first_words_of_all_paths_are_reserved(app: Flask, alice: Client) -> None:
    words = {rule.rule.split("/")[1] for rule in app.url_map.iter_rules()}
    words = {word for word in words if word and "<" not in word and "." not in word}
    assert {"api", "login", "avatar", "static"} <= words
    for word in words:
        assert "is reserved" in refused(alice, custom=word)


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
