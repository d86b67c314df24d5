"""Domains in the console: DNS records, the check, and what prevents a delete."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.conftest import BASE_URL, Client
from tests.support.factories import Sql
from tests.support.foreign import answering, publish, server
from tests.support.pages import fields, get, message, signed_in, words
from tests.support.slots import full

DOMAIN = {"domain": "https://go.example.com"}


@pytest.fixture
def checking(app_with: Callable[..., Flask], app: Flask, alice: Client) -> FlaskClient:
    """A browser of alice at a service that checks domains, without one that has been checked."""
    service = app_with(
        domain_check="http",
        base_url="http://links.example.org",
        serve_loopback="1",
        secret_key=app.config["SECRET_KEY"],
    )
    return signed_in(service)


def proving(browser: FlaskClient) -> Callable[[BaseHTTPRequestHandler], None]:
    """Return a server that responds as the service of the browser does."""

    def respond(request: BaseHTTPRequestHandler) -> None:
        proof = browser.application.test_client().get(request.path, headers={"Host": "go.example.com"})
        answering(proof.data)(request)

    return respond


@pytest.mark.parametrize(
    ("base_url", "domain", "record"),
    [
        ("https://links.example.org", "go.example.com", ("CNAME", "go.example.com.", "links.example.org.")),
        ("https://links.example.org", "example.com", ("ALIAS", "example.com.", "links.example.org.")),
        ("https://192.0.2.7", "go.example.com", ("A", "go.example.com.", "192.0.2.7")),
        ("https://[2001:db8::7]:8443", "go.example.com", ("AAAA", "go.example.com.", "2001:db8::7")),
    ],
)
def test_the_dns_record_to_set_is_shown(
    *, app_with: Callable[..., Flask], alice: Client, base_url: str, domain: str, record: tuple[str, str, str]
) -> None:
    domain_id = alice.add("/api/domain/add", {"domain": f"https://{domain}"})
    service = app_with(base_url=base_url.replace("https", "http"), serve_loopback="1")
    page = get(signed_in(service), f"/console/domains/{domain_id}/edit")
    kind, name, value = record
    assert f"<code>{kind}</code>" in page
    assert f'<code id="dns-name" dir="ltr">{name}</code>' in page
    assert f'<code id="dns-value" dir="ltr">{value}</code>' in page


def test_the_result_of_a_check_is_stored_and_shown(
    checking: FlaskClient, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain_id = alice.add("/api/domain/add", DOMAIN)
    path = f"/console/domains/{domain_id}"
    assert "not checked" in get(checking, "/console/domains")

    for answer, state, sentence in (
        (answering(b"other"), "does not point here", "go.example.com resolves to 127.0.0.1, where another server"),
        (proving(checking), "points here", "The domain points to this service."),
    ):
        with server(answer) as port, monkeypatch.context() as patch:
            publish(patch, {"go.example.com:80": port})
            checked = checking.post(f"{path}/check")
        assert (checked.status_code, checked.headers["Location"]) == (303, f"{path}/edit")
        page = get(checking, f"{path}/edit")
        assert sentence in words(page)
        for shown in (page, get(checking, "/console/domains")):
            assert f">{state}</span>" in shown


def test_an_installation_that_does_not_check_domains_says_so(console: FlaskClient, alice: Client) -> None:
    domain_id = alice.add("/api/domain/add", DOMAIN)
    console.post(f"/console/domains/{domain_id}/check")
    page = get(console, f"/console/domains/{domain_id}/edit")
    assert "This installation does not check domains." in page
    assert ">not checked</span>" in page
    assert "<bdi>go.example.com</bdi>" in get(console, "/console/domains")


def test_a_domain_that_does_not_point_here_is_refused_beside_its_field(
    checking: FlaskClient, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server(answering(b"other")) as port:
        publish(monkeypatch, {"go.example.com:80": port})
        answer = checking.post("/console/domains/new", data=DOMAIN)
    assert answer.status_code == 400
    assert "where another server responded" in message(answer.text, "domain")


def test_what_was_typed_is_kept_when_the_service_is_busy(checking: FlaskClient, alice: Client) -> None:
    with full(checking.application):
        answer = checking.post("/console/domains/new", data=DOMAIN | {"brandname": "Kept"})
    assert answer.status_code == 400
    assert "Too many requests that take long are in progress." in answer.text
    assert fields(answer.text)["brandname"] == ["Kept"]


def test_a_domain_that_was_added_after_a_check_points_here(
    checking: FlaskClient, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server(proving(checking)) as port:
        publish(monkeypatch, {"go.example.com:80": port})
        answer = checking.post("/console/domains/new", data=DOMAIN)
    assert ">points here</span>" in get(checking, answer.headers["Location"])


def test_deleting_a_domain_asks_for_its_name_and_names_its_links(console: FlaskClient, alice: Client, sql: Sql) -> None:
    domain_id = alice.add("/api/domain/add", DOMAIN)
    path = f"/console/domains/{domain_id}"
    answer = console.post(f"{path}/delete", data={"typed": "other.example.com"})
    assert (answer.status_code, message(answer.text, "typed")) == (400, "Type go.example.com to delete this domain.")
    link = alice.add("/api/url/add", {"url": "https://example.com/", "custom": "sale", "domain": "go.example.com"})
    assert "<strong>1</strong> <small>link</small>" in words(get(console, f"{path}/edit"))
    answer = console.post(f"{path}/delete", data={"typed": "go.example.com "})
    assert (answer.status_code, message(answer.text, "typed")[:21]) == (400, "This domain has links")
    alice.delete(f"/api/url/{link}/delete")
    assert console.post(f"{path}/delete", data={"typed": "go.example.com"}).status_code == 303
    assert sql("SELECT 1 FROM domains") == []


def test_forms_for_new_links_begin_with_the_default_domain_unless_it_points_elsewhere(
    console: FlaskClient, alice: Client, sql: Sql
) -> None:
    def begin_with(domain: str) -> None:
        assert fields(get(console, "/console/links/new"))["domain"] == [domain or BASE_URL]
        chosen = f'<option value="{domain}" selected>'
        assert chosen in get(console, "/console").split('name="domain"')[1].split("</select>")[0]

    alice.add("/api/domain/add", DOMAIN)
    begin_with("")
    assert ">Make default</button>" in get(console, "/console/domains")
    answer = console.post("/console/domains/default", data=DOMAIN, follow_redirects=True)
    assert "Forms for new links now begin with go.example.com." in answer.text
    assert "Remove as default" in answer.text
    begin_with(DOMAIN["domain"])
    made = console.post("/console", data={"urls": "example.com/a"}).text
    assert 'href="https://go.example.com/' in made
    made = console.post("/console", data={"urls": "example.com/b", "domain": ""}).text
    assert f'href="{BASE_URL}/' in made
    assert '<option value="" selected>' in made  # as it was chosen
    assert "domain must be one of your branded domains." in words(
        console.post("/console", data={"urls": "example.com", "domain": "x"}).text
    )

    sql("UPDATE domains SET checked = now(), problem = 'It points elsewhere.' RETURNING 1")
    begin_with("")
    for path in ("/console", "/console/links/new"):
        assert "</bdi> does not point here, so new links are on 127.0.0.1:5000." in words(get(console, path))
