"""A mail server on loopback, and services that send to it."""

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from flask import Flask

from linkmgr.core.database import jobs
from linkmgr.features.mail import outgoing
from tests.support.certificates import self_signed
from tests.support.factories import Sql
from tests.support.servers import free_port

SENDER = "Links & Co <links@example.org>"


class Mailbox:
    """The messages that a server took. It answers with each of `answers` once before it takes one."""

    def __init__(self) -> None:
        self.envelopes: list[Any] = []
        self.answers: list[str] = []
        self.at_recipient = False  # it answers so to a recipient, not to a message
        self.farewell = "221 Bye"
        self.recipient_seconds = self.message_seconds = 0.0  # until it answers to them
        self.port = 0

    @property
    def messages(self) -> list[EmailMessage]:
        parsed = [message_from_bytes(envelope.content, policy=policy.default) for envelope in self.envelopes]
        assert all(not part.defects for message in parsed for part in message.walk())
        return parsed

    @property
    def subjects(self) -> list[str]:
        return [str(message["Subject"]) for message in self.messages]

    @property
    def last(self) -> EmailMessage:
        return self.messages[-1]

    def url(self, path: str) -> str:
        """Return the path of the link in the text of the last message that begins with this path."""
        [line] = [line for line in text_of(self.last).splitlines() if f"/{path}/" in line]
        return line[line.index(f"/{path}/") :]


class _Handler:
    def __init__(self, box: Mailbox) -> None:
        self.box = box

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:
        await asyncio.sleep(self.box.recipient_seconds)
        if self.box.at_recipient and self.box.answers:
            return self.box.answers.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_QUIT(self, _server: Any, _session: Any, _envelope: Any) -> str:
        return self.box.farewell

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        if self.box.answers and not self.box.at_recipient:
            return self.box.answers.pop(0)
        self.box.envelopes.append(envelope)
        await asyncio.sleep(self.box.message_seconds)
        return "250 taken as number 17"


def text_of(message: EmailMessage) -> str:
    part = message.get_body(("plain",))
    assert part
    return str(part.get_content()).replace("\r\n", "\n")


def html_of(message: EmailMessage) -> str:
    part = message.get_body(("html",))
    assert part
    return str(part.get_content())


class _Seen(HTMLParser):
    """The words of a page and its links."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [str(value) for name, value in attrs if name == "href"]
        assert tag not in ("img", "link", "script", "iframe"), "nothing is fetched"

    def handle_data(self, data: str) -> None:
        self.words += data.split()


def seen(message: EmailMessage) -> tuple[list[str], list[str]]:
    """Return the words of the HTML part behind its heading, and its links."""
    reader = _Seen()
    reader.feed(html_of(message).split("</h1>")[1])
    return reader.words, reader.links


Start = Callable[..., Mailbox]


@pytest.fixture
def start_mailbox() -> Iterator[Start]:
    """Start a server, by default without TLS and authentication."""
    running: list[Controller] = []

    def start(**options: Any) -> Mailbox:
        box = Mailbox()
        box.port = free_port()
        controller = Controller(_Handler(box), hostname="127.0.0.1", port=box.port, **options)
        controller.start()
        running.append(controller)
        return box

    yield start
    for controller in running:
        controller.stop()


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the options of a server that requires STARTTLS and a password, whose certificate is trusted."""
    public, private = self_signed("localhost")
    file = tmp_path / "mail.pem"
    file.write_bytes(private + public)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)

    def check(*args: Any) -> AuthResult:
        return AuthResult(success=(args[-1].login, args[-1].password) == (b"us@er", b"p:w"))

    return {
        "tls_context": context,
        "require_starttls": True,
        "auth_required": True,
        "authenticator": check,
    }


PostOf = Callable[..., "Post"]


class Post:
    """A service with a mail server."""

    def __init__(self, app: Flask, box: Mailbox, sql: Sql) -> None:
        self.app, self.box, self.sql = app, box, sql

    def deliver(self) -> None:
        """Run the jobs that are due, and those that they enqueue."""
        with self.app.app_context():
            while jobs.run_next(lambda _: False) or jobs.fetch_next(lambda _: False):
                pass

    def look(self) -> None:
        """Look for what users get a message about, and send it."""
        self.sql("INSERT INTO jobs (task, argument) VALUES ('mail_look', '{\"after\": 0}') RETURNING 1")
        self.deliver()

    def waiting(self) -> list[dict[str, Any]]:
        return self.sql("SELECT argument, due - now() AS pause FROM jobs WHERE task LIKE 'mail%%'")

    def age(self, seconds: float) -> None:
        """Let the messages that wait be older, and due."""
        self.sql(
            "UPDATE jobs SET due = now(), argument = argument || jsonb_build_object('enqueued', %(at)s::float8)"
            " RETURNING 1",
            at=time.time() - seconds,
        )
        outgoing._down_until[0] = float("-inf")


@pytest.fixture
def post_of(make_app: Callable[..., Flask], sql: Sql) -> PostOf:
    """Return a service that sends to a server. `host` and `query` are parts of its URL."""

    def make(box: Mailbox, host: str = "localhost", query: str = "") -> Post:
        outgoing._down_until[0] = float("-inf")
        return Post(make_app(mail_url=f"smtp://{host}:{box.port}{query}", mail_from=SENDER), box, sql)

    return make


@pytest.fixture(scope="session")
def _shared_box() -> Iterator[Mailbox]:
    box = Mailbox()
    box.port = free_port()
    controller = Controller(_Handler(box), hostname="127.0.0.1", port=box.port)
    controller.start()
    yield box
    controller.stop()


@pytest.fixture
def post(app: Flask, app_with: Callable[..., Flask], _shared_box: Mailbox, sql: Sql) -> Post:
    """A service with a mail server, which tests share."""
    _shared_box.envelopes, _shared_box.answers, _shared_box.at_recipient = [], [], False
    _shared_box.farewell, _shared_box.recipient_seconds, _shared_box.message_seconds = "221 Bye", 0, 0
    outgoing._down_until[0] = float("-inf")
    url = f"smtp://127.0.0.1:{_shared_box.port}"
    return Post(app_with(mail_url=url, mail_from=SENDER), _shared_box, sql)
