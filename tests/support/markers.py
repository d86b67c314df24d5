"""The collection of tests: markers by fixture, so that `make test-fast` skips some, and the order of the files."""

import gc
import importlib
import os
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

MARKERS = {
    "chromium": "browser",
    "serve": "services",
    "shared": "services",
    "redis_url": "services",
    "provider": "services",
}  # by fixture
LONG = ("browser", "services", "slow")


def _compile_together() -> None:
    """Import all files, each process of xdist others first. Otherwise each would compile all of them."""
    files = sorted(path.stem for path in Path(__file__).parents[1].glob("test_*.py"))
    number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    first = len(files) * number // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for name in files[first:] + files[:first]:
        with suppress(Exception):  # reported when pytest collects the file
            importlib.import_module(f"tests.{name}")


def pytest_configure() -> None:
    """Draw the same examples in each run, so that no change is refused for an example of another one."""
    settings.register_profile(
        "tests", deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    settings.load_profile("tests")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None]:
    """Pause the garbage collection, which would search through thousands of new tests several times."""
    gc.disable()
    try:
        if "PYTEST_XDIST_WORKER" in os.environ and session.config.args == session.config.getini("testpaths"):
            _compile_together()
        return (yield)
    finally:
        gc.freeze()  # or the first collections during the tests would search through them
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before -m chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture in MARKERS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKERS[fixture])
    # Long files wait for servers and browsers, so that short ones run beside them. First come the long files with the
    # fewest tests, which take minutes each, and the short ones with the most, so that all processes end at about the
    # same time.
    long = {item.path for item in items for name in LONG if item.get_closest_marker(name)}
    files = [path for path, _ in Counter(item.path for item in items).most_common()]
    places = {
        path: place
        for paths in ([path for path in reversed(files) if path in long], [path for path in files if path not in long])
        for place, path in enumerate(paths)
    }
    items.sort(key=lambda item: (places[item.path], item.path not in long))
