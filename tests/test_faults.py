"""Faults under load. `make faults` injects all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import deployment, injection
from tests.faults.deployment import Database, Deployment
from tests.faults.run import run

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[Database, Path]]:
    with deployment.folder() as where, deployment.postgres(where) as database:
        yield database, where


@pytest.fixture(scope="module")
def direct(place: tuple[Database, Path]) -> Iterator[Deployment]:
    database, _ = place
    with deployment.service(database) as target:
        yield target


@pytest.mark.parametrize("fault", [injection.STOP, injection.WORKERS], ids=lambda fault: str(fault.title))
def test_no_write_is_lost_or_duplicated_and_errors_have_retry_after(direct: Deployment, fault: injection.Fault) -> None:
    assert run(direct, fault).problems == []


def test_a_write_whose_response_is_lost_is_replayed_to_clients_that_repeat_it(place: tuple[Database, Path]) -> None:
    with deployment.proxied(*place) as target:
        row = run(target, injection.RESPONSE)
    assert row.problems == []
    assert row.replayed > 0
