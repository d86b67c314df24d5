"""E-mail messages: what they say, and how they reach a mail server."""

import re
import socket
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from linkmgr.core.database import jobs
from linkmgr.core.hooks import hooks
from linkmgr.core.settings import InvalidSetting
from linkmgr.features.mail import messages, smtp
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.mailbox import SENDER, Mailbox, Post, PostOf, Start, seen, text_of
from tests.support.pages import signed_in

HOSTILE = "Dana\r\nBcc: all@example.com\n\n[Click](url)\t<b>\u202e\u2028 Öl"
VALUES: dict[str, dict[str, Any]] = {
    "invitation": {"inviter": "Dana <b>", "account": "Acme & Söhne", "role": "editor", "url": "https://go.test/i/1"},
    "confirm_email": {"email": "new@example.com"},
    "email_changed": {"email": "new@example.com"},
    "new_browser": {"browser": "Firefox", "system": "Linux"},
    "account_changed": {"change": "A passkey was added."},
    "key_expires": {"key": "Deploy", "expires": "2026-12-01 10:00:00+00"},
    "plan_limit": {"counted": "links", "most": 1000},
    "import_finished": {"import_id": 7, "file": "links.csv", "state": "done", "problem": "Titles were cut."}
    | {"made": 1204, "changed": 0, "skipped": 3, "failed": 12},
    "webhook_off": {"webhook": "Shop", "webhook_id": 7, "reason": "No delivery succeeded for a week."},
    "weekly_report": {"monday": "2026-11-30"},
}


def send(post: Post, user: Client, message: str, **values: Any) -> None:
    with post.app.app_context():
        hooks().notify(user.id, message, **values)
    post.deliver()


@pytest.mark.parametrize("name", sorted(messages.MESSAGES.keys() - {"test"}))
def test_both_parts_of_a_message_say_the_same_and_fetch_nothing(post: Post, alice: Client, sql: Sql, name: str) -> None:
    sql("UPDATE users SET no_mail = '{}' RETURNING 1")
    send(post, alice, name, **VALUES.get(name, {}))
    [message], kind = post.box.messages, messages.MESSAGES[name]
    words, links = seen(message)
    text = text_of(message)
    written = re.sub(r":\nhttp\S+$|^--$", "", text, flags=re.MULTILINE)
    assert written.split() == words
    assert re.findall(r":\n(http\S+)$", text, re.MULTILINE) == links != []
    assert max(map(len, written.splitlines())) <= 76
    assert message["Auto-Submitted"] == "auto-generated"
    assert (message["From"], message["To"]) == (SENDER, "alice@example.com")
    assert re.fullmatch(r"<[0-9a-f-]{36}@example\.org>", str(message["Message-ID"]))
    assert ("List-Unsubscribe" in message) == bool(kind.label) == ("/unsubscribe/" in text)
    if kind.label:
        assert message["List-Unsubscribe"] == f"<{links[-1]}>"
        assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


@pytest.mark.parametrize("name", ["account_changed", "email_changed", "new_browser"])
@pytest.mark.parametrize("has_passwords", [True, False])
def test_a_message_speaks_of_passwords_if_there_are_any(
    post: Post, app_with: Callable[..., Flask], alice: Client, *, name: str, has_passwords: bool
) -> None:
    url = f"smtp://127.0.0.1:{post.box.port}"
    without = app_with(mail_url=url, mail_from=SENDER, passwords=str(int(has_passwords)))
    send(Post(without, post.box, post.sql), alice, name, **VALUES[name])
    assert ("password" in text_of(post.box.last)) == has_passwords


def test_a_value_adds_no_header_and_no_block(post: Post, alice: Client) -> None:
    values = {"inviter": HOSTILE, "account": HOSTILE, "role": "viewer", "url": "https://go.test/"}
    send(post, alice, "invitation", to="dana@example.com", **values)
    [message] = post.box.messages
    name = "Dana Bcc: all@example.com [Click](url) <b> Öl"
    assert message["Subject"] == f"{name} invites you to {name}"
    assert (message["Bcc"], message["To"]) == (None, "dana@example.com")
    assert post.box.envelopes[0].rcpt_tos == ["dana@example.com"]
    assert seen(message)[1] == ["https://go.test/"]
    assert text_of(message).startswith(f"{name} invites you"[:60])


@pytest.mark.parametrize("is_able", [True, False])
@pytest.mark.parametrize(
    ("address", "sent_to"),
    [("dana@bücher.example", "dana@xn--bcher-kva.example"), ("döna@example.com", "döna@example.com")],
)
def test_an_address_beyond_ascii_is_served_if_the_server_can(
    post_of: PostOf, start_mailbox: Start, alice: Client, *, address: str, sent_to: str, is_able: bool
) -> None:
    box = start_mailbox(enable_SMTPUTF8=is_able)
    post = post_of(box)
    send(post, alice, "account_changed", to=address, change="Nothing.")
    expected = [[sent_to]] if is_able or sent_to.isascii() else []
    assert [envelope.rcpt_tos for envelope in box.envelopes] == expected
    assert post.waiting() == []


# --- the server


def test_a_message_is_sent_after_starttls_and_with_a_password(
    post_of: PostOf, start_mailbox: Start, tls: dict[str, Any], alice: Client
) -> None:
    box = start_mailbox(**tls)
    for host, is_sent in [
        ("us%40er:wrong@localhost", 0),
        ("us%40er:p%3Aw@127.0.0.1", 0),
        ("us%40er:p%3Aw@localhost", 1),
    ]:
        post = post_of(box, host, "?starttls=1")
        send(post, alice, "account_changed", change=host)
        assert len(box.envelopes) == is_sent, "the password and the name in the certificate must be right"
    post.age(60)
    post.deliver()
    assert len(box.envelopes) == 3
    assert post.waiting() == []


def test_a_certificate_that_nobody_has_signed_is_refused(
    post_of: PostOf, start_mailbox: Start, tls: dict[str, Any], alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    plain, secret = start_mailbox(), start_mailbox(tls_context=tls["tls_context"])
    for box in (plain, secret):
        post = post_of(box, query="?starttls=1")
        send(post, alice, "account_changed", change="")
        assert box.envelopes == []
    assert len(post.waiting()) == 2


@pytest.mark.parametrize("at_recipient", [True, False])
def test_a_message_that_is_refused_for_a_while_is_sent_again_with_its_id(
    post: Post, alice: Client, at_recipient: bool
) -> None:
    post.box.answers, post.box.at_recipient = ["451 later", "450 later"], at_recipient
    send(post, alice, "account_changed", change="")
    [job] = post.waiting()
    assert 25 < job["pause"].total_seconds() < 35
    post.age(7200)
    post.deliver()
    assert 7000 < post.waiting()[0]["pause"].total_seconds() < 7400, "the pauses grow"
    post.age(80_000)
    post.deliver()
    assert post.box.last["Message-ID"] == f"<{job['argument']['id']}@example.org>"
    assert post.waiting() == []


@pytest.mark.parametrize(
    ("answer", "age", "is_left"), [("550 unknown", 0, 0), ("451 later", 86300, 1), ("451 later", 86500, 0)]
)
def test_a_message_is_given_up_after_a_day_or_a_lasting_refusal(
    post: Post, alice: Client, caplog: pytest.LogCaptureFixture, *, answer: str, age: int, is_left: int
) -> None:
    post.box.answers = ["451 later", answer]
    send(post, alice, "account_changed", change="")
    post.age(age)
    post.deliver()
    assert (len(post.box.envelopes), len(post.waiting())) == (0, is_left)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING" if is_left else "ERROR"]
    assert f"message account_changed to user {alice.id} " in caplog.text


def test_a_server_that_is_down_or_hangs_delays_messages_and_is_left_alone_meanwhile(
    post_of: PostOf, alice: Client, bob: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp, "SECONDS", 0.2)
    box = Mailbox()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        box.port = silent.getsockname()[1]
        post = post_of(box, "127.0.0.1")
        for user in (alice, bob):
            send(post, user, "account_changed", change="")
        silent.settimeout(5)
        silent.accept()[0].close()
        silent.settimeout(0.1)
        with pytest.raises(TimeoutError):
            silent.accept()
    post.age(10)
    post.deliver()
    assert len(post.waiting()) == 2, "nothing listens any more"


def test_a_server_that_looks_at_a_message_for_long_gets_it_once(
    post: Post, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp, "SECONDS", 0.3)
    post.box.message_seconds = 1
    send(post, alice, "account_changed", change="")
    assert (len(post.box.envelopes), post.waiting()) == (1, [])


def test_a_message_is_not_sent_when_another_process_could_take_its_job_before_the_answer(
    post: Post, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert smtp.DEADLINE < jobs.LEASE_SECONDS
    monkeypatch.setattr(smtp, "DEADLINE", smtp.ANSWER_SECONDS + 0.5)
    post.box.recipient_seconds = 1
    send(post, alice, "account_changed", change="")
    assert (len(post.box.envelopes), len(post.waiting())) == (0, 1)
    post.box.recipient_seconds = 0
    post.age(10)
    post.deliver()
    assert (len(post.box.envelopes), post.waiting()) == (1, [])


def test_a_message_is_not_sent_again_because_of_what_follows_it(post: Post, alice: Client) -> None:
    post.box.farewell = "451 not now"
    send(post, alice, "account_changed", change="")
    assert (len(post.box.envelopes), post.waiting()) == (1, [])


def test_a_message_that_was_turned_off_or_whose_user_is_gone_is_not_sent(
    post: Post, alice: Client, bob: Client, admin: Client, sql: Sql
) -> None:
    with post.app.app_context():
        for user in (alice, bob):
            hooks().notify(user.id, "plan_limit", counted="links", most=3)
    sql("UPDATE users SET no_mail = '{plan_limit}' WHERE id = %(id)s RETURNING 1", id=alice.id)
    assert admin.delete(f"/api/user/{bob.id}/delete").status_code == 200
    post.deliver()
    send(post, alice, "plan_limit", counted="links", most=3)
    assert (post.box.envelopes, post.waiting()) == ([], [])


def test_the_messages_to_a_user_and_to_an_address_are_bounded(post: Post, alice: Client, bob: Client) -> None:
    for _ in range(12):
        send(post, alice, "account_changed", change="")
    assert len(post.box.envelopes) == 10
    send(post, alice, "email_changed", email="new@example.com")
    for _ in range(4):
        for user in (alice, bob):
            values = {"inviter": "a", "account": "b", "role": "c", "url": "https://go.test/"}
            send(post, user, "invitation", to="dana@example.com", **values)
    assert len(post.box.envelopes) == 10 + 1 + 5


def test_values_are_encrypted_while_they_wait(post: Post, alice: Client, sql: Sql) -> None:
    with post.app.app_context():
        hooks().notify(alice.id, "invitation", to="dana@example.com", url="https://go.test/i/secret")
    [job] = post.waiting()
    assert job["argument"].keys() == {"user_id", "message", "values", "id", "enqueued"}
    assert not re.search("secret|dana", str(job))


# --- settings and command


def test_the_command_sends_a_message_at_once_and_prints_the_response(
    post: Post, app: Flask, caplog: pytest.LogCaptureFixture
) -> None:
    run = post.app.test_cli_runner().invoke
    result = run(args=["mail", "test", "dana@bücher.example"])
    place = f"127.0.0.1:{post.box.port}"
    assert (result.exit_code, result.output) == (0, f"{place} took the message: taken as number 17\n")
    assert post.box.last["To"] == "dana@xn--bcher-kva.example"
    post.box.answers = ["550 unknown user"]
    result = run(args=["mail", "test", "dana@example.com"])
    assert result.exit_code == 1
    assert f"{place} did not take the message: (550, b'unknown user')" in result.output
    for wrong in ("dana", "dana@", "a b@example.com", "dana@example.com\nBcc: x@example.com"):
        assert "is not an e-mail address" in run(args=["mail", "test", wrong]).output, wrong
    assert "LINKMGR_MAIL_URL is not set." in app.test_cli_runner().invoke(args=["mail", "test", "a@b.test"]).output


def test_a_server_without_a_sender_stops_the_start(make_app: Callable[..., Flask]) -> None:
    with pytest.raises(InvalidSetting, match=r"^LINKMGR_MAIL_FROM must be set too if LINKMGR_MAIL_URL is set\.$"):
        make_app(mail_url="smtp://localhost")


def test_tls_is_required_of_servers_that_are_not_on_this_machine(make_app: Callable[..., Flask]) -> None:
    def required(url: str) -> tuple[bool, bool]:
        server = make_app(mail_url=url, mail_from=SENDER).extensions["linkmgr_settings"].mail_url
        return server.is_tls, server.starttls

    assert required("smtp://mail.example.org") == (False, True)
    assert required("smtp://10.0.0.1:25?starttls=0") == (False, False)
    assert required("smtp://[::1]:25") == required("smtp://localhost") == (False, False)
    assert required("smtps://mail.example.org") == (True, False)


def test_without_a_server_pages_are_as_without_the_feature(
    make_app: Callable[..., Flask], app: Flask, alice: Client, sql: Sql
) -> None:
    without = make_app(["-mail"])
    pages = []
    for service in (app, without):
        browser = signed_in(service)
        sql("UPDATE sessions SET created = '2026-11-21' RETURNING 1")
        pages.append([service.test_client().get("/login").text, browser.get("/account").text])
        pages[-1].append(service.test_client().get("/login/forgot").text)
        assert service.test_client().get("/account/unsubscribe/x").status_code == 404
    assert pages[0][0] == pages[1][0]
    assert "An administrator can send you a sign-in link." in pages[0][0]
    assert not re.search("E-mail messages|unsubscribe|We send", pages[0][1])
    documents = [service.test_client().get("/api/openapi.json").text for service in (app, without)]
    assert documents[0] == documents[1]
    assert sql("SELECT FROM jobs") == []
