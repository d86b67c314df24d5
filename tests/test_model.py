"""A model-based test with two tenants: after any sequence of calls, each has the rows of the model and no others, and
whoever reads all events of a tenant knows each row as its GET returns it."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test
from werkzeug.test import TestResponse

from linkmgr.schemas.pixels import TYPES
from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.receivers import Deliver
from tests.support.tenants import Changes, Tenant, Thing, newest_first, path_of, path_of_item, taken

pytestmark = pytest.mark.slow

tenants = st.sampled_from(["alice", "bob"])
intrusions = st.sampled_from([False, False, False, True])  # True if the other tenant tries the call
texts = st.text(st.characters(codec="utf-8", min_codepoint=0x20, exclude_characters="\x7f"), min_size=1, max_size=20)
# The kinds in events, by those of the model
EVENTS = {"pixels": "pixel", "campaigns": "campaign", "channels": "channel", "links": "link", "qrs": "qr"}
DATA = "Data of a code: "  # a name that is the data would change with it
# Few names, so that they collide.
names = st.sampled_from(["Shop", "shop", "Blog", "été"]) | texts.filter(lambda text: text.strip() != "")
slugs = st.sampled_from(["spring", "Spring", "a", "_-_"])
tags = st.from_regex("[A-Za-z0-9_.:/-]{1,100}", fullmatch=True)
colors = st.from_regex("#([0-9a-fA-F]{3}){1,2}", fullmatch=True)
pixels_sent = st.fixed_dictionaries({"type": st.sampled_from(TYPES), "name": names, "tag": tags})
pixel_changes = st.fixed_dictionaries({"tag": tags}, optional={"name": names})
channels_sent = st.fixed_dictionaries(
    {"name": names}, optional={"description": names, "color": colors, "starred": st.booleans()}
)
channel_changes = st.fixed_dictionaries(
    {}, optional={"name": names, "description": names | st.just(""), "color": colors, "starred": st.booleans()}
)
campaigns_sent = st.fixed_dictionaries({"name": names}, optional={"slug": slugs, "public": st.booleans()})
campaign_changes = st.fixed_dictionaries(
    {"name": names}, optional={"slug": slugs | st.just(""), "public": st.booleans()}
)


class TwoTenants(RuleBasedStateMachine):
    pixels: Bundle[Thing] = Bundle("pixels")
    campaigns: Bundle[Thing] = Bundle("campaigns")
    channels: Bundle[Thing] = Bundle("channels")
    links: Bundle[Thing] = Bundle("links")
    qrs: Bundle[Thing] = Bundle("qrs")

    def __init__(
        self, register: Callable[[str], Client], sql: Sql, run_jobs: Callable[[], None], deliver: Deliver
    ) -> None:
        super().__init__()
        self.sql, self.run_jobs, self.deliver = sql, run_jobs, deliver
        self.tenants = {name: Tenant(register(name)) for name in ("alice", "bob")}
        for tenant in self.tenants.values():
            tenant.client.add("/api/webhooks", {"name": "Hook", "events": ["*"]})
        self.touched: set[str] = set()

    def teardown(self) -> None:
        self.touched = {"pixels", "campaigns", "channels", "links", "qrs"}
        try:
            self.each_has_what_the_model_says()
            for tenant in self.tenants.values():
                self.compare_records(tenant)
        finally:
            self.sql("DELETE FROM users")
            self.run_jobs()

    def actor(self, thing: Thing, intrudes: bool) -> Tenant:
        self.touched.add(thing.kind)
        return self.tenants[thing.owner if not intrudes else "bob" if thing.owner == "alice" else "alice"]

    def expect(self, answer: TestResponse, *, owned: bool = True, refused: bool = False) -> bool:
        """Return True if the call succeeded, and fail if the model expects otherwise."""
        assert answer.status_code == (404 if not owned else 400 if refused else 200), answer.text
        return owned and not refused

    def is_taken(self, tenant: Tenant, kind: str, sent: Changes, but: int | None = None) -> bool:
        if kind not in ("campaigns", "channels"):
            return False
        everybodys = {row_id: record for each in self.tenants.values() for row_id, record in each.campaigns.items()}
        has_slug = kind == "campaigns" and taken(everybodys, sent, "slug", but)
        return has_slug or taken(tenant.of(kind), sent, "name", but)

    # --- creates

    def add(self, kind: str, owner: str, sent: Changes, expected: Changes) -> Any:
        tenant = self.tenants[owner]
        answer = tenant.client.post(f"/api/{kind.removesuffix('s')}/add", sent)
        if not self.expect(answer, refused=self.is_taken(tenant, kind, sent)):
            return multiple()
        row_id = int(answer.get_json()["id"])
        tenant.of(kind)[row_id] = expected
        if kind == "channels":
            tenant.items[row_id] = []
        return Thing(kind, owner, row_id)

    @rule(target=pixels, owner=tenants, sent=pixels_sent)
    def add_pixel(self, owner: str, sent: Changes) -> Any:
        return self.add("pixels", owner, sent, sent)

    @rule(target=campaigns, owner=tenants, sent=campaigns_sent)
    def add_campaign(self, owner: str, sent: Changes) -> Any:
        return self.add("campaigns", owner, sent, {"slug": "", "public": False} | sent)

    @rule(target=channels, owner=tenants, sent=channels_sent)
    def add_channel(self, owner: str, sent: Changes) -> Any:
        return self.add("channels", owner, sent, {"description": "", "color": "#3b82f6", "starred": False} | sent)

    @rule(target=qrs, owner=tenants, name=names, data=names)
    def add_qr(self, owner: str, name: str, data: str) -> Any:
        return self.add("qrs", owner, {"type": "text", "name": name, "data": DATA + data}, {"name": name})

    @rule(target=links, owner=tenants)
    def add_link(self, owner: str) -> Thing:
        self.touched.add("links")
        tenant = self.tenants[owner]
        link_id = factories.link(self.sql, tenant.client.id)
        tenant.links[link_id] = {"campaign": None}
        return Thing("links", owner, link_id)

    # --- updates

    def update(self, row: Thing, intrudes: bool, changes: Changes, sent: Changes | None = None) -> None:
        tenant = self.actor(row, intrudes)
        records = tenant.of(row.kind)
        answer = tenant.client.put(f"/api/{row.kind.removesuffix('s')}/{row.id}/update", changes | (sent or {}))
        refused = self.is_taken(tenant, row.kind, changes, row.id)
        if self.expect(answer, owned=row.id in records, refused=refused):
            records[row.id] |= changes

    @rule(pixel=pixels, intrudes=intrusions, changes=pixel_changes)
    def update_pixel(self, pixel: Thing, intrudes: bool, changes: Changes) -> None:
        self.update(pixel, intrudes, changes)

    @rule(campaign=campaigns, intrudes=intrusions, changes=campaign_changes)
    def update_campaign(self, campaign: Thing, intrudes: bool, changes: Changes) -> None:
        self.update(campaign, intrudes, changes)

    @rule(channel=channels, intrudes=intrusions, changes=channel_changes)
    def update_channel(self, channel: Thing, intrudes: bool, changes: Changes) -> None:
        self.update(channel, intrudes, changes)

    @rule(qr=qrs, intrudes=intrusions, data=names, changes=st.fixed_dictionaries({}, optional={"name": names}))
    def update_qr(self, qr: Thing, intrudes: bool, data: str, changes: Changes) -> None:
        self.update(qr, intrudes, changes, {"data": DATA + data})

    @rule(campaign=campaigns, intrudes=intrusions, link=links)
    def assign_to_campaign(self, campaign: Thing, intrudes: bool, link: Thing) -> None:
        tenant = self.actor(campaign, intrudes)
        answer = tenant.client.post(f"/api/campaign/{campaign.id}/assign/{link.id}")
        if self.expect(answer, owned=campaign.id in tenant.campaigns and link.id in tenant.links):
            tenant.links[link.id]["campaign"] = campaign.id

    @rule(channel=channels, intrudes=intrusions, item=links | qrs)
    def assign_to_channel(self, channel: Thing, intrudes: bool, item: Thing) -> None:
        tenant = self.actor(channel, intrudes)
        kind = path_of_item(item.kind)
        answer = tenant.client.post(f"/api/channel/{channel.id}/assign/{kind}/{item.id}")
        owned = channel.id in tenant.channels and item.id in tenant.of(item.kind)
        if self.expect(answer, owned=owned) and (kind, item.id) not in tenant.items[channel.id]:
            tenant.items[channel.id].insert(0, (kind, item.id))

    @rule(thing=pixels | campaigns | channels | links | qrs, intrudes=intrusions)
    def delete(self, thing: Thing, intrudes: bool) -> None:
        tenant = self.actor(thing, intrudes)
        forever = "?bin=0" if thing.kind == "qrs" else ""
        answer = tenant.client.delete(f"/api/{path_of(thing.kind)}/{thing.id}/delete{forever}")
        is_binned = thing.kind in ("links", "qrs") and thing.id in tenant.binned
        if not self.expect(answer, owned=is_binned or thing.id in tenant.of(thing.kind)):
            return
        if is_binned:
            del tenant.binned[thing.id]
        else:
            del tenant.of(thing.kind)[thing.id]
        if thing.kind == "channels":
            del tenant.items[thing.id]
        if thing.kind in ("links", "qrs"):
            self.take_off(tenant, (path_of_item(thing.kind), thing.id))
        self.run_jobs()
        for link in tenant.links.values():
            if thing.kind == "campaigns" and link["campaign"] == thing.id:
                link["campaign"] = None

    def take_off(self, tenant: Tenant, item: tuple[str, int]) -> list[int]:
        """Take an item off its channels, and return their ids."""
        channels = [channel_id for channel_id, items in tenant.items.items() if item in items]
        for channel_id in channels:
            tenant.items[channel_id].remove(item)
        return channels

    @rule(thing=links | qrs, intrudes=intrusions)
    def put_into_bin(self, thing: Thing, intrudes: bool) -> None:
        tenant = self.actor(thing, intrudes)
        answer = tenant.client.delete(f"/api/{path_of(thing.kind)}/{thing.id}/delete?bin=1")
        if self.expect(answer, owned=thing.id in tenant.of(thing.kind)):
            channels = self.take_off(tenant, ("links", thing.id))  # QR codes keep their places
            tenant.binned[thing.id] = tenant.of(thing.kind).pop(thing.id), channels
            self.run_jobs()

    @rule(thing=links | qrs, intrudes=intrusions)
    def restore(self, thing: Thing, intrudes: bool) -> None:
        tenant = self.actor(thing, intrudes)
        answer = tenant.client.post(f"/api/{path_of(thing.kind)}/{thing.id}/restore")
        if self.expect(answer, owned=thing.id in tenant.binned):
            record, channels = tenant.binned.pop(thing.id)
            tenant.of(thing.kind)[thing.id] = record
            if record.get("campaign") not in tenant.campaigns:
                record |= {"campaign": None} if thing.kind == "links" else {}
            for channel_id in channels:
                if channel_id in tenant.items:
                    tenant.items[channel_id].insert(0, ("links", thing.id))

    # --- invariants: after each step for the kind that it changed, and at the end for all

    @invariant()
    def each_has_what_the_model_says(self) -> None:
        for kind in self.touched:
            for tenant in self.tenants.values():
                self.compare(tenant, kind)
        self.touched.clear()

    def compare(self, tenant: Tenant, kind: str) -> None:
        expected = newest_first(tenant.of(kind))
        self.read_events(tenant)
        assert {row_id for known, row_id in tenant.known if known == EVENTS[kind]} == tenant.of(kind).keys()
        if kind == "campaigns":
            for record in expected:
                record["rotator"] = f"{BASE_URL}/r/{slug}" if (slug := record.pop("slug")) else False
        if kind == "links":
            found = self.sql("SELECT id, campaign FROM links WHERE user_id = %(id)s", id=tenant.client.id)
            assert {row.pop("id"): row for row in found} == tenant.links
        else:
            assert self.listed(tenant, kind, kind.replace("qrs", "qr")) == expected
        for channel_id, items in tenant.items.items() if kind in ("channels", "links", "qrs") else ():
            found = self.listed(tenant, "items", f"channel/{channel_id}")
            shown = [item for item in items if item[1] not in tenant.binned]
            assert [(item["type"], item["id"]) for item in found] == shown

    def compare_records(self, tenant: Tenant) -> None:
        """Compare what the events say of each row with what its GET returns."""
        for kind, event in EVENTS.items():
            for row_id in tenant.of(kind):
                answer = tenant.client.get(f"/api/{path_of(kind)}/{row_id}").get_json()
                record = answer.get("details", answer["data"])
                # A change of the items of a channel is no event of theirs.
                assert tenant.known[event, row_id] | {"channel": 0} == record | {"channel": 0}

    def read_events(self, tenant: Tenant) -> None:
        self.sql("DELETE FROM rate_windows RETURNING 1")
        self.deliver()
        while (data := tenant.client.get(f"/api/events?limit=1000&after={tenant.after}").get_json()["data"])["events"]:
            tenant.after = data["next"]
            for event in data["events"]:
                kind, _, change = event["type"].partition(".")
                row = (kind, event["data"]["id"])
                if change == "deleted":
                    del tenant.known[row]
                else:
                    tenant.known[row] = event["data"]

    def listed(self, tenant: Tenant, key: str, path: str) -> list[dict[str, Any]]:
        data = tenant.client.get(f"/api/{path}?limit=1000").get_json()["data"]
        assert data["result"] == len(data[key])
        unknown = {"date", "updated", "link", "scans", "list"}  # equals the model
        return [{name: record[name] for name in record if name not in unknown} for record in data[key]]


def test_two_tenants_agree_with_a_plain_model(
    register: Callable[[str], Client], sql: Sql, run_jobs: Callable[[], None], deliver: Deliver
) -> None:
    class Machine(TwoTenants):
        def __init__(self) -> None:
            super().__init__(register, sql, run_jobs, deliver)

    run_state_machine_as_test(Machine, settings=settings(max_examples=8, stateful_step_count=40))
