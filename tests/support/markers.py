"""Markers derived from the fixtures of a test, so that `make test-fast` skips it."""

import pytest

MARKERS = {"chromium": "browser", "serve": "services", "shared": "services", "redis_url": "services"}  # by fixture


@pytest.hookimpl(tryfirst=True)  # before -m chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture in MARKERS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKERS[fixture])
