"""`statistics=0` leaves out the statistics of a link or QR code."""

import pytest

from linkmgr.schemas.statistics import STATISTICS
from tests.conftest import Client
from tests.support.explain import rows_read
from tests.support.stage import Stage


def test_without_statistics_they_are_not_read(
    alice: Client, stage: Stage, monkeypatch: pytest.MonkeyPatch, dsn: str
) -> None:
    link, code = f"/api/url/{stage.ids['link']}", f"/api/qr/{stage.ids['qr']}"
    for path in (link, code):
        whole, part = (alice.get(f"{path}?statistics={flag}").get_json() for flag in "10")
        assert whole == alice.get(path).get_json()
        assert part == {name: whole[name] for name in whole if name != "data"}
        assert alice.get(f"{path}?statistics=no").get_json()["errors"][0]["field"] == "statistics"
    more = rows_read(monkeypatch, dsn, lambda: alice.get(link))[-1]
    assert rows_read(monkeypatch, dsn, lambda: alice.get(f"{link}?statistics=0"))[-1] < more
    short = alice.get(link).get_json()["details"]["alias"]
    whole, part = (alice.get(f"/api/urls?short={short}&statistics={flag}").get_json() for flag in "10")
    assert whole["data"].keys() - part["data"].keys() == STATISTICS["properties"].keys()
    assert part["data"]["urls"] == whole["data"]["urls"]
