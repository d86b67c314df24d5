"""Rows of every sort, for tests that call every operation."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from linkmgr.core.database import statements
from tests.support import factories
from tests.support.operations import CONVERSIONS, ITEM, Call

if TYPE_CHECKING:
    from tests.conftest import Client

Sql = Callable[..., list[statements.Row]]

EXTERNAL = "invoice-9"  # the example of the path
LOGOS = ("logo", "brandlogo")  # members whose examples are fetched


class Stage:
    """Alice with one row of each sort and a channel with an item of each type, and an administrator."""

    def __init__(self, alice: "Client", admin: "Client", sql: Sql) -> None:
        self.alice, self.admin = alice, admin
        self.ids = {name: make(sql, alice.id) for name, make in factories.ALL.items()}
        self.ids["user"] = alice.id
        self.ids["plan"] = factories.plan(sql)
        factories.answer(sql, alice.id)
        factories.missing_path(sql, alice.id, self.ids["domain"])
        factories.missing_path(sql, 0, 0, f"/sumer{alice.id}")  # of the host of the service
        factories.report(sql, self.ids["link"])
        factories.change(sql, alice.id)
        for subject in ("link", "campaign"):
            factories.public_page(sql, alice.id, **{f"{subject}_id": self.ids[subject]})
        for target in ("link", "qr"):
            factories.visit(sql, self.ids[target])
        for type_, row in ITEM.items():
            assigned = alice.post(f"/api/channel/{self.ids['channel']}/assign/{type_}/{self.ids[row]}")
            assert assigned.status_code == 200
        targets = {
            f"{type_}target": [{selector: name, "link": "https://example.com/"}]
            for type_, selector, name in (
                ("geo", "location", "fr"), ("device", "device", "ipad"), ("language", "language", "fr")
            )
        }  # fmt: skip
        lists = targets | {"pixels": [self.ids["pixel"]], "parameters": [{"name": "ref", "value": "api"}]}
        lists["rules"] = [{"when": {"country": ["fr"]}, "url": "https://example.com/"}]
        lists["variants"] = [{"name": name, "url": "https://example.com/", "weight": 1} for name in ("A", "B")]
        lists["externalid"] = EXTERNAL
        assert alice.put(f"/api/url/{self.ids['link']}/update", lists).status_code == 200
        self.binned = {"link": factories.link(sql, alice.id), "qr": factories.qr(sql, alice.id)}
        for path, row in (("url", "link"), ("qr", "qr")):
            assert alice.delete(f"/api/{path}/{self.binned[row]}/delete?bin=1").status_code == 200
        self.domain = sql("SELECT host FROM domains WHERE id = %(id)s", id=self.ids["domain"])[0]["host"]

    def caller(self, call: Call) -> "Client":
        return self.admin if call.operation.is_for_administrators else self.alice

    def path(self, call: Call, **instead: int) -> str:
        ids = self.ids | (self.binned if call.path.endswith("/restore") else {}) | instead
        return re.sub(r"{(\w+)_id}", lambda found: str(ids[found[1]]), call.path)

    def bodies(self, call: Call) -> list[dict[str, Any] | None]:
        """Return the bodies of a call, with existing ids in place of those of the examples."""
        existing: dict[str, Any] = {"planid": self.ids["plan"]}
        if call.path.startswith("/api/urls/bulk"):
            existing |= {"ids": [self.ids["link"]], "unassign_channel": self.ids["channel"]}
        if call.path.startswith("/api/url/"):
            existing |= {name: self.ids[name] for name in ("campaign", "channel")}
            existing |= {"pixels": [self.ids["pixel"]], "channel": [self.ids["channel"]], "domain": self.domain}
            existing["type"] = f"overlay-{self.ids['overlay']}"
        if "/external/" in call.path:
            existing["externalid"] = EXTERNAL
        if call.path == CONVERSIONS:
            existing["link"] = self.ids["link"]
        if call.path.startswith("/api/account/"):
            existing["domain"] = self.domain
        if call.path.startswith("/api/key/"):
            existing["domains"] = [self.ids["domain"]]
        if call.path.startswith("/api/webhook"):
            existing |= {name: self.ids[name] for name in ("campaign", "channel", "domain")}
        without = {*LOGOS, "refund"}  # which excludes `value`
        return [
            body and {name: existing.get(name, value) for name, value in body.items() if name not in without}
            for body in call.bodies()
        ]


@pytest.fixture
def stage(alice: "Client", admin: "Client", sql: Sql) -> Stage:
    return Stage(alice, admin, sql)
