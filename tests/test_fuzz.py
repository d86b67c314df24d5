"""schemathesis against the running service, and against a service with planted faults (tests/fuzz)."""

import pytest

from tests.fuzz.run import ADMINISTRATOR, TENANTS, arena

pytestmark = [pytest.mark.services, pytest.mark.slow]

# `make fuzz` uses a random seed; the test uses a fixed one.
SEED = ("--seed", "1")


def test_the_service_passes() -> None:
    with arena() as started:
        for seconds, who in ((4, TENANTS), (2, ADMINISTRATOR)):
            run = started.fuzz(seconds, *who, *SEED, capture=True)
            assert run.returncode == 0, run.stdout


# The title of each planted fault in the report, and the phase, operations and checks that find it.
PLANTED = (
    ("ST101 Server error", "fuzzing", "--include-operation-id", "links.list", "--checks", "not_a_server_error"),
    ("ST402 Object-level authorization bypass", "stateful", "--include-tag", "Pixels"),
)


def test_planted_faults_are_found() -> None:
    with arena('tests.fuzz.broken:app("nul", "owner")') as started:
        for title, phase, *where in PLANTED:
            run = started.fuzz(60, "--phases", phase, *where, *SEED, "--max-failures", "1", capture=True)
            assert run.returncode == 1
            assert title in run.stdout, run.stdout
