"""A user on a plan of its own, and the members of links that need a feature of the plan."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from flask import Flask

from linkmgr.repository import plans

if TYPE_CHECKING:
    from tests.conftest import Client

# By feature: its name in messages, and members of a link that need it
FEATURES: dict[str, tuple[str, dict[str, Any]]] = {
    "alias": ("custom aliases", {"custom": "Spring"}),
    "geo": ("targets by country", {"geotarget": [{"location": "Canada", "link": "https://example.com/page"}]}),
    "device": ("targets by device", {"devicetarget": [{"device": "iPhone", "link": "https://example.com/page"}]}),
    "parameters": ("link parameters", {"parameters": [{"name": "a", "value": "b"}]}),
}


@pytest.fixture
def on_plan(app: Flask, register: Callable[..., "Client"]) -> Callable[..., "Client"]:
    """Create carol, whose plan is named Own and has these limits besides the API."""

    def make(*, admin: bool = False, rate: int | None = None, **limits: Any) -> "Client":
        with app.app_context():
            plans.add("Own", free=False, limits={"api": {"enabled": "1"}} | limits, rate=rate)
        return register("carol", plan="Own", admin=admin)

    return make
