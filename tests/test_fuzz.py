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


# Faults that are planted together, and runs: what the report says, and the operations and checks that find it.
PLANTED = {
    '"nul", "key"': (
        ("ST101 Server error", "--include-operation-id", "links.list", "--checks", "not_a_server_error"),
        ("ST401 ", "--include-tag", "Channels", "--checks", "ignored_auth"),
    ),
    '"owner"': (("ST402 Object-level authorization bypass", "--include-tag", "Pixels"),),
}


@pytest.mark.parametrize("faults", PLANTED)
def test_planted_faults_are_found(faults: str) -> None:
    with arena(f"tests.fuzz.broken:app({faults})") as started:
        for title, *where in PLANTED[faults]:
            run = started.fuzz(60, *where, *SEED, "--max-failures", "1", capture=True)
            assert run.returncode == 1
            assert title in run.stdout, run.stdout
