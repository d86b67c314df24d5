"""The bin of QR codes: deleted ones, which can be restored for 30 days."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr.repository import purge, qr_bin
from tests.conftest import Client
from tests.support import factories
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.keyring import Make, branded, code
from tests.support.logos import logo_file
from tests.support.pages import get, seen, words
from tests.support.races import at_once
from tests.support.receivers import Deliver
from tests.support.reports import rows

Jobs = Callable[[], None]
LEFT = """
    SELECT (SELECT count(*) FROM visits) + (SELECT count(*) FROM totals) + (SELECT count(*) FROM logos)
           + (SELECT count(*) FROM channel_items WHERE qr_id IS NOT NULL) + count(*) AS n FROM kept_qrs
"""


def to_bin(client: Client, *ids: int) -> None:
    for qr_id in ids:
        assert code(client.delete(f"/api/qr/{qr_id}/delete")) == (200, "")


def restore(client: Client, qr_id: int) -> tuple[int, str]:
    return code(client.post(f"/api/qr/{qr_id}/restore"))


def in_bin(client: Client) -> list[int]:
    data = client.get("/api/qr?bin=1").get_json()["data"]
    assert data["result"] == len(data["qrs"])
    return [row["id"] for row in data["qrs"]]


def used(sql: Sql, client: Client) -> dict[str, int]:
    counts = sql("SELECT counted, total FROM usage WHERE user_id = %(id)s AND total <> 0", id=client.id)
    return {row["counted"]: row["total"] for row in counts if row["counted"].endswith("qrs")}


def full(client: Client, sql: Sql) -> dict[str, Any]:
    """Add a QR code of a link, with a logo, a channel and two scans, and return its record and the rows around it."""
    link = client.add("/api/url/add", {"url": "https://example.com/page", "custom": "summer"})
    channel = factories.channel(sql, client.id)
    data = client.get(f"/api/url/{link}").get_json()["details"]["shorturl"]
    new = {"type": "link", "data": data, "name": "Poster", "logo": logo_file(client, "noise")}
    qr_id = client.add("/api/qr/add", new)
    for item, row_id in (("links", link), ("qr", qr_id)):
        assert client.post(f"/api/channel/{channel}/assign/{item}/{row_id}").status_code == 200
    for _ in range(2):
        factories.visit(sql, qr_id)
    [row] = sql("SELECT code FROM qrs WHERE id = %(id)s", id=qr_id)
    return {"id": qr_id, "code": row["code"], "link": link, "channel": channel}


def shown(client: Client, rows_: dict[str, Any]) -> list[Any]:
    """Return what the API, the console and visitors see of a QR code."""
    paths = ("qr/{id}", "qr", "qr?q=poster", "channel/{channel}", "stats?by=target&ids={id}", "channels",
             "stats?by=target&period=all", "stats?by=channel&period=all", "url/{link}/visits")  # fmt: skip
    answers = [client.get(f"/api/{path.format(**rows_)}") for path in paths]
    bodies = [answer.get_json() | {"request_id": "", "docs": ""} for answer in answers]
    public = [client.http.get(f"/{path}/{rows_['code']}", headers={"User-Agent": "curl/8"}) for path in ("q", "qr")]
    return [*bodies, answers[0].headers.get("ETag"), [(page.status_code, page.headers.get("ETag")) for page in public]]


def test_a_qr_code_in_the_bin_is_like_a_deleted_one_and_comes_back_as_it_was(
    alice: Client, bob: Client, sql: Sql, run_jobs: Jobs
) -> None:
    made = full(alice, sql)
    qr_id, before = made["id"], shown(alice, made)
    assert used(sql, alice) == {"qrs": 1}
    assert code(alice.delete(f"/api/qr/{qr_id}/delete?bin=2")) == (400, "invalid")
    assert alice.delete(f"/api/qr/{qr_id}/delete").get_json()["message"] == "QR Code has been deleted successfully."
    run_jobs()
    gone = shown(alice, made)
    assert (gone[0]["message"], gone[-1][0][0], gone[-1][1][0]) == ("There is no QR code with this id.", 404, 404)
    assert [row["type"] for row in gone[3]["data"]["items"]] == ["links"]
    assert gone[6:8] == before[6:8], "visits count in the account and in its channel"
    assert code(alice.delete(f"/api/qr/{qr_id}/delete")) == (404, "missing")
    assert code(alice.put(f"/api/qr/{qr_id}/update", {"data": "https://example.com"})) == (404, "missing")
    assert code(alice.post(f"/api/channel/{made['channel']}/assign/qr/{qr_id}")) == (404, "missing")
    assert (in_bin(alice), in_bin(bob), used(sql, alice)) == ([qr_id], [], {"binned_qrs": 1})
    listed, binned = before[1]["data"]["qrs"], alice.get("/api/qr?bin=1").get_json()["data"]["qrs"]
    assert listed == binned
    assert code(alice.get("/api/qr?bin=1&after=99")) == (400, "invalid")
    assert [restore(bob, qr_id), code(bob.delete(f"/api/qr/{qr_id}/delete?bin=0"))] == [(404, "missing")] * 2

    answer = alice.post(f"/api/qr/{qr_id}/restore")
    assert (answer.get_json()["details"], answer.headers["ETag"]) == (before[0]["details"], before[-2])
    assert (shown(alice, made), used(sql, alice)) == (before, {"qrs": 1})
    assert (restore(alice, qr_id), in_bin(alice)) == ((404, "missing"), [])
    alice.delete(f"/api/qr/{qr_id}/delete?bin=0")
    run_jobs()
    assert (sql(LEFT), used(sql, alice)) == ([{"n": 0}], {})


def test_a_qr_code_comes_back_after_its_link_and_channel_are_deleted(alice: Client, sql: Sql, run_jobs: Jobs) -> None:
    made = full(alice, sql)
    details = alice.get(f"/api/qr/{made['id']}").get_json()["details"]
    to_bin(alice, made["id"])
    assert alice.delete(f"/api/url/{made['link']}/delete").status_code == 200
    assert alice.delete(f"/api/channel/{made['channel']}/delete").status_code == 200
    run_jobs()
    assert alice.post(f"/api/qr/{made['id']}/restore").get_json()["details"] == details
    assert alice.http.get(f"/q/{made['code']}").headers["Location"].endswith("/summer")
    assert sql("SELECT FROM channel_items") == []


def test_a_code_in_the_bin_is_taken_by_nobody(alice: Client, bob: Client, sql: Sql) -> None:
    made = full(alice, sql)
    to_bin(alice, made["id"])
    for user in (alice, bob):
        other = factories.qr(sql, user.id)
        with pytest.raises(Exception, match="qrs_code_key"):
            sql("UPDATE qrs SET code = %(code)s WHERE id = %(id)s RETURNING 1", code=made["code"], id=other)


def test_a_code_of_a_blocked_host_stays_in_the_bin(admin: Client, alice: Client, sql: Sql) -> None:
    qr_id = alice.add("/api/qr/add", {"type": "link", "data": "https://evil.test/"})
    link = factories.link(sql, alice.id)
    to_bin(alice, qr_id)
    alice.put(f"/api/url/{link}/update", {"url": "https://evil.test/"})
    decided = admin.post(f"/api/report/{link}/decide", {"decision": "host", "host": "evil.test"})
    assert decided.status_code == 200, decided.text
    assert restore(alice, qr_id) == (400, "target_blocked")
    assert in_bin(alice) == [qr_id]


def test_of_20_restores_at_once_one_wins(app: Flask, alice: Client, sql: Sql) -> None:
    qr_id = factories.qr(sql, alice.id)
    paths = {"POST": f"/api/qr/{qr_id}/restore", "DELETE": f"/api/qr/{qr_id}/delete"}

    def statuses(*methods: str) -> list[int]:
        calls = methods * (20 // len(methods))
        send, headers = app.test_client().open, {"Authorization": f"Bearer {alice.key}"}
        return at_once(20, lambda n: send(paths[calls[n]], method=calls[n], headers=headers).status_code)

    alice.delete(paths["DELETE"])
    assert sorted(statuses("POST")) == [200] + [404] * 19
    assert sorted(statuses("DELETE")) == [200] + [404] * 19
    assert set(statuses("POST", "DELETE")) == {200, 404}
    assert used(sql, alice) == {"binned_qrs" if in_bin(alice) else "qrs": 1}
    assert (in_bin(alice) == [qr_id]) == (alice.get(f"/api/qr/{qr_id}").status_code == 404)


def test_the_bin_keeps_the_last_deleted_ones(alice: Client, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qr_bin, "MAX_KEPT", 2)
    ids = [factories.qr(sql, alice.id) for _ in range(4)]
    to_bin(alice, *ids[::-1])
    assert (in_bin(alice), used(sql, alice)) == ([ids[0], ids[1]], {"binned_qrs": 2})


def test_after_30_days_or_with_their_user_nothing_is_left(
    app: Flask, admin: Client, alice: Client, sql: Sql, run_jobs: Jobs
) -> None:
    made, kept = full(alice, sql), factories.qr(sql, alice.id)
    to_bin(alice, made["id"])
    age = "UPDATE kept_qrs SET binned = now() - interval '29 days 23 hours' WHERE id = %(id)s RETURNING 1"
    sql(age, id=made["id"])
    with app.app_context():
        purge.purge()
        assert (in_bin(alice), used(sql, alice)) == ([made["id"]], {"qrs": 1, "binned_qrs": 1})
        assert sql("SELECT count(*) AS n FROM visits") == [{"n": 2}]
        sql(age.replace("29 days 23", "30 days 1"), id=made["id"])
        purge.purge()
    run_jobs()
    assert (sql(LEFT), in_bin(alice), used(sql, alice)) == ([{"n": 1}], [], {"qrs": 1})
    assert (restore(alice, made["id"]), alice.get(f"/api/qr/{kept}").status_code) == ((404, "missing"), 200)
    to_bin(alice, kept)
    assert admin.delete(f"/api/user/{alice.id}/delete").status_code == 200
    run_jobs()
    assert sql(LEFT) == [{"n": 0}]


def test_a_restricted_key_bins_and_restores_its_codes_only(alice: Client, sql: Sql, make_restricted: Make) -> None:
    other, (domain_id, _) = factories.qr(sql, alice.id), branded(sql, alice)
    to_bin(alice, other)
    key, of_domain = make_restricted(alice, own_only=True), make_restricted(alice, domains=[domain_id])
    own = key.add("/api/qr/add", {"type": "text", "data": "Hello"})
    to_bin(key, own)
    assert (in_bin(key), in_bin(of_domain), in_bin(alice)) == ([own], [], [own, other])
    assert [restore(key, other), code(key.delete(f"/api/qr/{other}/delete?bin=0"))] == [(404, "missing")] * 2
    assert restore(of_domain, own)[0] == 403
    assert (restore(key, own), in_bin(key), in_bin(alice)) == ((200, ""), [], [other])


def test_receivers_learn_that_a_code_is_deleted_and_created_again(alice: Client, deliver: Deliver) -> None:
    alice.add("/api/webhooks", {"name": "Hook", "events": ["qr.*"]})
    ids = [alice.add("/api/qr/add", {"type": "text", "data": "Hello", "name": name}) for name in ("One", "Two")]
    to_bin(alice, *ids)
    alice.delete(f"/api/qr/{ids[1]}/delete?bin=0")
    restore(alice, ids[0])
    deliver()
    events = alice.get("/api/events").get_json()["data"]["events"]
    told = [(event["type"], event["data"]["id"], event["data"]["name"]) for event in events]
    one, two = zip(ids, ("One", "Two"), strict=True)
    assert told == [("qr.created", *one), ("qr.created", *two), ("qr.deleted", *one), ("qr.deleted", *two),
                    ("qr.created", *one)]  # fmt: skip


# --- the console


def pressed(console: FlaskClient, ids: list[int], action: str, **fields: str) -> str:
    answer = console.post("/console/qrs/bin", data={"id": ids, "action": action, **fields}, follow_redirects=True)
    assert answer.status_code == 200
    return words(answer.text)


def test_the_console_has_the_bin_in_the_head_of_the_list_and_undoes_a_delete(
    console: FlaskClient, alice: Client, bob: Client, sql: Sql
) -> None:
    made, other = full(alice, sql), factories.qr(sql, bob.id)
    qr_id, channel = made["id"], f"/console/channels/{made['channel']}"
    assert "Bin" not in seen(get(console, "/console/qrs"))
    assert "You can restore it for 30 days." in get(console, f"/console/qrs/{qr_id}/delete")
    page = console.post(f"/console/qrs/{qr_id}/delete", follow_redirects=True).text
    assert "QR code deleted." in page
    assert re.findall('action="([^"]+)" role="status">|name="id" value="([^"]+)"', page)[:2] == [
        ("/console/qrs/bin", ""), ("", str(qr_id))
    ]  # fmt: skip
    assert "Bin 1" in seen(page.split('<div class="head">')[1].split('<div id="results">')[0])
    assert re.search("Poster .* 2 scans", seen(get(console, "/console/qrs/bin")))
    assert "also count deleted QR codes in the bin" in seen(get(console, channel))
    assert "1 item" in seen(get(console, "/console/channels"))
    for path in ("/console", "/console/statistics?dimension=target"):
        assert '<a href="/console/qrs/bin"><bdi>QR code Poster, in the bin</bdi>' in get(console, path)
    assert "1 QR code restored." in pressed(console, [qr_id, other], "restore")
    assert "These QR codes are not in the bin any more." in pressed(console, [qr_id], "restore")
    assert "Select QR codes first." in pressed(console, [], "restore")
    assert "deleted QR codes" not in seen(get(console, channel))
    assert console.post("/console/qrs/bin", data={"id": qr_id, "action": "evil"}).status_code == 400
    to_bin(bob, other)
    to_bin(alice, qr_id, *(factories.qr(sql, alice.id) for _ in range(26)))
    assert "Select all 27" in get(console, "/console/qrs/bin")
    assert "1 QR code deleted forever." in pressed(console, [qr_id, other], "delete")
    assert "26 QR codes restored." in pressed(console, [qr_id], "restore", all="1")
    assert "The bin is empty. QR codes that you delete" in seen(get(console, "/console/qrs/bin"))
    assert in_bin(bob) == [other]


def test_statistics_of_a_channel_keep_the_scans_of_a_code_in_the_bin(alice: Client, sql: Sql) -> None:
    made = full(alice, sql)
    queries = [f"channel={made['channel']}&by={by}" for by in ("target", "country,browser", "time:day")]
    before = [rows(alice, query) for query in queries]
    to_bin(alice, made["id"])
    assert [rows(alice, query) for query in queries] == before
    assert before[0][0]["target"] == made["id"]


@pytest.mark.browser
def test_a_delete_of_a_code_is_undone_in_a_click(signed_in: Browser, base: str, alice: Client, sql: Sql) -> None:
    qr_id = factories.qr(sql, alice.id)
    browser = signed_in
    browser.open(f"{base}/console/qrs/{qr_id}")
    browser.click("Delete")
    browser.click("Delete QR code")
    browser.wait_for_text("QR code deleted.")
    assert in_bin(alice) == [qr_id]
    browser.click("Undo")
    browser.wait_for_text("1 QR code restored.")
    assert (browser.path, in_bin(alice)) == (f"/console/qrs/{qr_id}", [])
    to_bin(alice, qr_id)
    browser.open(f"{base}/console/qrs/bin")
    browser.find("[name=id]").click()
    browser.click("Delete forever")
    browser.wait_for_text("This cannot be undone.")
    browser.find("[name=action][value=delete]").click()
    browser.wait_for_text("The bin is empty.")
    assert in_bin(alice) == []
