"""Statistics that keys with `own_only` or `domains` read: only those of their links."""

import pytest

from tests.conftest import BASE_URL, Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.keyring import URL, Make, branded, code
from tests.support.reports import NOW
from tests.support.visited import Store, Visited

OWN, FOREIGN = 2, 5  # visits of people, and as many of bots
# The clicks that each query counts.
QUERIES = {
    "period=7d": OWN,
    "period=all": OWN,
    "by=country&bots=include": 2 * OWN,
    "by=target&bots=include": 2 * OWN,
    "by=time:hour,country&metrics=clicks,visitors": OWN,
    "by=country,browser&metrics=clicks,visitors": OWN,
    "by=referrer&country=Norway": 0,
}


def visited(tracked_id: int, number: int, label: str) -> list[Visited]:
    return [
        Visited(tracked_id, NOW, str(n).encode(), label, referrer=label, browser=label, os=label, bot=bot)
        for n in range(number)
        for bot in (False, True)
    ]


@pytest.mark.parametrize("limit", ["own_only", "domains"])
def test_a_limited_key_reads_the_visits_of_its_links_only(
    *, alice: Client, make_key: Make, sql: Sql, store: Store, limit: str
) -> None:
    domain_id, domain = branded(sql, alice)
    if limit == "own_only":
        host, client = BASE_URL, make_key(alice, own_only=True)
    else:
        host, client = domain, make_key(alice, domains=[domain_id])
    campaign = alice.add("/api/campaign/add", {"name": "All"})
    channel = alice.add("/api/channel/add", {"name": "All"})
    link = client.add("/api/url/add", {"url": URL, "custom": "mine", "domain": host})
    foreign, qr = factories.link(sql, alice.id), factories.qr(sql, alice.id)
    for link_id in (link, foreign):
        alice.post(f"/api/campaign/{campaign}/assign/{link_id}")
        alice.post(f"/api/channel/{channel}/assign/links/{link_id}")
    alice.post(f"/api/channel/{channel}/assign/qr/{qr}")
    store(visited(link, OWN, "Peru"))
    for target in (foreign, qr):
        store(visited(target, FOREIGN, "Norway"))
    for selection in (f"ids={link}", f"campaign={campaign}", f"channel={channel}", f"domain={host}"):
        for query, clicks in QUERIES.items():
            data = client.get(f"/api/stats?{selection}&{query}").get_json()["data"]
            assert (data["totals"]["clicks"], "Norway" in str(data)) == (clicks, False), (selection, query)
    by_name = client.get(f"/api/stats?ids={link}&by=target,campaign&names=1").get_json()["data"]["rows"]
    assert [(row["shorturl"], "campaign_name" in row) for row in by_name] == [(f"{host}/mine", False)]
    for bots in ("exclude", "only"):
        visits = client.get(f"/api/url/{link}/visits?bots={bots}").get_json()["data"]["visits"]
        assert [visit["country"] for visit in visits] == ["Peru"] * OWN
    for path in (f"/api/stats?ids={link},{foreign}", f"/api/url/{foreign}/visits?bots=only", f"/api/qr/{qr}/visits"):
        assert code(client.get(path)) == (404, "missing")
    for path in ("/api/stats", "/api/stats/live", "/api/stats?period=7d", "/api/stats?ids="):
        assert code(client.get(path)) == (403, "key_confined"), "it needs a selection"
