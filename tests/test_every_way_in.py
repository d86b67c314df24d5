"""Every member of every resource passes through every way in. Values are made of the schemas, so a new member needs no
line here. What a way cannot carry is in LEFT_OUT of tests/support/ways.py."""

import pytest
from flask.testing import FlaskClient

from linkmgr.core.fields.resource import Stored
from tests.support import factories
from tests.support.imported import Import
from tests.support.logos import logo_file
from tests.support.stage import Stage
from tests.support.ways import LEFT_OUT, NOT_READ, Ways, whole


@pytest.mark.parametrize("stored", factories.RESOURCES, ids=lambda stored: stored.words.file_name)
def test_every_member_passes_through_every_way_in(
    stored: Stored, stage: Stage, console: FlaskClient, run_import: Import
) -> None:
    logo_file(stage.alice, "plain")
    ways, body = Ways(stored, stage, console, run_import), whole(stored, stage)
    empty = ways.record(row_id := ways.create(ways.least))
    ways.delete(row_id)
    record = ways.record(row_id := ways.create(body))
    ways.delete(row_id)
    seen = {name: NOT_READ.get(name, name) for name in body}
    assert not {name for name in body.keys() - ways.least.keys() if record[seen[name]] == empty[seen[name]]}, "lost"
    fixed = stored.resource.creates()().fields.keys() - stored.resource.updates()().fields.keys()
    for way, store in ways.all():
        sent = {name: value for name, value in body.items() if name not in LEFT_OUT.get((way, ways.path), {})}
        found = ways.record(row_id := store(sent))
        names = sent.keys() - (fixed if way in ("update", "console edit") else set())
        assert {name: found[seen[name]] for name in names} == {name: record[seen[name]] for name in names}, way
        ways.delete(row_id)
