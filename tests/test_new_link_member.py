"""A member of links needs its column, its name in the update of schema.sql, and its line in linkmgr/schemas/links.py.
The sweep over every way in finds it, and fails without one of them."""

from pathlib import Path

import pytest

from tests.support import copies

pytestmark = pytest.mark.slow

COLUMN = ("    metaimage       text", "    remark          text        NOT NULL DEFAULT '',\n    metaimage       text")
UPDATE = ("status = new.status,\n", "status = new.status, remark = new.remark,\n")
LINE = 'remark = member(Text(allow_empty=True), "A remark.", "Seen", label="Remark", shown=DETAIL)'
MEMBER = ("    pixels = member(\n", f"    {LINE}\n    pixels = member(\n")
SWEEP = ("tests/test_every_way_in.py", "-k", "links")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [([COLUMN, UPDATE], ""), ([COLUMN], "AssertionError: update"), ([], "KeyError: 'remark'")],
    ids=["complete", "without its name in the update", "without its column"],
)
def test_a_new_member_passes_through_every_way_in_or_is_missed(
    tmp_path: Path, schema: list[tuple[str, str]], expected: str
) -> None:
    status, output = copies.run_tests({"schema.sql": schema, "linkmgr/schemas/links.py": [MEMBER]}, tmp_path, *SWEEP)
    assert (status == 0, expected in output) == (not expected, True), output
