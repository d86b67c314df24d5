"""The collection of tests: markers by fixture, so that `make test-fast` skips some, and the order of the files."""

import gc
from collections import Counter
from collections.abc import Generator

import pytest

MARKERS = {"chromium": "browser", "serve": "services", "shared": "services", "redis_url": "services"}  # by fixture
LONG = ("browser", "services", "slow")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """Pause the garbage collection, which would search through thousands of new tests several times."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before -m chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture in MARKERS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKERS[fixture])
    # Long files come first and short ones last, so that all processes of `make test` end at about the same time.
    long = {item.path for item in items for name in LONG if item.get_closest_marker(name)}
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path not in long, -tests[item.path]))
