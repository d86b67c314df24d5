"""The service under load while a component fails: the short form of `make faults`, which injects every fault."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import attacks, making, stage
from tests.faults.row import run
from tests.faults.stage import Database, Stage

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[Database, Path]]:
    with stage.folder() as where, stage.postgres(where) as database:
        yield database, where


@pytest.fixture(scope="module")
def direct(place: tuple[Database, Path]) -> Iterator[Stage]:
    database, _ = place
    with stage.service(database) as on:
        yield on


@pytest.mark.parametrize("fault", [making.STOP, making.TERMINATE, making.WORKERS], ids=lambda fault: str(fault.title))
def test_no_write_is_lost_or_doubled_and_errors_have_retry_after(direct: Stage, fault: making.Fault) -> None:
    assert run(direct, fault).problems == []


def test_a_write_whose_response_is_lost_is_an_error_and_is_not_repeated(place: tuple[Database, Path]) -> None:
    with stage.proxied(*place) as on:
        row = run(on, making.ANSWER)
    assert row.problems == []
    assert row.unsure > 0


def test_requests_for_large_images_do_not_block_others(direct: Stage) -> None:
    assert attacks.run(direct, attacks.IMAGES).problems == []
