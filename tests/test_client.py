"""A client generated from the document calls each operation and reads the whole response."""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MANY
from tests.support.document import document
from tests.support.operations import KEYED, Call
from tests.support.stage import Stage
from tests.support.targets import wait_until

pytestmark = pytest.mark.services

FILES = "(text/csv|application/(zip|gzip|sql|x-ndjson))"
METHODS = ["GET", "POST", "PUT", "DELETE"]
# Rows are deleted last, conversions before their link, and the owner after all. The generator leaves out the operations
# that return only files.
CALLS = sorted(
    (call for call in KEYED if not (call.operation.file or call.operation.is_upload)),
    # A link is blocked after all changes, which would be refused for its target.
    key=lambda call: (
        METHODS.index("DELETE" if call.path.endswith("/decide") else call.method),
        call.rows == ["user"],
        call.path.endswith("/delete") and call.rows != ["conversion"],
    ),
)
READS = {call.path: call for call in CALLS if call.method == "GET"}


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|\W", "_", name).lower()


class Generated:
    """The generated client, used by the callers of the operations against the running service."""

    def __init__(self, base: str, stage: Stage) -> None:
        self.base, self.stage = base, stage

    def module(self, path: str) -> Any:
        return importlib.import_module(f"generated.{path}")

    def send(self, call: Call, **parameters: str) -> dict[str, Any]:
        """Send the call. Check that the objects of the client hold all of the response, and return it."""
        operation = document()["paths"][call.route.path][call.method.lower()]
        called = self.module(f"api.{snake(operation['tags'][0])}.{snake(operation['operationId'])}")
        places = zip(call.route.path.split("/"), self.stage.path(call).split("/"), strict=True)
        path = [int(text) if text.isdigit() else text for name, text in places if name.startswith("{")]
        members = call.example_of([self.stage.ids["link"]])
        sent = parameters if members is None else parameters | {"body": self.body(called, members)}
        headers = {"Accept": "application/json"}  # without it, some responses are CSV
        authenticated = self.module("client").AuthenticatedClient
        with authenticated(self.base, self.stage.caller(call).key, headers=headers, verify_ssl=False) as client:
            answer = called.sync_detailed(*path, client=client, **sent)
        received: dict[str, Any] = json.loads(answer.content)
        assert answer.parsed.to_dict() == received
        return received

    def body(self, called: Any, members: dict[str, Any]) -> Any:
        """Build the body from the class of the operation's parameter."""
        annotation = called.sync.__annotations__["body"]
        kinds = getattr(annotation, "__args__", [annotation])
        kind = next(each for each in kinds if hasattr(each, "from_dict") and not hasattr(each, "to_multipart"))
        return kind.from_dict(members)


@pytest.fixture
def generated(serve: Callable[..., str], stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generated:
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
    return Generated(base, stage)


def test_each_operation_is_called_and_its_whole_response_is_read(generated: Generated) -> None:
    for call in CALLS:
        if call.route.path.endswith("_id}/update"):
            assert generated.send(call, if_match='"1-a"')["code"] == "changed_meanwhile"
        if (call.method, call.path) == (
            "DELETE",
            "/api/imports/{import_id}",
        ):  # it would cancel one that has been continued
            wait_until(lambda: generated.send(READS["/api/imports/{import_id}"])["data"]["state"] == "failed")
        repeatable = {"idempotency_key": str(call)} if call.path.endswith("/add") else {}
        answers = [generated.send(call, **repeatable) for _ in range(1 + bool(repeatable))]
        # The ids in the bodies of bulk requests are those of no rows.
        # The service of this test visits no targets.
        failures = ("bulk_failed", "checks_off") if call.path.endswith("/check") else ("bulk_failed",)
        assert answers[0]["error"] == 0 or answers[0]["code"] in failures, (call.path, answers[0])
        assert answers[0] == answers[-1], call
        if read := call.path.endswith("/delete") and READS.get(call.path.removesuffix("/delete")):
            assert generated.send(read)["code"] == "missing"
