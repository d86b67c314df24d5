"""Markers derived from the fixtures of a test, so that `make test-fast` skips it, and the order of the files."""

from collections import Counter

import pytest

MARKERS = {"chromium": "browser", "serve": "services", "shared": "services", "redis_url": "services"}  # by fixture
LONG = ("browser", "services", "slow")


@pytest.hookimpl(tryfirst=True)  # before -m chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture in MARKERS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKERS[fixture])
    # Long files come first and short ones last, so that all processes of `make test` end at about the same time.
    long = {item.path for item in items for name in LONG if item.get_closest_marker(name)}
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path not in long, -tests[item.path]))
