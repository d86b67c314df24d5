"""null in an update removes what reads show as null, or it changes nothing, and a warning says so."""

from typing import Any

from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.operations import KEYED, Call
from tests.support.stage import Stage

UPDATES = [call for call in KEYED if call.method == "PUT" and call.path.endswith("/update")]
PAGE = "https://example.com/page"


def removed_as(call: Call, member: str) -> tuple[Any, ...]:
    """Return the name and the value of the member that a read then has."""
    also = (
        {"password": ("haspassword", False), "maxclicks": ("maxclicks", 0), "metadata": ("metadata", {})}
        if "/url/" in call.path
        else {}
    )
    return also.get(member, (member, None))


def test_null_removes_a_member_that_can_be_null_or_the_response_names_it(stage: Stage) -> None:
    removed = set()
    last = ("users.update", "keys.updateDefault")
    for call in sorted(UPDATES, key=lambda call: call.operation.id in last):
        assert call.operation.body
        complete = stage.bodies(call)[-1] or {}
        needed = {name: complete[name] for name, field in call.operation.body().fields.items() if field.required}
        client, path = stage.caller(call), stage.path(call)
        for member in complete.keys() - needed.keys():
            before = client.put(path, needed | {member: complete[member]}).get_json()["record"]
            answer = client.put(path, needed | {member: None})
            warning = f"The member '{member}' is null, which means not sent, so it was not changed."
            if not (call.operation.id == "account.update" and member != "domain"):
                assert answer.status_code == 200, (call, member, answer.text)
                name, value = removed_as(call, member)
                record = answer.get_json()["record"]
                if warning in answer.get_json().get("warnings", ()):
                    assert record.get(name) == before.get(name), (call, member)
                else:
                    zero = dict.fromkeys(record["prices"], 0) if member == "prices" else value
                    assert record[name] == zero, (call, member)
                    removed.add((call.path.split("/")[2], member))
    assert removed == {
        *(("url", member) for member in ("expiry", "starts", "maxclicks", "password", "campaign", "metadata")),
        *(("webhook", member) for member in ("campaign", "channel", "domain")),
        ("key", "expires"),
        ("account", "domain"),
        ("plan", "prices"),
    }


def test_no_record_that_is_sent_back_has_a_null_that_is_not_sent(stage: Stage) -> None:
    for call in UPDATES:
        reads = [read for read in KEYED if read.method == "GET" and read.path == call.path.removesuffix("/update")]
        for read in reads:
            record = stage.caller(call).get(stage.path(read)).get_json()["record"]
            answer = stage.caller(call).put(stage.path(call), record).get_json()
            assert not [text for text in answer.get("warnings", ()) if "null" in text], call


def test_null_opens_many_links_at_once(alice: Client, sql: Sql) -> None:
    closed = {"url": PAGE, "expiry": "2020-01-01", "password": "walnut", "maxclicks": 3, "starts": "2019-01-01"}
    ids = [alice.add("/api/url/add", closed | {"custom": f"closed-{n}"}) for n in range(2)]
    data = dict.fromkeys(closed.keys() - {"url"}) | {"metatitle": None}
    answer = alice.put("/api/urls/bulk", {"ids": ids, "data": data}).get_json()
    assert (answer["updated"], answer["warnings"]) == (
        2,
        ["The member 'metatitle' is null, which means not sent, so it was not changed."],
    )
    assert sql("SELECT DISTINCT expiry, password_hash, maxclicks, starts FROM links") == [
        dict.fromkeys(("expiry", "password_hash", "maxclicks", "starts"))
    ]
