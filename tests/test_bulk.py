"""POST /api/urls/bulk."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from tests.conftest import Client
from tests.support import factories
from tests.support.bodies import everything
from tests.support.factories import Sql
from tests.support.own_plan import FEATURES
from tests.support.races import at_once

PAGE = "https://example.com/page"
BULK = "/api/urls/bulk"


def send(client: Client, *links: Any, atomic: bool = False) -> Any:
    answer = client.post(BULK, {"urls": list(links), "atomic": atomic})
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def codes(body: Any) -> list[str]:
    return [result.get("code", "") for result in body["results"]]


def test_results_have_the_order_of_the_request(alice: Client) -> None:
    body = send(alice, {"url": f"{PAGE}/1", "custom": "first"}, {"url": "no"}, {"url": f"{PAGE}/2", "custom": "second"})
    assert (body["created"], body["failed"]) == (2, 1)
    first, invalid, second = body["results"]
    assert first == {"index": 0, "id": first["id"], "shorturl": "http://127.0.0.1:5000/first", "is_new": True}
    message = "url must be a URL that begins with http:// or https://."
    errors = [{"field": "url", "code": "invalid", "message": message}]
    assert invalid == {"index": 1, "error": 1, "code": "invalid", "message": message, "errors": errors}
    assert second == {"index": 2, "id": second["id"], "shorturl": "http://127.0.0.1:5000/second", "is_new": True}
    assert second["id"] > first["id"]


def test_a_refused_element_names_the_member_that_the_single_operation_names(alice: Client) -> None:
    taken = alice.add("/api/url/add", {"url": PAGE, "custom": "taken"})
    other = alice.add("/api/url/add", {"url": f"{PAGE}/other"})
    wrong: list[dict[str, Any]] = [{"custom": "taken"}, {"campaign": 99}, {"domain": "go.example.net"}]
    single = [alice.post("/api/url/add", {"url": f"{PAGE}/2"} | body).get_json()["errors"] for body in wrong]
    many = send(alice, *({"url": f"{PAGE}/2"} | body for body in wrong))["results"]
    assert [result["errors"] for result in many] == single
    assert [errors[0]["field"] for errors in single] == ["custom", "campaign", "domain"]
    changed = alice.put(BULK, {"ids": [other], "data": {"custom": "taken"}}).get_json()["results"]
    assert changed[0]["errors"][0]["field"] == "custom"
    code = alice.post("/api/qr/bulk", {"qrs": [{"type": "link", "data": "http://127.0.0.1:5000/nothing"}]}).get_json()
    assert code["results"][0]["errors"][0]["field"] == "data"
    missing = alice.post(f"{BULK}/delete", {"ids": [taken, 99999]}).get_json()["results"]
    assert missing[1] == {"index": 1, "error": 1, "code": "missing", "message": "There is no link with this id."}


def test_a_link_has_the_members_that_a_single_create_stores(alice: Client, sql: Sql) -> None:
    members = everything(alice, sql)
    many = send(alice, members | {"custom": "many"})["results"][0]["id"]
    one = alice.add("/api/url/add", members | {"custom": "one"})
    read = [alice.get(f"/api/url/{link_id}").get_json()["details"] for link_id in (many, one)]
    for details in read:
        for own in ("id", "alias", "custom", "shorturl", "date", "updated"):
            del details[own]
    assert read[0] == read[1]
    assert read[0]["haspassword"] is True


def test_the_same_url_alone_is_one_link_as_with_single_creates(alice: Client) -> None:
    existing = alice.add("/api/url/add", {"url": PAGE})
    body = send(alice, {"url": f"{PAGE}/2"}, {"url": PAGE}, {"url": f"{PAGE}/2", "status": "public"}, {"url": PAGE})
    second, first, *others = [result["id"] for result in body["results"]]
    assert [first, *others] == [existing, second, existing]
    assert second != existing
    assert [result["is_new"] for result in body["results"]] == [True, False, False, False]
    assert [warning.partition(":")[0] for warning in body["warnings"]] == ["urls[1]", "urls[2]", "urls[3]"]
    assert alice.get("/api/urls").get_json()["data"]["result"] == 2


def test_an_alias_belongs_to_the_first_link_that_can_have_it(alice: Client) -> None:
    alice.add("/api/url/add", {"url": PAGE, "custom": "Taken"})
    body = send(
        alice,
        {"url": PAGE, "custom": "Taken"},
        {"url": PAGE, "custom": "Spring", "campaign": 2**40},
        {"url": PAGE, "custom": "Spring"},
        {"url": PAGE, "custom": "Spring"},
        {"url": PAGE, "custom": "spring"},
    )
    assert codes(body) == ["alias_taken", "campaign_unknown", "", "alias_taken", ""]


@pytest.mark.parametrize(
    ("member", "code"),
    [
        ("domain", "domain_unknown"),
        ("campaign", "campaign_unknown"),
        ("channel", "channel_unknown"),
        ("pixels", "pixel_unknown"),
        ("splash", "splash_unknown"),
        ("overlay", "overlay_unknown"),
    ],
)
def test_rows_of_other_users_fail_alone(alice: Client, bob: Client, sql: Sql, member: str, code: str) -> None:
    foreign = factories.ALL[member.removesuffix("s") if member == "pixels" else member](sql, bob.id)
    value: Any = [foreign] if member in ("pixels", "channel") else foreign
    if member == "domain":
        value = sql("SELECT host FROM domains WHERE id = %(id)s", id=foreign)[0]["host"]
    elif member == "overlay":
        value = f"overlay-{foreign}"
    members = {"type" if member in ("splash", "overlay") else member: value}
    body = send(alice, {"url": f"{PAGE}/1"}, {"url": PAGE} | members, {"url": f"{PAGE}/2"})
    assert codes(body) == ["", code, ""]


def test_a_target_on_a_branded_domain_fails_alone(alice: Client, bob: Client, sql: Sql) -> None:
    factories.domain(sql, bob.id)
    host = sql("SELECT host FROM domains")[0]["host"]
    targets = [{"location": "fr", "link": f"https://{host}/a"}]
    body = send(alice, {"url": f"https://{host}/a"}, {"url": PAGE}, {"url": PAGE, "geotarget": targets})
    assert codes(body) == ["link_branded", "", "link_branded"]


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_that_the_plan_lacks_fails_alone(on_plan: Callable[..., Client], feature: str) -> None:
    said, members = FEATURES[feature]
    carol = on_plan(**{feature: {"enabled": "0"}})
    body = send(carol, {"url": PAGE} | members, {"url": PAGE})
    assert codes(body) == ["plan_feature", ""]
    assert body["results"][0]["message"] == f"Your plan does not include {said}. Ask an administrator for another plan."


def test_of_ten_links_with_three_left_the_first_three_are_stored(on_plan: Callable[..., Client]) -> None:
    carol = on_plan(links=5)
    existing = [carol.add("/api/url/add", {"url": f"{PAGE}/old/{n}"}) for n in range(2)]
    links = [{"url": f"{PAGE}/{n}"} for n in range(10)]
    links[1:1] = [{"url": "no"}, {"url": f"{PAGE}/old/0"}, {"url": f"{PAGE}/0"}]
    body = send(carol, *links, {"url": f"{PAGE}/old/1"})
    assert codes(body) == ["", "invalid", "", "", "", "", *["plan_limit"] * 7, ""]
    assert [body["results"][n]["id"] for n in (2, 13)] == existing
    assert body["results"][6]["message"] == (
        "You have reached your plan's limit of 5 links. Delete one, or ask an administrator for another plan."
    )


def test_the_plan_limit_is_exact_under_concurrency(app: Flask, on_plan: Callable[..., Client], sql: Sql) -> None:
    carol = on_plan(links=100)
    bodies = at_once(
        24,
        lambda n: send(Client(app.test_client(), carol.key), *[{"url": f"{PAGE}/{n}/{m}"} for m in range(7)]),
        threads=8,
    )
    assert sum(body["created"] for body in bodies) == 100
    assert {code for body in bodies for code in codes(body)} == {"", "plan_limit"}
    assert sql("SELECT count(*) AS n FROM links") == [{"n": 100}]
    assert sql("SELECT total FROM usage WHERE counted = 'links'") == [{"total": 100}]


def test_of_concurrent_requests_with_the_same_aliases_each_alias_is_stored_once(
    app: Flask, alice: Client, sql: Sql
) -> None:
    links = [{"url": PAGE, "custom": f"alias-{n}"} for n in range(20)]
    bodies = at_once(8, lambda _: send(Client(app.test_client(), alice.key), *links, {"url": PAGE}), threads=8)
    assert sum(body["created"] for body in bodies) == 20 + 8
    assert sql("SELECT count(*) AS n FROM links") == [{"n": 21}]
    assert len({body["results"][-1]["id"] for body in bodies}) == 1


def test_requests_with_the_same_links_in_opposite_orders_do_not_deadlock(app: Flask, alice: Client) -> None:
    def both_orders(n: int) -> int:
        sent = [{"url": f"{PAGE}/{n // 2}/{m}"} for m in range(100)]
        sent += [{"url": PAGE, "custom": f"alias-{n // 2}-{m}"} for m in range(100)]
        client = Client(app.test_client(), alice.key)
        # A transaction is not repeated after a deadlock.
        headers = {"Idempotency-Key": str(n)}
        return client.post(BULK, {"urls": sent[:: 1 if n % 2 else -1]}, headers=headers).status_code

    assert set(at_once(20, both_orders, threads=4)) == {200}


def test_a_request_whose_elements_all_fail_is_an_error_that_lists_them(alice: Client) -> None:
    body = send(alice, {"url": "no"}, {"url": PAGE, "campaign": 2**40, "colour": 1})
    assert (body["error"], body["code"], body["created"], body["failed"]) == (1, "bulk_failed", 0, 2)
    assert body["message"] == "None of the 2 elements could be carried out. Correct those in results."
    assert codes(body) == ["invalid", "campaign_unknown"]
    assert len(body["warnings"]) == 1
    for method, path, sent in (("PUT", BULK, {"data": {"title": "x"}}), ("POST", f"{BULK}/delete", {})):
        body = alice.call(method, path, {"ids": [2**40]} | sent).get_json()
        assert (body["error"], body["code"], codes(body)) == (1, "bulk_failed", ["missing"])


def test_an_atomic_request_stores_all_or_nothing(alice: Client, sql: Sql) -> None:
    good = [{"url": f"{PAGE}/{n}"} for n in range(3)]
    assert codes(send(alice, *good[:1], atomic=True)) == [""]
    for bad, code in (({"url": PAGE, "campaign": 2**40}, "campaign_unknown"), ({"url": 5}, "invalid")):
        answer = alice.post(BULK, {"urls": [*good, bad], "atomic": True})
        body = answer.get_json()
        assert (answer.status_code, body["code"]) == (400, "bulk_refused")
        assert body["message"].startswith("Nothing was changed, because 1 of 4 elements failed")
        assert [(result["index"], result["code"]) for result in body["results"]] == [(3, code)]
        assert sql("SELECT count(*) AS n FROM links") == [{"n": 1}]


@pytest.mark.parametrize(
    ("urls", "problem"),
    [
        ([], "urls must be an array of 1 to 1000 objects"),
        ([{"url": PAGE}] * 1001, "urls must be an array of 1 to 1000 objects"),
        ({"url": PAGE}, "urls must be an array of 1 to 1000 objects"),
        (None, "urls is required"),
        (
            [{"url": PAGE, "password": f"secret {n}"} for n in range(21)],
            "urls must not contain more than 20 different passwords",
        ),
    ],
)
def test_a_request_that_cannot_be_carried_out_is_rejected(alice: Client, sql: Sql, urls: Any, problem: str) -> None:
    answer = alice.post(BULK, {"urls": urls})
    assert (answer.status_code, answer.get_json()["message"]) == (400, f"{problem}.")
    assert sql("SELECT count(*) AS n FROM links") == [{"n": 0}]


@pytest.mark.parametrize("element", [5, None, "https://example.com/", [], {}, {"url": None}, {"url": ""}, {"url": []}])
def test_a_malformed_element_fails_alone(alice: Client, element: Any) -> None:
    assert codes(send(alice, element, {"url": PAGE})) == ["invalid", ""]


def test_warnings_name_the_element(alice: Client) -> None:
    sent: list[Any] = [{"url": PAGE, "alias": "a"}, {"url": f"{PAGE}/2", "pixels": ["x"]}, {"url": "no"}]
    body = send(alice, {"url": f"{PAGE}/1"}, *sent)
    assert body["warnings"] == [
        "urls[1]: The member 'alias' is unknown and was ignored. Did you mean 'custom'?",
        "urls[2]: pixels: an element that is not an id was ignored.",
    ]


def test_one_password_of_many_links_is_allowed(alice: Client, sql: Sql) -> None:
    body = send(alice, *[{"url": PAGE, "password": "secret", "custom": f"link-{n}"} for n in range(30)])
    assert body["created"] == 30
    assert sql("SELECT count(DISTINCT password_hash) AS n, count(*) AS links FROM links") == [{"n": 1, "links": 30}]
