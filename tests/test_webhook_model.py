"""A model-based test of events: whoever reads them all knows each row as its GET returns it."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from tests.conftest import Client
from tests.support.factories import Sql

pytestmark = pytest.mark.slow

Row = tuple[str, int]  # kind and id
PATHS = {"link": "url", "channel": "channel", "campaign": "campaign"}
names = st.sampled_from(["Shop", "Blog", "été"])


class Events(RuleBasedStateMachine):
    """`known` are the records by row, according to the events."""

    alice: Client
    bob: Client
    deliver: Callable[[], None]
    run_jobs: Callable[[], None]
    sql: Sql

    rows = Bundle("rows")

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Row, dict[str, Any]] = {}
        self.stored: set[Row] = set()
        self.deliver()  # what the previous example left
        self.sql("DELETE FROM events RETURNING 1")
        self.sql("DELETE FROM rate_windows RETURNING 1")
        self.after = 0
        self.webhook_id = self.alice.add("/api/webhooks", {"name": "Hook", "events": ["*"]})

    def teardown(self) -> None:
        for kind, row_id in self.stored:
            self.alice.delete(f"/api/{PATHS[kind]}/{row_id}/delete")
        self.alice.delete(f"/api/webhook/{self.webhook_id}/delete")

    @rule(target=rows, kind=st.sampled_from(["channel", "campaign"]), name=names)
    def add_named(self, kind: str, name: str) -> Row | None:
        return self._added(kind, {"name": name})

    @rule(target=rows, number=st.integers(0, 3), row=rows)
    def add_link(self, number: int, row: Row | None) -> Row | None:
        campaign = {"campaign": row[1]} if row and row[0] == "campaign" else {}
        return self._added("link", {"url": f"https://example.com/{number}"} | campaign)

    def _added(self, kind: str, members: dict[str, Any]) -> Row | None:
        answer = self.alice.post(f"/api/{PATHS[kind]}/add", members)
        if answer.status_code != 200:
            return None
        self.stored.add((kind, answer.get_json()["id"]))
        return kind, answer.get_json()["id"]

    @rule(row=rows, name=names)
    def change(self, row: Row | None, name: str) -> None:
        if row:
            member = "metatitle" if row[0] == "link" else "name"
            self.alice.put(f"/api/{PATHS[row[0]]}/{row[1]}/update", {member: name})

    @rule(row=consumes(rows))
    def delete(self, row: Row | None) -> None:
        if row:
            self.alice.delete(f"/api/{PATHS[row[0]]}/{row[1]}/delete")
            self.stored.discard(row)
            self.run_jobs()

    def _read(self) -> None:
        self.deliver()
        while True:
            query = f"&after={self.after}" if self.after else ""
            data = self.alice.get(f"/api/events?limit=3{query}").get_json()["data"]
            if not data["events"]:
                return
            self.after = data["next"]
            for event in data["events"]:
                kind, _, change = event["type"].partition(".")
                row = (kind, event["data"]["id"])
                if change == "deleted":
                    del self.known[row]
                else:
                    self.known[row] = event["data"]

    @invariant()
    def events_tell_all(self) -> None:
        self._read()
        assert self.known.keys() == self.stored
        for kind, row_id in self.stored:
            answer = self.alice.get(f"/api/{PATHS[kind]}/{row_id}").get_json()
            assert self.known[kind, row_id] == answer.get("details", answer.get("data"))
        assert self.bob.get("/api/events").get_json()["data"]["events"] == []


def test_events_tell_all_changes(
    alice: Client,
    bob: Client,
    deliver: Callable[[], None],
    run_jobs: Callable[[], None],
    sql: Sql,
) -> None:
    bob.add("/api/webhooks", {"name": "Hook", "events": ["*"]})

    class Bound(Events):
        pass

    Bound.alice, Bound.bob, Bound.sql = alice, bob, staticmethod(sql)
    Bound.deliver, Bound.run_jobs = staticmethod(deliver), staticmethod(run_jobs)
    run_state_machine_as_test(
        Bound,
        settings=settings(
            max_examples=10, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
