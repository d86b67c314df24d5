"""The triggers of a new database are those that schema.sql writes out, each below its table."""

import re

from tests.conftest import ROOT
from tests.support.factories import Sql

MOST = 84
TRIGGER = re.compile(r"^CREATE (?:CONSTRAINT )?TRIGGER (\w+)\s.*?\sON (\w+)", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"^CREATE (?:UNLOGGED )?TABLE (\w+)", re.MULTILINE)
STORED = "SELECT tgname AS name, tgrelid::regclass::text AS table FROM pg_trigger WHERE NOT tgisinternal"


def test_each_trigger_is_written_out_below_its_table(sql: Sql) -> None:
    _, *parts = TABLE.split((ROOT / "schema.sql").read_text())
    written = [
        (trigger, table)
        for above, text in zip(parts[::2], parts[1::2], strict=True)
        for trigger, table in TRIGGER.findall(text)
        if table == above
    ]
    stored = sql(STORED)
    assert sorted((trigger["name"], trigger["table"]) for trigger in stored) == sorted(written)
    assert len(stored) <= MOST
