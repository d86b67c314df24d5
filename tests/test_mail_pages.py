"""The reasons for which the service sends e-mail messages, and the pages to which their links lead."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from linkmgr.core.database import statements
from linkmgr.core.hooks import hooks
from linkmgr.core.web import session_store
from linkmgr.features.mail import look
from linkmgr.features.webhooks import deliveries
from tests.conftest import Client
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.fit import faults
from tests.support.mailbox import Post, text_of
from tests.support.pages import PASSWORD, is_signed_in, signed_in, visit, words
from tests.support.races import at_once
from tests.support.second_factors import set_up_codes
from tests.support.targets import wait_until

FORM = {"current_password": PASSWORD}
ASKED = "If there is an account with this name or e-mail address"


def forget(post: Post, text: str, address: str = "192.0.2.1") -> TestResponse:
    browser = post.app.test_client()
    return browser.post("/login/forgot", data={"email": text}, environ_base={"REMOTE_ADDR": address})


# --- a forgotten password


def test_a_forgotten_password_is_answered_alike_for_known_and_unknown_accounts(
    post: Post, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed: list[list[str]] = []
    execute = statements.Database.execute

    def record(self: Any, sql: str, params: Any, **options: Any) -> Any:
        executed[-1].append(sql)
        return execute(self, sql, params, **options)

    pages = []
    monkeypatch.setattr(statements.Database, "execute", record)
    for text in ("alice@example.com", "alicf@example.com"):
        executed.append([])
        answer = forget(post, text)
        assert answer.status_code == 200
        pages.append(answer.text.replace(text, ""))
    monkeypatch.undo()
    assert pages[0] == pages[1]
    assert ASKED in words(pages[0])
    assert executed[0] == executed[1]
    assert post.box.envelopes == [], "nothing is sent during a request"
    post.deliver()
    assert [str(message["To"]) for message in post.box.messages] == ["alice@example.com"]


@pytest.mark.parametrize("text", ["ALICE@example.com", " alice "])
def test_the_link_signs_in_once_and_then_a_password_can_be_set(post: Post, alice: Client, text: str) -> None:
    forget(post, text)
    post.deliver()
    assert "List-Unsubscribe" not in post.box.last
    path = post.box.url("login")
    browsers = [post.app.test_client() for _ in range(20)]
    answers = at_once(20, lambda number: browsers[number].post(path))
    assert sorted(answer.status_code for answer in answers) == [303] + [410] * 19
    [browser] = filter(is_signed_in, browsers)
    browser.post("/account/password", data={"password": "a new horse"})
    assert signed_in(post.app, password="a new horse")
    assert [browser.get("/login/forgot").status_code, forget(post, "").status_code] == [200, 200]


def test_links_for_a_forgotten_password_are_bounded_by_account_and_client(post: Post, alice: Client) -> None:
    for number in range(4):
        forget(post, "alice", f"192.0.2.{number}")
        forget(post, "ALICE@example.com", f"192.0.2.{number}")
    post.deliver()
    assert len(post.box.envelopes) == 3
    answers = [forget(post, f"nobody{number}", "2001:db8::1") for number in range(11)]
    assert [answer.status_code for answer in answers] == [200] * 10 + [429]
    assert "You have exceeded the limit of 10 requests per hour." in answers[-1].text
    assert forget(post, "alice", "2001:db8:0:1::1").status_code == 200


# --- a new address


def confirmation(post: Post, browser: FlaskClient, email: str = "new@example.com") -> str:
    answer = browser.post("/account/email", data=FORM | {"email": email})
    assert answer.status_code == 303
    post.deliver()
    assert post.box.last["To"] == email
    return post.box.url("account/email")


def address(user: Client) -> str:
    return str(user.get("/api/account").get_json()["data"]["email"])


def test_a_new_address_is_stored_when_its_link_is_confirmed_and_the_old_one_is_told(post: Post, alice: Client) -> None:
    browser = signed_in(post.app)
    path = confirmation(post, browser)
    assert "Open the link that was sent to new@example.com." in browser.get("/account").text
    assert "new@example.com</strong>" in words(browser.get(path).text).replace("<bdi>", "").replace("</bdi>", "")
    assert address(alice) == "alice@example.com"
    answers = at_once(20, lambda _: browser.post(path))
    assert sorted(answer.status_code for answer in answers) == [303] + [410] * 19
    assert address(alice) == "new@example.com"
    assert browser.get(path).status_code == 410
    post.deliver()
    told = [message for message in post.box.messages if message["Subject"] == "Your e-mail address was changed"]
    assert [message["To"] for message in told] == ["alice@example.com"]
    assert "is now new@example.com" in words(text_of(told[0]))


@pytest.mark.parametrize("way", ["page", "api", "administrator", "console of the administrator"])
def test_links_that_were_mailed_to_the_old_address_end_with_it(
    post: Post, alice: Client, admin: Client, way: str
) -> None:
    with post.app.app_context():
        mailed, shown = (session_store.new_link(alice.id, by_admin=by_admin) for by_admin in (False, True))
    browser, new = signed_in(post.app), {"email": "new@example.com"}
    match way:
        case "page":
            answer = browser.post(confirmation(post, browser))
        case "api":
            answer = alice.put("/api/account/update", new)
        case "administrator":
            answer = admin.put(f"/api/user/{alice.id}/update", new)
        case _:
            members = {"suspended": "no", "username": "alice"}
            path = f"/console/administration/users/{alice.id}/edit"
            answer = signed_in(post.app, "admin@example.com").post(path, data=FORM | members | new)
    assert answer.status_code in (200, 303), answer.text
    assert is_signed_in(browser)
    statuses = [post.app.test_client().get(urlsplit(link).path).status_code for link in (mailed, shown)]
    assert statuses == [410, 200]


def test_a_link_to_a_new_address_is_useless_to_others_later_and_for_an_address_in_use(
    post: Post, alice: Client, bob: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = signed_in(post.app)
    path, taken = confirmation(post, browser), confirmation(post, browser, "BOB@example.com")
    for other, status in [(post.app.test_client(), 303), (signed_in(post.app, "bob@example.com"), 410)]:
        assert [other.get(path).status_code, other.post(path).status_code] == [status, status]
    assert browser.post(f"{path}x").status_code == 410
    refused = browser.post(taken)
    assert (refused.status_code, "This e-mail address is already in use." in refused.text) == (400, True)
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: datetime.now(UTC).timestamp() + 3700)
    assert [browser.get(path).status_code, browser.post(path).status_code] == [410, 410]
    assert address(alice) == "alice@example.com"


def test_a_wrong_password_sends_no_link_to_a_new_address(post: Post, alice: Client) -> None:
    browser = signed_in(post.app)
    answer = browser.post("/account/email", data={"email": "new@example.com", "current_password": "wrong"})
    assert answer.status_code == 400
    post.deliver()
    assert post.box.subjects == ["A new browser signed in to linkmgr"]


def test_the_api_stores_a_new_address_at_once_and_tells_the_old_one(
    post: Post, register: Callable[..., Client]
) -> None:
    dana = register("dana", via=post.app)
    answer = dana.put("/api/account/update", {"email": "new@example.com"}, headers={"Idempotency-Key": "1"})
    assert answer.get_json()["data"]["email"] == "new@example.com"
    dana.put("/api/account/update", {"email": "new@example.com"})
    assert dana.put("/api/account/update", {"email": "new@example.com", "password": "another horse"}).status_code == 200
    assert post.box.envelopes == []
    post.deliver()
    sent = [(str(message["To"]), str(message["Subject"])) for message in post.box.messages]
    assert sorted(sent) == [
        ("dana@example.com", "Your e-mail address was changed"),
        ("new@example.com", "A change of your account"),
    ]


def test_invitations_do_not_keep_the_message_about_a_new_address_back(
    post: Post, register: Callable[..., Client]
) -> None:
    bert, dana = (register(name, via=post.app) for name in ("bert", "dana"))
    for number in range(8):
        email = "dana@example.com" if number % 2 else "Dana@example.com"
        invitation = bert.add("/api/member/add", {"email": email, "role": "viewer"})
        bert.delete(f"/api/member/{invitation}/delete")
    post.deliver()
    assert len(post.box.messages) == 5, "in any spelling"
    dana.put("/api/account/update", {"email": "new@example.com"})
    post.deliver()
    assert (post.box.last["To"], post.box.last["Subject"]) == ("dana@example.com", "Your e-mail address was changed")


# --- security notices


def test_a_browser_that_is_not_known_is_told_by_password_and_by_link(post: Post, alice: Client) -> None:
    browser = signed_in(post.app)
    browser.post("/account/sign-out")
    browser.post("/login", data={"email": "alice", "password": PASSWORD})
    with post.app.app_context():
        path = session_store.new_link(alice.id).removeprefix("http://127.0.0.1:5000")
    other = post.app.test_client()
    other.post(path, headers={"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"})
    other.post("/login", data={"email": "alice", "password": "wrong"})
    post.deliver()
    assert post.box.subjects == ["A new browser signed in to linkmgr"] * 2
    assert "An unknown browser signed in to the account alice on" in words(text_of(post.box.messages[0]))
    assert "Firefox on Linux signed in" in words(text_of(post.box.last))


def test_changes_of_passwords_and_keys_are_told(post: Post, alice: Client) -> None:
    browser = signed_in(post.app)
    post.deliver()
    assert browser.post("/account/key/replace", data=FORM).status_code == 200
    browser.post("/console/keys/new", data=FORM | {"name": "Deploy", "scopes": "links:read"})
    browser.post("/console/keys/new", data={"name": "Other", "scopes": "links:read", "current_password": "wrong"})
    browser.post("/account/password", data=FORM | {"password": "a new horse"})
    post.app.test_cli_runner().invoke(args=["users", "password", "alice", "--password-stdin"], input="a newer horse\n")
    post.deliver()
    changes = [words(text_of(message)).partition(" This ")[0] for message in post.box.messages[1:]]
    expected = ["The API key was replaced.", "The API key Deploy was created."] + ["The password was changed."] * 2
    assert sorted(changes) == sorted(expected)


def test_changes_of_factors_are_told(post: Post, alice: Client, sql: Sql) -> None:
    browser = signed_in(post.app)
    post.deliver()
    set_up_codes(browser)
    browser.post("/account/factors/recovery-codes")
    [factor] = sql("SELECT id FROM factors")
    browser.post(f"/account/factors/{factor['id']}/remove")
    set_up_codes(browser)
    post.app.test_cli_runner().invoke(args=["factors", "reset", "alice"])
    post.deliver()
    changes = [words(text_of(message)).partition(" This ")[0] for message in post.box.messages[1:]]
    assert changes == [
        "One-time codes were set up.",
        "The recovery codes were replaced.",
        "A passkey or the one-time codes were removed.",
        "One-time codes were set up.",
        "A passkey or the one-time codes were removed.",
    ]


def test_an_address_that_an_administrator_changes_is_told(post: Post, alice: Client, admin: Client) -> None:
    browser = signed_in(post.app, "admin@example.com")
    post.deliver()
    path, members = f"/console/administration/users/{alice.id}/edit", {"suspended": "no", "username": "alice"}
    for email in ("new@example.com", "new@example.com"):
        answer = browser.post(path, data=FORM | members | {"email": email})
        assert answer.status_code == 303, answer.text
    post.deliver()
    assert [message["To"] for message in post.box.messages[1:]] == ["alice@example.com"]
    assert "is now new@example.com" in words(text_of(post.box.last))


# --- messages that users can turn off


def test_one_click_without_a_session_turns_off_a_kind_of_message(post: Post, alice: Client, sql: Sql) -> None:
    with post.app.app_context():
        hooks().notify(alice.id, "webhook_off", webhook="Shop", webhook_id=1, reason="")
    post.deliver()
    url = str(post.box.last["List-Unsubscribe"]).strip("<>")
    stranger = post.app.test_client()
    one_click = {"data": {"List-Unsubscribe": "One-Click"}}
    assert "Stop these messages?" in stranger.get(url).text
    off = "SELECT no_mail FROM users WHERE id = %(id)s"
    assert sql(off, id=alice.id) == [{"no_mail": ["weekly_report"]}], "a GET changes nothing"
    for _ in range(2):
        assert "You get no more of these messages" in stranger.post(url, **one_click).text
    assert sql(off, id=alice.id) == [{"no_mail": ["weekly_report", "webhook_off"]}]
    assert stranger.post(f"{url}x", **one_click).status_code == 404
    assert stranger.post(url, **one_click, headers={"Origin": "https://evil.example"}).status_code == 403


def test_users_choose_their_messages_on_the_account_page(post: Post, alice: Client, sql: Sql) -> None:
    browser = signed_in(post.app)
    checked = re.findall(r'name="message" value="(\w+)" checked', browser.get("/account").text)
    assert checked == ["key_expires", "plan_limit", "import_finished", "webhook_off"]
    answer = browser.post("/account/mail", data={"message": ["weekly_report", "plan_limit", "password_reset"]})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/account")
    assert re.findall(r'value="(\w+)" checked', browser.get("/account").text) == ["plan_limit", "weekly_report"]
    [stored] = sql("SELECT no_mail FROM users WHERE id = %(id)s", id=alice.id)
    assert stored["no_mail"] == ["key_expires", "import_finished", "webhook_off"]
    assert post.app.test_client().post("/account/mail").headers["Location"] == "/login"


def test_keys_that_expire_within_a_week_are_told_once(
    make_app: Callable[..., Flask], post: Post, alice: Client, bob: Client, sql: Sql
) -> None:
    later, expires = (f"now() + interval '{days} days'" for days in (8, 6))
    for name, end in [("Later", later), ("Soon", expires), ("Gone", "now() - interval '1 day'"), ("Never", "NULL")]:
        sql(
            "INSERT INTO api_keys (user_id, name, prefix, digest, scopes, expires)"
            f" VALUES (%(id)s, %(name)s::text, 'lmk_', %(name)s::text::bytea, '{{}}', {end}) RETURNING 1",
            id=alice.id,
            name=name,
        )
    for _ in range(2):
        post.look()
    assert post.box.subjects == ["The API key Soon expires soon"]
    assert "/console/keys" in text_of(post.box.last)
    sql("UPDATE api_keys SET expires = now() + interval '5 days' WHERE name = 'Soon' RETURNING 1")
    post.look()
    assert len(post.box.envelopes) == 2, "it has another end"
    url = f"smtp://127.0.0.1:{post.box.port}"
    post.app = make_app(mail_url=url, mail_from="links@example.org", key_lifetime_days="30")
    sql("UPDATE users SET key_created = now() - interval '25 days' WHERE id = %(id)s RETURNING 1", id=bob.id)
    post.look()
    assert (post.box.last["To"], post.box.last["Subject"]) == ("bob@example.com", "Your API key expires soon")
    assert len(post.box.envelopes) == 3


def test_limits_of_a_plan_are_told_once_a_month(post: Post, register: Callable[..., Client], sql: Sql) -> None:
    dana = register("dana", plan="Free")
    sql(
        "UPDATE plans SET limits = jsonb_set(jsonb_set(limits::jsonb, '{links}', '2'), '{clicks}', '5')::json"
        " WHERE name = 'Free' RETURNING 1"
    )
    try:
        dana.add("/api/url/add", {"url": "https://example.com/a"})
        post.look()
        assert post.box.subjects == []
        dana.add("/api/url/add", {"url": "https://example.com/b"})
        sql("INSERT INTO visit_months VALUES (%(id)s, this_month(), false, false, 5, 1) RETURNING 1", id=dana.id)
        for _ in range(2):
            post.look()
        texts = sorted(words(text_of(message))[:60] for message in post.box.messages)
        assert texts == [
            "Your plan counts 5 visits in a month, and this month has had",
            "Your plan has 2 links, and all are used. Delete some before ",
        ]
        sql("UPDATE mailed SET about = replace(about, this_month()::text, '2020-01-01') RETURNING 1")
        post.look()
        assert len(post.box.envelopes) == 4
    finally:
        sql(
            "UPDATE plans SET limits = jsonb_set(jsonb_set(limits::jsonb, '{links}', '100'), '{clicks}', '10000')::json"
            " WHERE name = 'Free' RETURNING 1"
        )


def test_the_end_of_an_import_is_told(post: Post, alice: Client) -> None:
    csv = "url,alias\nhttps://example.com/a,a1\nnot a url,b1\n"
    answer = alice.call("POST", "/api/imports?name=old.csv", data=csv, content_type="text/csv")
    assert answer.status_code == 200, answer.text
    assert post.box.envelopes == []
    post.deliver()
    assert post.box.subjects == ["Your import is complete"]
    text = words(text_of(post.box.last))
    assert "1 added 0 changed 0 skipped 1 failed" in text
    assert f"/console/imports/{answer.get_json()['id']}" in text


def test_a_webhook_that_is_turned_off_is_told_once(post: Post, alice: Client, sql: Sql) -> None:
    members = {"name": "Shop", "url": "https://example.com/hook", "events": ["link.created"]}
    webhook = alice.add("/api/webhooks", members)
    event = "INSERT INTO events (user_id, type, data, created) VALUES (%(id)s, 'a', '{}', now()) RETURNING number"
    [stored] = sql(event, id=alice.id)
    sent = "INSERT INTO deliveries (webhook_id, number, attempts) VALUES (%(webhook)s, %(number)s, 1) RETURNING id"
    for _ in range(2):
        [delivery] = sql(sent, webhook=webhook, number=stored["number"])
        result = {"attempts": 1, "delivered": False, "gone": True, "status": 410, "response": "", "milliseconds": 1}
        with post.app.app_context():
            deliveries.store_results([result | {"id": delivery["id"], "delay": None, "retry_after": None}])
    post.deliver()
    assert post.box.subjects == ["The webhook Shop was turned off"]
    assert "The receiver answered 410 Gone." in words(text_of(post.box.last))


# --- the weekly report


def test_the_weekly_report_has_the_figures_of_the_statistics(
    post: Post, alice: Client, sql: Sql, store: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = ZoneInfo("America/New_York")
    today = datetime.now(zone).date()
    monday = today - timedelta(days=today.weekday())
    since = (today - monday).days + 7
    spring = alice.add("/api/campaign/add", {"name": "Spring"})
    links = []
    for number in range(7):
        body = {"url": f"https://example.com/{number}", "custom": f"link-{number}", "metatitle": f"Page {number}"}
        links.append(alice.add("/api/url/add", body | ({"campaign": spring} if number < 3 else {})))
    visits = [
        visit(link, days)
        for number, link in enumerate(links)
        for days in range(since - 5, since + 9)
        for _ in range(number + 1 if days <= since else 9 - number)
    ]
    store(visits)
    sql("UPDATE users SET no_mail = '{}', timezone = %(zone)s RETURNING 1", zone=zone.key)
    monkeypatch.setattr(look, "_EARLIEST", 0)
    monkeypatch.setattr(look, "_LATEST", 7 * 24)
    for _ in range(2):
        post.look()
    assert len(post.box.envelopes) == 1, "once a week"
    text = text_of(post.box.last)
    browser = signed_in(post.app)

    def figures(path: str) -> dict[str, str]:
        lines = browser.get(f"/console/statistics?period=last_week&format=csv&{path}").text.splitlines()
        rows = [line.split(",") for line in lines[1:]]
        return {row[0]: row[1:] for row in rows}  # type: ignore[misc]

    days = figures("table=time")
    total = sum(int(row[0]) for row in days.values())
    before = sum(int(row[-1]) for row in days.values())
    assert total
    assert post.box.last["Subject"] == f"{total:,} visits last week"
    assert f"after {before:,} in the week before" in words(text)
    targets = figures("dimension=target")
    top = sorted(targets.items(), key=lambda item: -int(item[1][1]))[:5]
    rows = re.findall(r"^ +([\d,]+)  (.+)$", text, re.MULTILINE)
    assert [(number, name.split(" (")[0]) for number, name in rows[:5]] == [(row[1], name) for name, row in top]
    [(number, name)] = rows[5:]
    assert (number, name) == (figures("dimension=campaign")["Spring"][0], "Spring")


@pytest.mark.parametrize(
    ("now", "zone", "monday"),
    [
        ("2026-11-30T05:59", "UTC", None),
        ("2026-11-30T06:00", "UTC", "2026-11-30"),
        ("2026-12-02T05:59", "UTC", "2026-11-30"),
        ("2026-12-02T06:00", "UTC", None),
        ("2026-11-29T21:00", "Asia/Tokyo", "2026-11-30"),
        ("2026-11-30T10:59", "America/New_York", None),
        ("2026-11-30T11:00", "America/New_York", "2026-11-30"),
    ],
)
def test_the_weekly_report_is_due_on_monday_morning_in_the_time_zone_of_the_user(
    now: str, zone: str, monday: str | None
) -> None:
    due = look._monday(datetime.fromisoformat(now).replace(tzinfo=UTC), zone)
    assert (due and due.isoformat()) == monday


def test_a_look_reads_some_users_at_a_time_and_waits_while_many_messages_wait(
    post: Post, register: Callable[..., Client], sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        register(f"user{number}")
    sql("UPDATE users SET no_mail = '{}' RETURNING 1")
    monkeypatch.setattr(look, "_EARLIEST", 0)
    monkeypatch.setattr(look, "_LATEST", 7 * 24)
    monkeypatch.setattr("linkmgr.features.mail.repository.MAX_BATCH", 2)
    with monkeypatch.context() as patch:
        patch.setattr(look, "MAX_WAITING", 0)
        post.look()
    assert post.box.subjects == []
    sql("UPDATE jobs SET due = now() RETURNING 1")
    post.deliver()
    assert post.box.subjects == ["0 visits last week"] * 5
    assert post.waiting() == []


def test_one_process_looks_every_half_hour(post: Post, sql: Sql) -> None:
    with post.app.app_context():
        for _ in range(3):
            look._next[0] = float("-inf")
            look.begin()
    assert len(post.waiting()) == 1


def test_the_pages_are_accessible_and_a_browser_follows_the_links_of_messages(
    post: Post, alice: Client, browser: Browser, serve: Callable[..., str]
) -> None:
    base = serve("--workers", "1", mail_url=f"smtp://127.0.0.1:{post.box.port}", mail_from="links@example.org")

    def follow(number: int, path: str) -> None:
        wait_until(lambda: len(post.box.envelopes) == number)
        browser.open(base + post.box.url(path))

    browser.open(f"{base}/login")
    browser.click("Forgot your password?")
    browser.wait_for("/login/forgot")
    browser.find("#email").send_keys("alice")
    browser.click("Send the link")
    browser.wait_for_text("is on its way")
    problems = faults(browser)
    follow(1, "login")
    browser.wait_for("/console")
    browser.open(f"{base}/account")
    problems += faults(browser)
    browser.click("Save messages")
    browser.wait_for_text("Your choice of messages has been saved.")
    browser.find("#email").send_keys("new@example.com")
    browser.find("#email-password").send_keys(PASSWORD)
    browser.click("Change e-mail address")
    browser.wait_for_text("Open the link that was sent to new@example.com.")
    follow(3, "account/email")
    problems += faults(browser)
    browser.click("Change e-mail address")
    browser.wait_for_text("Your e-mail address is now new@example.com.")
    with post.app.app_context():
        hooks().notify(alice.id, "plan_limit", counted="links", most=3)
    follow(5, "account/unsubscribe")
    problems += faults(browser)
    browser.click("Stop these messages")
    browser.wait_for_text("You get no more of these messages")
    assert problems == [], "\n".join(problems)
