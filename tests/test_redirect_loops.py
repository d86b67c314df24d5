"""Redirect loops, created in every way that validation on create and update cannot detect."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from linkmgr.core.error_catalogue import CATALOGUE
from linkmgr.core.web import passwords
from tests.conftest import Client
from tests.support import factories
from tests.support.factories import Sql
from tests.support.shortlinks import ANDROID
from tests.support.targets import FIREFOX, statistics

ONE, TWO = "go.example.org", "to.example.org"
OUTSIDE = "https://example.com/page"


class Site:
    """Links and domains of alice, and a visitor."""

    def __init__(self, app: Flask, sql: Sql, alice: Client) -> None:
        self.app, self.sql, self.alice = app, sql, alice

    def link(self, alias: str, url: str, **members: Any) -> int:
        return self.alice.add("/api/url/add", {"url": url, "custom": alias} | members)

    def domain(self, host: str, **members: str) -> int:
        return self.alice.add("/api/domain/add", {"domain": f"https://{host}"} | members)

    def move(self, link_id: int, host: str) -> None:
        answer = self.alice.put(f"/api/url/{link_id}/update", {"domain": f"https://{host}"})
        assert answer.status_code == 200, answer.text

    def ask(self, path: str, host: str = "127.0.0.1:5000", agent: str = FIREFOX, **headers: str) -> TestResponse:
        return self.app.test_client().get(path, headers={"Host": host, "User-Agent": agent} | headers)

    def is_loop(self, path: str, host: str = "127.0.0.1:5000", agent: str = FIREFOX) -> bool:
        answer = self.ask(path, host, agent)
        assert ("Location" in answer.headers) != (answer.status_code == 508)
        return answer.status_code == 508

    def clicks(self, tracked_id: int) -> int:
        return int(statistics(self.sql, tracked_id)["clicks"])


@pytest.fixture
def site(app: Flask, sql: Sql, alice: Client) -> Site:
    return Site(app, sql, alice)


@pytest.fixture
def moved(site: Site) -> tuple[int, int]:
    """Two links that redirect to each other: each was moved to the domain that the other targets."""
    there, back = site.link("there", f"https://{TWO}/back"), site.link("back", f"https://{ONE}/there")
    site.domain(ONE)
    site.domain(TWO)
    site.move(there, ONE)
    site.move(back, TWO)
    return there, back


def test_moved_links_that_form_a_loop_are_not_redirected(site: Site, moved: tuple[int, int]) -> None:
    answer = site.ask("/there", ONE)
    assert answer.status_code == 508
    assert CATALOGUE["redirect_loop"][1] in answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    assert site.is_loop("/back", TWO)
    assert [site.clicks(link) for link in moved] == [0, 0]


ENDED = {"url": OUTSIDE, "expiry": "2020-01-01", "expiredurl": f"https://{ONE}/round"}


@pytest.mark.parametrize("members", [*({"type": type_} for type_ in ("direct", "splash", "frame")), ENDED])
def test_a_domain_that_is_added_later_closes_a_loop(site: Site, members: dict[str, Any]) -> None:
    link = site.link("round", **{"url": f"https://{ONE}/round"} | members)
    assert site.ask("/round").status_code in (200, 302)
    domain = site.domain(ONE)
    site.sql("UPDATE links SET domain_id = %(domain)s WHERE id = %(id)s RETURNING id", domain=domain, id=link)
    before = site.clicks(link)
    assert site.is_loop("/round", ONE)
    assert site.clicks(link) == before


@pytest.mark.parametrize(
    "members",
    [
        {"deeplink": {"auto": True, "google": f"https://{ONE}/round"}},
        {"devicetarget": [{"device": "Android", "link": f"https://{ONE}/round"}]},
        {"languagetarget": [{"language": "en", "link": f"https://{ONE}/round"}]},
    ],
)
def test_only_visitors_whose_redirect_loops_get_the_error(site: Site, members: dict[str, Any]) -> None:
    link = site.link("round", OUTSIDE, **members)
    domain = site.domain(ONE)
    site.sql("UPDATE links SET domain_id = %(domain)s WHERE id = %(id)s RETURNING id", domain=domain, id=link)
    asked = {"Host": ONE, "User-Agent": ANDROID, "Accept-Language": "en"}
    assert site.app.test_client().get("/round", headers=asked).status_code == 508
    assert site.clicks(link) == 0
    assert site.ask("/round", ONE).headers["Location"] == OUTSIDE
    assert site.clicks(link) == 1


@pytest.mark.parametrize(
    "path", ["/./round", "/x/../round", "/%2e/round", "/x/%2E%2e/round", "/round/../round", "/x/%2e./round"]
)
def test_a_loop_is_found_if_browsers_remove_dots_from_the_path(site: Site, path: str) -> None:
    link = site.link("round", f"https://{ONE}{path}")
    domain = site.domain(ONE)
    site.sql("UPDATE links SET domain_id = %(domain)s WHERE id = %(id)s RETURNING id", domain=domain, id=link)
    assert site.is_loop("/round", ONE)
    assert site.clicks(link) == 0


def test_a_redirect404_that_loops_is_not_followed(site: Site) -> None:
    back = site.link("back", f"https://{ONE}/missing")
    site.domain(ONE, redirect404=f"https://{TWO}/back")
    site.domain(TWO)
    site.move(back, TWO)
    answer = site.ask("/nothing", ONE)
    assert answer.status_code == 508
    assert CATALOGUE["redirect_loop"][1] in answer.text
    assert site.is_loop("/back", TWO)


def test_a_redirectroot_that_loops_is_not_followed(site: Site) -> None:
    back = site.link("back", f"https://{ONE}")
    site.domain(ONE, redirectroot=f"https://{TWO}/back")
    site.domain(TWO)
    site.move(back, TWO)
    assert site.is_loop("/", ONE)
    assert site.is_loop("/back", TWO)


def test_a_qr_code_does_not_redirect_in_a_loop(site: Site) -> None:
    code = site.alice.post("/api/qr/add", {"type": "link", "data": f"https://{ONE}/round"}).get_json()
    path = "/q/" + code["link"].rsplit("/", 1)[1]
    link = site.link("round", f"https://{TWO}{path}")
    site.domain(ONE)
    site.domain(TWO)
    site.move(link, ONE)
    assert site.is_loop(path, TWO)
    assert site.clicks(code["id"]) == 0
    assert site.is_loop("/round", ONE)
    assert site.is_loop(path)


def test_a_domain_that_is_added_later_does_not_make_a_qr_code_redirect_to_itself(site: Site) -> None:
    code = site.alice.post("/api/qr/add", {"type": "link", "data": OUTSIDE}).get_json()
    path = "/q/" + code["link"].rsplit("/", 1)[1]
    assert site.alice.put(f"/api/qr/{code['id']}/update", {"data": f"https://{ONE}{path}"}).status_code == 200
    assert not site.is_loop(path)
    site.domain(ONE)
    assert site.is_loop(path)
    assert site.is_loop(path, ONE)


def test_a_rotator_does_not_redirect_in_a_loop(site: Site) -> None:
    campaign = site.alice.add("/api/campaign/add", {"name": "Sale", "slug": "sale", "public": True})
    link = site.link("round", f"https://{ONE}/r/sale", campaign=campaign)
    site.domain(ONE)
    assert site.ask("/r/sale", ONE).status_code == 302
    assert site.is_loop("/round")
    assert site.clicks(link) == 0


def test_a_chain_without_an_end_is_followed_to_a_limit(site: Site) -> None:
    for number in range(12):
        site.link(f"hop{number}", f"https://{ONE}/hop{number + 1}")
    domain = site.domain(ONE)
    site.sql("UPDATE links SET domain_id = %(domain)s RETURNING id", domain=domain)
    assert site.is_loop("/hop0", ONE)
    assert not site.is_loop("/hop5", ONE)


# --- chains without a loop


def chain(site: Site, last: str) -> tuple[int, str]:
    """Return a link on our host that targets this path on a branded domain, which was added later."""
    address = f"https://{ONE}{last}"
    return site.link("start", address), address


def test_a_chain_that_ends_outside_is_redirected_and_counted(site: Site) -> None:
    first, address = chain(site, "/inside?a=1")
    last = site.link("inside", OUTSIDE)
    site.domain(ONE)
    site.move(last, ONE)
    assert site.ask("/start").headers["Location"] == address
    assert [site.clicks(first), site.clicks(last)] == [1, 0]
    assert site.ask("/inside", ONE).headers["Location"] == OUTSIDE


@pytest.mark.parametrize("members", [{"password_hash": passwords.hashed("x")}, {"expiry": "2020-01-01 00:00:00+00"}])
def test_a_chain_that_ends_at_a_page_is_not_a_loop(site: Site, members: dict[str, str]) -> None:
    """A password page or an expiry page does not redirect by itself."""
    _, address = chain(site, "/inside")
    inside = site.link("inside", f"https://{TWO}/start")
    domain = site.domain(ONE)
    site.domain(TWO)
    [(column, value)] = members.items()
    site.sql(
        f"UPDATE links SET domain_id = %(domain)s, {column} = %(value)s WHERE id = %(id)s RETURNING id",
        domain=domain, value=value, id=inside,
    )  # fmt: skip
    assert site.ask("/start").headers["Location"] == address


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/static/go.js", "/api/account", "/u/nobody/list-1", "/%FF", "/a//b"]
)
@pytest.mark.parametrize("members", [{}, {"redirectroot": OUTSIDE, "redirect404": OUTSIDE}])
def test_any_other_page_of_a_domain_is_redirected_to(site: Site, path: str, members: dict[str, str]) -> None:
    _, address = chain(site, path)
    site.domain(ONE, **members)
    assert site.ask("/start").headers["Location"] == address


def test_a_public_list_of_a_campaign_ends_a_chain(site: Site) -> None:
    campaign = site.alice.post("/api/campaign/add", {"name": "Sale", "slug": "sale", "public": True}).get_json()["id"]
    list_path = f"/u/alice/sale-{campaign}"
    site.link("back", f"https://{ONE}{list_path}")
    domain = site.domain(ONE, redirect404=f"https://{TWO}/back")
    site.domain(TWO)
    assert domain
    assert site.ask("/back").headers["Location"] == f"https://{ONE}{list_path}"


def test_a_target_that_became_our_own_host_is_followed(make_app: Callable[..., Flask], sql: Sql, alice: Client) -> None:
    """Change LINKMGR_BASE_URL after the link was created."""
    moved = make_app(base_url=f"https://{ONE}").test_client()
    link = factories.link(sql, alice.id, url=f"https://{ONE}/round")
    sql("UPDATE links SET alias = 'round' WHERE id = %(id)s RETURNING id", id=link)
    assert moved.get("/round", headers={"Host": ONE}).status_code == 508
    sql("UPDATE links SET url = %(url)s WHERE id = %(id)s RETURNING id", url=f"https://{ONE}/login", id=link)
    assert moved.get("/round", headers={"Host": ONE}).status_code == 302
