"""A client generated from the document creates, reads, changes and deletes each resource."""

import importlib
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


RESOURCES = [
    Resource(
        "links",
        "links",
        {"url": "https://example.com/a"},
        {"metatitle": "Sale"},
        {"title": "Sale"},
        "details",
    ),
    Resource("bio_pages", "bio", {"name": "Dana"}, {"theme": "ocean", "links": []}),
    Resource(
        "branded_domains",
        "domains",
        {"domain": "https://brand.example.net", "redirectroot": "https://example.com/"},
        {"redirectroot": None, "redirect404": "https://example.com/404"},
        {"redirectroot": "https://example.com/", "redirect404": "https://example.com/404"},
    ),
    Resource("splash_pages", "splash", {"name": "Wait", "counter": 3}, {"counter": 9}),
    Resource("cta_overlays", "overlay", {"type": "poll", "name": "Tea?"}, {"position": "top"}),
    Resource("pixels", "pixels", {"type": "bing", "name": "Shop", "tag": "1"}, {"tag": "2"}),
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
        """Build the body from the class of the operation's parameter, check that of the response, and return it."""
        called = self.module(f"api.{package}.{operation}")
        sent = {} if body is None else {"body": self.body(called, body)}
        members: Members = called.sync_detailed(*ids, client=self.http, **sent, **others).parsed.to_dict()
        return members

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


def test_each_resource_is_created_read_changed_and_deleted(
    generate: Callable[..., Generated], alice: Client, admin: Client
) -> None:
    client = generate(alice)
    for each in RESOURCES:
        lives(client, each)
    channel(client)
    user(generate(admin))


def lives(client: Generated, it: Resource) -> None:
    added = client.call(it.package, f"{it.name}_create", body=it.new, idempotency_key=it.name)
    assert added["error"] == 0, added
    assert client.call(it.package, f"{it.name}_list")["data"]["result"] == 1
    refused = client.call(it.package, f"{it.name}_update", added["id"], body=it.changes, if_match='"1-a"')
    assert refused["code"] == "changed_meanwhile"
    assert client.call(it.package, f"{it.name}_update", added["id"], body=it.changes)["error"] == 0
    read = client.call(it.package, f"{it.name}_get", added["id"])[it.key]
    expected = it.changed or it.changes
    assert {name: read[name] for name in expected} == expected
    assert client.call(it.package, f"{it.name}_delete", added["id"])["error"] == 0
    assert client.call(it.package, f"{it.name}_get", added["id"])["code"] == "missing"


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


def user(client: Generated) -> None:
    """Run the cycle for a user, who is changed by a subscription."""
    new = {"username": "carol", "email": "carol@example.com", "password": "12345"}
    added = client.call("users", "users_create", body=new)["data"]["id"]
    plan = next(plan["id"] for plan in client.call("plans", "plans_list")["data"] if not plan["free"])
    assert client.call("plans", "plans_subscribe", plan, added, body={"type": "yearly"})["error"] == 0
    assert client.call("users", "users_get", added)["data"]["planid"] == plan
    assert client.call("users", "users_delete", added)["error"] == 0
    assert client.call("users", "users_get", added)["code"] == "missing"
