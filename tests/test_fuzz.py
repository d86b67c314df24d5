"""schemathesis against the running service, and against a service with planted faults (tests/fuzz)."""

import pytest

from tests.fuzz.run import ADMINISTRATOR, TENANTS, arena

pytestmark = pytest.mark.services

# `make fuzz` uses a random seed; the test uses a fixed one.
SEED = ("--seed", "1")


def test_the_service_passes() -> None:
    with arena() as started:
        for seconds, who in ((10, TENANTS), (4, ADMINISTRATOR)):
            run = started.fuzz(seconds, *who, *SEED, capture=True)
            assert run.returncode == 0, run.stdout


@pytest.mark.parametrize(
    ("fault", "where", "found"),
    [("nul", ("--include-operation-id", "links.list"), "ST101 Server error"),
     ("owner", ("--include-tag", "Pixels"), "ST402 Object-level authorization bypass"),
     ("key", ("--include-tag", "Channels"), "ST401 ")],
)  # fmt: skip
def test_a_planted_fault_is_found(fault: str, where: tuple[str, ...], found: str) -> None:
    with arena(f'tests.fuzz.broken:app("{fault}")') as started:
        run = started.fuzz(60, *where, *SEED, "--max-failures", "1", capture=True)
    assert run.returncode == 1
    assert found in run.stdout, run.stdout
