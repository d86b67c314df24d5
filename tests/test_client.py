"""A client generated from the document creates, reads, changes and deletes each resource."""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MANY, Client
from tests.support.factories import Sql

pytestmark = pytest.mark.services

Members = dict[str, Any]
FILES = "(text/csv|application/(zip|gzip|sql|x-ndjson))"


@dataclass(frozen=True)
class Resource:
    """The names in the generated client: the package of the operations, and the prefix of their names."""

    package: str
    name: str
    new: Members
    changes: Members
    changed: Members = field(default_factory=dict)  # members on read that differ from those sent
    key: str = "data"  # the member of the response that holds the record
    edited: str = "name"  # a member that is read, changed and written back
    new_value: str = "Edited"
    follows: frozenset[str] = frozenset()  # members that change with it


RESOURCES = [
    Resource(
        "links",
        "links",
        {"url": "https://example.com/a"},
        {"metatitle": "Sale"},
        {"title": "Sale"},
        "details",
        "metatitle",
        follows=frozenset({"title"}),
    ),
    Resource("bio_pages", "bio", {"name": "Dana"}, {"theme": "ocean", "links": []}),
    Resource(
        "branded_domains",
        "domains",
        {"domain": "https://brand.example.net", "redirectroot": "https://example.com/"},
        {"redirectroot": None, "redirect404": "https://example.com/404"},
        {"redirectroot": "https://example.com/", "redirect404": "https://example.com/404"},
        edited="redirect404",
        new_value="https://example.com/edited",
    ),
    Resource("splash_pages", "splash", {"name": "Wait", "counter": 3}, {"counter": 9}),
    Resource("cta_overlays", "overlay", {"type": "poll", "name": "Tea?"}, {"position": "top"}),
    Resource("pixels", "pixels", {"type": "bing", "name": "Shop", "tag": "1"}, {"tag": "2"}, edited="tag"),
    Resource(
        "qr_codes",
        "qr",
        {"type": "vcard", "data": {"fname": "Dana"}, "name": "Card"},
        {"data": {"fname": "Dan"}, "name": "Dan"},
        {"name": "Dan"},
        "details",
    ),
    Resource("campaigns", "campaigns", {"name": "Spring"}, {"name": "Summer", "public": True}),
]


class Generated:
    """The generated client, used by one user against the running service."""

    def __init__(self, name: str, base: str, key: str, opened: ExitStack) -> None:
        self.name = name
        self.http = opened.enter_context(self.module("client").AuthenticatedClient(base_url=base, token=key))

    def module(self, path: str) -> Any:
        return importlib.import_module(f"{self.name}.{path}")

    def call(
        self, package: str, operation: str, *ids: int | str, body: Members | None = None, **others: int | str
    ) -> Members:
        """Check the class of the response, and return its members."""
        members: Members = self.response(package, operation, *ids, body=body, **others).parsed.to_dict()
        return members

    def response(
        self, package: str, operation: str, *ids: int | str, body: Members | None = None, **others: int | str
    ) -> Any:
        """Build the body from the class of the operation's parameter, and return the whole response."""
        called = self.module(f"api.{package}.{operation}")
        sent = {} if body is None else {"body": self.body(called, body)}
        return called.sync_detailed(*ids, client=self.http, **sent, **others)

    def body(self, called: Any, members: Members) -> Any:
        annotation = called.sync.__annotations__["body"]
        kind = next(each for each in getattr(annotation, "__args__", [annotation]) if hasattr(each, "from_dict"))
        return kind.from_dict(members)


@pytest.fixture
def generate(
    serve: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Generated]]:
    base = serve("--workers", "1", rate_limit=MANY, domain_check="off")
    generator = Path(sys.executable).with_name("openapi-python-client")
    (tmp_path / "config.yml").write_text("post_hooks: []\n")
    command: list[str | Path] = [generator, "generate", "--meta", "none", "--config", "config.yml"]
    made = subprocess.run(
        [*command, "--output-path", tmp_path / "generated", "--url", f"{base}/api/openapi.json"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    output = made.stdout + made.stderr
    assert made.returncode == 0, output
    # The generator omits files, which clients send and receive without it.
    problems = output.split("WARNING parsing")[1:]
    assert all(re.search(f"nsupported content.type {FILES}", problem) for problem in problems), output
    monkeypatch.syspath_prepend(tmp_path)
    with ExitStack() as opened:
        yield lambda user: Generated("generated", base, user.key, opened)


def test_each_resource_is_created_read_changed_and_deleted_and_a_long_list_is_read(
    generate: Callable[..., Generated], alice: Client, admin: Client, sql: Sql
) -> None:
    client = generate(alice)
    for each in RESOURCES:
        lives(client, each)
    channel(client)
    account(client)
    user(generate(admin))
    long_list(client, sql, alice.id)


def lives(client: Generated, it: Resource) -> None:
    added, repeated = (
        client.call(it.package, f"{it.name}_create", body=it.new, idempotency_key=it.name) for _ in range(2)
    )
    assert added["error"] == 0, added
    assert repeated == added
    assert client.call(it.package, f"{it.name}_list")["data"]["result"] == 1
    refused = client.call(it.package, f"{it.name}_update", added["id"], body=it.changes, if_match='"1-a"')
    assert refused["code"] == "changed_meanwhile"
    assert client.call(it.package, f"{it.name}_update", added["id"], body=it.changes)["error"] == 0
    read = client.call(it.package, f"{it.name}_get", added["id"])[it.key]
    expected = it.changed or it.changes
    assert {name: read[name] for name in expected} == expected
    edit(client, it, added["id"])
    assert client.call(it.package, f"{it.name}_delete", added["id"])["error"] == 0
    assert client.call(it.package, f"{it.name}_get", added["id"])["code"] == "missing"


def edit(client: Generated, it: Resource, row_id: int) -> None:
    """Read a record, change one member, and write the whole record back, twice, as after a lost answer."""
    read = client.response(it.package, f"{it.name}_get", row_id)
    record, etag = json.loads(read.content)[it.key], read.headers["ETag"]
    member = it.edited
    for value in (it.new_value, record[member]):
        sent = {"body": record | {member: value}, "if_match": etag, "idempotency_key": f"{it.name} {value}"}
        first, repeated = (client.response(it.package, f"{it.name}_update", row_id, **sent) for _ in range(2))
        assert first.status_code == 200, first.content
        assert "Idempotency-Replayed" not in first.headers
        assert (repeated.content, repeated.headers["ETag"]) == (first.content, first.headers["ETag"])
        assert repeated.headers["Idempotency-Replayed"] == "true"
        written = json.loads(client.response(it.package, f"{it.name}_get", row_id).content)[it.key]
        assert {name for name in record if written[name] != record[name]} <= {member} | it.follows
        assert written[member] == value
        stale = client.call(
            it.package, f"{it.name}_update", row_id, body=record | {member: it.new_value}, if_match=etag
        )
        assert stale["code"] == "changed_meanwhile"
        etag = first.headers["ETag"]


def channel(client: Generated) -> None:
    """Run the cycle for a channel, whose read returns its items."""
    link = client.call("links", "links_create", body={"url": "https://example.com/b"})["id"]
    added = client.call("channels", "channels_create", body={"name": "News"})["id"]
    assert client.call("channels", "channels_assign", added, "links", link)["error"] == 0
    assert client.call("channels", "channels_update", added, body={"name": "Old", "starred": True})["error"] == 0
    [listed] = client.call("channels", "channels_list")["data"]["channels"]
    assert (listed["name"], listed["starred"]) == ("Old", True)
    assert client.call("channels", "channels_get", added)["data"]["items"][0]["id"] == link
    assert client.call("channels", "channels_delete", added)["error"] == 0
    assert client.call("channels", "channels_get", added)["code"] == "missing"


def long_list(client: Generated, sql: Sql, user_id: int) -> None:
    """Page through 10,000 links by cursor while links are added and deleted. The client also sends `page=1`, the
    default in the document."""
    sql(
        """
        INSERT INTO links (user_id, alias, url)
        SELECT %(user_id)s, 'long-' || n, 'https://example.com/' || n FROM generate_series(1, 10000) n RETURNING id
        """,
        user_id=user_id,
    )
    before = sql("SELECT id FROM links WHERE user_id = %(user_id)s ORDER BY id DESC", user_id=user_id)
    seen: list[int] = []
    data = client.call("links", "links_list", limit=500)["data"]
    while True:
        seen += [link["id"] for link in data["urls"]]
        client.call("links", "links_create", body={"url": f"https://example.com/new/{len(seen)}"})
        client.call("links", "links_delete", seen[-1])
        if "next" not in data:
            break
        data = client.call("links", "links_list", limit=500, after=data["next"])["data"]
    assert seen == [link["id"] for link in before]


def account(client: Generated) -> None:
    assert client.call("account", "account_update", body={"email": "new@example.com"})["error"] == 0
    assert client.call("account", "account_get")["data"]["email"] == "new@example.com"


def user(client: Generated) -> None:
    """Run the cycle for a user, who is changed by a subscription."""
    new = {"username": "carol", "email": "carol@example.com", "password": "12345"}
    added = client.call("users", "users_create", body=new)["data"]["id"]
    plan = next(plan["id"] for plan in client.call("plans", "plans_list")["data"] if not plan["free"])
    assert client.call("plans", "plans_subscribe", plan, added, body={"type": "yearly"})["error"] == 0
    assert client.call("users", "users_get", added)["data"]["planid"] == plan
    assert client.call("users", "users_delete", added)["error"] == 0
    assert client.call("users", "users_get", added)["code"] == "missing"
