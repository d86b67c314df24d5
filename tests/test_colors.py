"""Colors of QR codes and overlays that cannot be told apart."""

from typing import Any

import psycopg2
import pytest

from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.races import during

OVERLAY = {"type": "message", "name": "Sale"}
CLOSE = (
    "The text and background colors are too similar. Choose colors with a contrast of at least 3 to 1. For example, "
    "change color to {}, or background to {}."
).format


def refused(client: Client, method: str, path: str, members: dict[str, Any]) -> str:
    answer = client.call(method, path, members)
    assert (answer.status_code, answer.get_json()["code"]) == (400, "overlay_colours_too_close")
    return str(answer.get_json()["message"])


@pytest.mark.parametrize(
    ("colors", "better"),
    [
        ({"color": "#fff", "background": "#ffffff"}, ("#949494", "#949494")),
        ({"color": "#1d4ed8"}, ("#95aced", "#95aced")),
        ({"background": "#EEE"}, ("#878787", "#949494")),
        ({"color": "#F00", "background": "#0f0"}, ("#fa0000", "#52ff52")),
    ],
)
def test_an_overlay_whose_colors_are_too_similar_is_refused_with_colors_that_would_do(
    alice: Client, colors: dict[str, str], better: tuple[str, str]
) -> None:
    message = refused(alice, "POST", "/api/overlay/add", OVERLAY | colors)
    assert message == CLOSE(*better)
    for name, value in zip(("color", "background"), better, strict=True):
        assert alice.add("/api/overlay/add", OVERLAY | colors | {name: value})


def test_an_update_is_undone_if_the_resulting_colors_are_too_similar(alice: Client, sql: Sql) -> None:
    overlay_id = alice.add("/api/overlay/add", OVERLAY)
    path = f"/api/overlay/{overlay_id}/update"
    for colors in ({"color": "#2050d0"}, {"background": "#fff"}, {"color": "#000", "background": "#111"}):
        refused(alice, "PUT", path, colors | {"name": "New"})
    assert sql("SELECT name, color, background FROM overlays") == [
        {"name": "Sale", "color": "#ffffff", "background": "#1d4ed8"}
    ]
    assert alice.put(path, {"color": "#000", "background": "#fff"}).status_code == 200


def test_two_concurrent_updates_cannot_make_the_colors_too_similar(
    alice: Client, raw: psycopg2.extensions.connection
) -> None:
    """Update both colors, each of which has enough contrast with the previous value of the other."""
    overlay_id = alice.add("/api/overlay/add", OVERLAY)
    other = f"UPDATE overlays SET background = '#eeeeee' WHERE id = {overlay_id}"
    answer = during(raw, other, lambda: alice.put(f"/api/overlay/{overlay_id}/update", {"color": "#dddddd"}))
    assert (answer.status_code, answer.get_json()["code"]) == (400, "overlay_colours_too_close")
