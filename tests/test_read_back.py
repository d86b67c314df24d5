"""A single read shows what was sent, and sending that back changes nothing."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkmgr.core.fields.base import Choice
from tests.support import factories
from tests.support.bodies import LEAST, Members, body_of, sent
from tests.support.document import operations
from tests.support.factories import Sql
from tests.support.logos import logo_file
from tests.support.members import LOGO_FILES, bodies
from tests.support.stage import Stage

pytestmark = pytest.mark.slow

PAGE = "https://example.com/page"
TABLES = factories.TABLES | {"user": "users", "plan": "plans"}
# Members that are read under another name. Passwords are not read.
RENAMED = {("url", "password"): "haspassword", ("user", "expiration"): "expires", ("user", "password"): None}
RENAMED |= {("plan", name): None for name in ("prices", "limits")}  # a part of them is sent


def _words() -> Iterator[str]:
    for route in operations():
        if route.path.endswith("/add"):
            yield route.path.split("/")[2]


WORDS = list(_words())


class Editor:
    """The client of a resource's owner, or of an administrator."""

    def __init__(self, stage: Stage, sql: Sql, word: str) -> None:
        self.client = stage.admin if word in ("user", "plan", "block") else stage.alice
        self.sql, self.word = sql, word

    def add(self, members: Members) -> int:
        answer = self.client.post(f"/api/{self.word}/add", members)
        assert answer.status_code == 200, answer.text
        return int((answer.get_json()["data"] if self.word == "user" else answer.get_json())["id"])

    def record(self, row_id: int) -> Members:
        if self.word == "block":  # which only the list shows
            return next(row for row in self.client.get("/api/blocks").get_json()["data"] if row["id"] == row_id)
        answer: Members = self.client.get(f"/api/{self.word}/{row_id}").get_json()
        record: Members = answer["details"] if "details" in answer else answer["data"]
        return record

    def update(self, row_id: int, members: Members) -> Members:
        answer = self.client.put(f"/api/{self.word}/{row_id}/update", members)
        assert answer.status_code == 200, answer.text
        body: Members = answer.get_json()
        return body

    def stored(self, row_id: int) -> list[Members]:
        rows = self.sql(f"SELECT * FROM {TABLES[self.word]} WHERE id = %(id)s", id=row_id)
        return rows + self.sql(
            "SELECT * FROM channel_items WHERE link_id = %(id)s ORDER BY id", id=row_id if self.word == "url" else 0
        )

    def expected(self, pairs: dict[str, tuple[Any, Any]]) -> Members:
        read = {RENAMED.get((self.word, name), name): value for name, (_, value) in pairs.items()}
        return {name: value for name, value in read.items() if name}


def unordered(members: Members) -> Members:
    """Sort targets, whose order has no meaning."""
    return {name: sorted(value, key=str) if name.endswith("target") else value for name, value in members.items()}


@pytest.fixture
def editor(stage: Stage, sql: Sql, request: pytest.FixtureRequest) -> Editor:
    for name in LOGO_FILES:
        logo_file(stage.alice, name.removesuffix(".png"))
    return Editor(stage, sql, request.param)


over_resources = pytest.mark.parametrize("editor", WORDS, indirect=True)


def _followed(editor: Editor, pairs: Members, record: Members) -> Members:
    """Return the title of a link without one, which follows that of its preview."""
    return {"title": record["title"]} if editor.word == "url" and not pairs.get("title", ("",))[0] else {}


def send_back(editor: Editor, row_id: int) -> None:
    """Send what is read, and check that nothing changes."""
    path = f"/api/{editor.word}/{row_id}"
    before, stored = editor.client.get(path).data, editor.stored(row_id)
    warnings = editor.update(row_id, editor.record(row_id)).get("warnings", [])
    assert not [warning for warning in warnings if warning.startswith("The member")]
    assert editor.client.get(path).data == before
    assert editor.stored(row_id) == stored


@over_resources
@settings(max_examples=5)
@given(data=st.data())
def test_what_was_sent_is_what_is_read_and_can_be_sent_back(editor: Editor, stage: Stage, data: st.DataObject) -> None:
    schema = body_of(editor.word, "/add")
    assert schema
    pairs = data.draw(bodies(schema, stage))
    row_id = editor.add(sent(pairs))
    record = editor.record(row_id)
    assert unordered(record) == unordered(record | editor.expected(pairs) | _followed(editor, pairs, record))
    changes = body_of(editor.word, "/update")
    if changes:
        send_back(editor, row_id)
        pairs = data.draw(bodies(changes, stage))
        answer = editor.update(row_id, sent(pairs))
        expected = {name: record[name] for name in changes().fields if name in record} | editor.expected(pairs)
        if editor.word == "qr" and "data" in pairs and "name" not in pairs:
            del expected["name"]  # it follows the data
        record = editor.record(row_id)
        assert unordered(record) == unordered(record | expected | _followed(editor, pairs, record))
        shown = answer.get("details") or answer.get("data") or answer
        assert {name: shown[name] for name in record} == record


# The values of members that are not sent
WHITE, BLACK = "rgb(255,255,255)", "rgb(0,0,0)"
DEFAULTS: dict[str, Members] = {
    "splash": {"title": "", "message": "", "link": "", "counter": 5, "banner": ""},
    "overlay": {"message": "", "link": "", "label": "", "position": "bottom", "color": "#ffffff",
                "background": "#1d4ed8"},
    "bio": {"bio": "", "theme": "light", "links": []},
    "channel": {"description": "", "color": "#3b82f6", "starred": False},
    "campaign": {"slug": "", "public": False, "rotator": False},
    "domain": {"redirectroot": "", "redirect404": "", "brandname": "", "brandlogo": "", "brandcolor": ""},
    "qr": {"name": LEAST["qr"]["data"], "background": WHITE, "foreground": BLACK, "logo": ""},
    "key": {"domains": [], "own_only": False, "expires": None, "allowed_ips": []},
}  # fmt: skip


@pytest.mark.parametrize("editor", DEFAULTS, indirect=True)
def test_members_that_are_not_sent_have_their_defaults(editor: Editor) -> None:
    record = editor.record(editor.add(LEAST[editor.word]))
    assert record == record | LEAST[editor.word] | DEFAULTS[editor.word]


@over_resources
def test_every_choice_can_be_stored(editor: Editor) -> None:
    schema = body_of(editor.word, "/add")
    assert schema
    for name, field in schema().fields.items():
        if isinstance(field, Choice) and (editor.word, name) != ("qr", "type"):
            for choice in field.choices:
                unique = {"name": f"{name} {choice}", "email": f"{choice}@example.com"}
                unique = {member: unique[member] for member in unique.keys() & LEAST[editor.word].keys()}
                assert editor.record(editor.add(LEAST[editor.word] | unique | {name: choice}))[name] == choice
