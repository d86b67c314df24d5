"""Aliases with `/`, `.` and letters of any script, where the domain allows them."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from linkmgr.core.database import jobs
from linkmgr.repository import domains
from tests.conftest import BASE_URL, Client
from tests.support.factories import Sql
from tests.support.imported import Import, aliases, sale, send, shlink, yourls
from tests.support.races import at_once
from tests.support.shortlinks import PAGE, refused
from tests.support.targets import FIREFOX

HOST = "go.example.org"
PLAIN = "custom must be 1 to 100 letters, digits, '_' or '-'."
WIDE = "custom must be 1 to 100 letters of one script, digits, '_', '-' or '.', in parts that are separated by '/'."
LOOKALIKE = "custom must not mix letters that look like those of another script."
ALLOWED = [
    "a/b",
    "docs/v1.0/intro",
    "a.b",
    "c/x",
    "login/now",
    "\u00fcml\u00e4ut",
    "\u0441\u043a\u0438\u0434\u043a\u0430/winter",
    "\u65e5\u672c\u8a9e",
    "iPhone\u624b\u673a",
    "\u0939\u093f\u0928\u094d\u0926\u0940",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "\u00fc" * 100,
]


@pytest.fixture
def domain(alice: Client) -> int:
    return alice.add("/api/domain/add", {"domain": f"https://{HOST}", "widealiases": True})


def add(client: Client, alias: str, **members: Any) -> int:
    return client.add("/api/url/add", {"url": PAGE, "custom": alias, "domain": HOST} | members)


def ask(app: Flask, path: str, host: str = HOST, **options: Any) -> TestResponse:
    headers = {"Host": host, "User-Agent": FIREFOX}
    return app.test_client().open(quote(path, safe="/+?=%"), headers=headers, **options)


@pytest.mark.usefixtures("domain")
@pytest.mark.parametrize("alias", ALLOWED, ids=range(len(ALLOWED)))
def test_a_link_can_have_such_an_alias(app: Flask, alice: Client, alias: str) -> None:
    link_id = add(alice, alias)
    record = alice.get(f"/api/url/{link_id}").get_json()["details"]
    assert (record["alias"], record["custom"]) == (alias, alias)
    assert record["shorturl"] == f"https://{HOST}/{quote(alias)}"
    for path in (f"/{alias}", f"/{alias}/", f"/{unicodedata.normalize('NFD', alias)}"):
        assert ask(app, path).headers["Location"] == PAGE
    for short in (record["shorturl"], f"{HOST}/{alias}"):
        assert alice.get("/api/urls", query_string={"short": short}).get_json()["id"] == link_id
    by_alias = {"alias": alias, "domain": HOST}
    assert alice.get("/api/urls", query_string=by_alias).get_json()["id"] == link_id
    assert ask(app, f"/{alias}", "127.0.0.1:5000").status_code != 302
    sent = {"url": PAGE, "custom": unicodedata.normalize("NFD", alias), "domain": HOST}
    assert alice.post("/api/url/add", sent).get_json()["code"] == "alias_taken"


@pytest.mark.usefixtures("domain")
@pytest.mark.parametrize(
    ("alias", "message"),
    [
        *((alias, WIDE) for alias in ("a//b", "/a", "a/", ".env", "a/.git", "a.", "a/../b", "a b", "a?b", "a%2Fb")),
        *((alias, WIDE) for alias in ("a\u200db", "\ufb01", "\u0661", "\u0301a", "\uff41", "x" * 101, "a^b", "a+")),
        *((alias, WIDE) for alias in ("\u115f", "a\u034f", "a\ufe0f", "\u1820\u180b", "a\U000e0100")),
        *((alias, WIDE) for alias in ("a" + "\u0327" * 5, "\U0001f600", "a\\b", "a\u202eb")),
        *((alias, LOOKALIKE) for alias in ("\u0441ale", "x\u03ac", "\u0441\u0440\u043e\u0440", "sale/\u0435")),
        *((f"{alias}", "is reserved") for alias in ("a/qr", "a/b/qr/300", "a/pixels", "a/owner", "a/ico", "q/x")),
        *((f"{alias}", "is reserved") for alias in ("robots.txt", "Robots.txt", "favicon.ico", "static/x", "api/x")),
        *((f"{alias}", "is reserved") for alias in ("healthz/x", "metrics/x", "r/sale")),
    ],
)
def test_others_are_refused(alice: Client, alias: str, message: str) -> None:
    assert message in refused(alice, custom=alias, domain=HOST)


@pytest.mark.parametrize("alias", ["a/b", "a.b", "\u00fcml\u00e4ut", "\u0441ale", "a//b", "robots.txt"])
def test_where_they_are_not_allowed_nothing_has_changed(alice: Client, alias: str) -> None:
    link_id = alice.add("/api/url/add", {"url": PAGE, "custom": "plain"})
    alice.add("/api/domain/add", {"domain": f"https://{HOST}"})
    error = {"field": "custom", "code": "invalid", "message": PLAIN}
    for members in ({}, {"domain": HOST}, {"domain": ""}):
        for answer in (
            alice.post("/api/url/add", {"url": PAGE, "custom": alias} | members),
            alice.put(f"/api/url/{link_id}/update", {"custom": alias} | members),
        ):
            body = answer.get_json()
            assert (answer.status_code, body["message"], body["errors"]) == (400, PLAIN, [error])
    rows = {"urls": [{"url": PAGE, "custom": alias, "domain": HOST}]}
    assert alice.post("/api/urls/bulk", rows).get_json()["results"][0]["code"] == "invalid"
    changes = {"ids": [link_id], "data": {"custom": alias}}
    assert PLAIN in alice.put("/api/urls/bulk", changes).text
    assert alice.post("/api/bio/add", {"name": "Dana", "alias": alias}).get_json()["message"] == PLAIN.replace(
        "custom", "alias"
    )


def test_a_domain_of_another_user_is_as_unknown_as_any(alice: Client, bob: Client) -> None:
    bob.add("/api/domain/add", {"domain": f"https://{HOST}", "widealiases": True})
    for alias, code in (("a/b", "domain_unknown"), ("a//b", "invalid")):
        sent = {"url": PAGE, "custom": alias}
        answers = [alice.post("/api/url/add", sent | {"domain": domain}).get_json() for domain in (HOST, f"x.{HOST}")]
        assert {answer["code"] for answer in answers} == {code}
        assert answers[0]["message"] == answers[1]["message"]


@pytest.mark.usefixtures("domain")
def test_many_take_no_statement_each(alice: Client, executed: list[str]) -> None:
    urls = [{"url": PAGE, "custom": f"docs/{n}", "domain": HOST} for n in range(20)]
    executed.clear()
    assert alice.post("/api/urls/bulk", {"urls": urls}).get_json()["created"] == 20
    assert len(executed) < 10


def test_a_link_only_moves_where_its_alias_is_allowed(app: Flask, alice: Client, domain: int) -> None:
    link_id = add(alice, "docs/v1")
    answer = alice.put(f"/api/url/{link_id}/update", {"domain": ""})
    assert (answer.status_code, answer.get_json()["code"]) == (400, "alias_wide")
    assert alice.put(f"/api/url/{link_id}/update", {"custom": "docs/v2"}).status_code == 200
    assert alice.put(f"/api/domain/{domain}/update", {"widealiases": False}).status_code == 200
    record = alice.get(f"/api/url/{link_id}").get_json()["details"]
    sent_back = {"custom": record["custom"], "domain": record["domain"], "title": "Docs"}
    assert alice.put(f"/api/url/{link_id}/update", sent_back).status_code == 200
    assert alice.put(f"/api/url/{link_id}/update", {"custom": "docs/v3"}).get_json()["message"] == PLAIN
    assert ask(app, "/docs/v2").headers["Location"] == PAGE


@pytest.mark.usefixtures("domain")
def test_its_pages_are_those_of_any_link(app: Flask, alice: Client) -> None:
    alias = "docs/\u00fcber.uns"
    link_id = add(alice, alias, password="secret", title="Docs")
    assert b"password" in ask(app, f"/{alias}").data
    assert ask(app, f"/{alias}", method="POST", data={"password": "secret"}).headers["Location"] == PAGE
    assert ask(app, f"/{alias}", method="POST", data={"password": "wrong"}).status_code == 401
    for path, mimetype in ((f"/{alias}/qr", "image/png"), (f"/{alias}/qr/200?format=svg", "image/svg+xml")):
        assert ask(app, path).mimetype == mimetype
    assert "Where" in ask(app, f"/{alias}+").text
    assert quote(f"https://{HOST}/{alias}", safe="") in ask(app, f"/{alias}/owner").headers["Location"].replace(
        "http%3A", "https%3A"
    )
    assert ask(app, f"/{alias}", method="DELETE").status_code == 405
    assert alice.post(f"/api/url/{link_id}/try", {}).get_json()["data"]["url"] == PAGE


@pytest.mark.usefixtures("domain")
def test_what_the_service_serves_comes_first(app: Flask, alice: Client, sql: Sql) -> None:
    for alias in ("robots.txt", "healthz/x", "api/x", "q/none", "static/x"):
        sql(
            """
            INSERT INTO links (user_id, domain_id, alias, url)
            SELECT user_id, id, %(alias)s, 'https://example.com/' FROM domains
            RETURNING 1
            """,
            alias=alias,
        )
        assert ask(app, f"/{alias}").status_code != 302
    assert ask(app, "/robots.txt").text == "User-agent: *\nDisallow:\n"


@pytest.mark.usefixtures("domain")
def test_an_alias_comes_before_the_rest_of_a_path(app: Flask, alice: Client) -> None:
    add(alice, "docs", url="https://example.com/docs", extrapath=True)
    link_id = add(alice, "docs/v1")
    paths = ("/docs", "/docs/v1", "/docs/v1/", "/docs/v2", "/docs/v1/a%2Fb", "/docs/v1~", "/docs/\u00fc")
    base = "https://example.com/docs"
    expected = [base, PAGE, PAGE, f"{base}/v2", f"{base}/v1/a%2Fb", f"{base}/v1~", f"{base}/%C3%BC"]
    assert [ask(app, path).headers["Location"] for path in paths] == expected
    assert alice.delete(f"/api/url/{link_id}/delete").status_code == 200
    assert ask(app, "/docs/v1").headers["Location"] == f"{base}/v1"
    assert ask(app, "/none/v1").status_code == 404


@pytest.mark.usefixtures("domain")
@pytest.mark.parametrize("page", ["/qr", "/qr/200", "/owner", "/pixels", "/ico", "+"])
def test_a_path_that_ends_like_a_page_is_one_only_of_a_link(app: Flask, alice: Client, page: str) -> None:
    base = "https://example.com/docs"
    add(alice, "docs", url=base, extrapath=True)
    for path in (f"/a{page}", f"/a%2Fb/\u00fc{page}"):
        assert ask(app, f"/docs{path}").headers["Location"] == base + quote(path, safe="/+%")
    add(alice, "docs/a")
    assert base not in ask(app, f"/docs/a{page}").headers.get("Location", "")
    assert base not in ask(app, f"/none/a{page}").headers.get("Location", "")


@pytest.mark.usefixtures("domain")
@pytest.mark.parametrize("alias", ["\u00fcber", "v1.0"], ids=["letter", "dot"])
def test_such_an_alias_can_have_a_rest_of_the_path(app: Flask, alice: Client, alias: str) -> None:
    base = "https://example.com/docs"
    add(alice, alias, url=base, extrapath=True)
    rests = ("/a/b/", "/a~", "/" + "a" * 100, "/a%2Fb%20c", "/a//b")
    for name in (alias, unicodedata.normalize("NFD", alias)):
        assert [ask(app, f"/{name}{rest}").headers["Location"] for rest in rests] == [base + rest for rest in rests]
    assert [ask(app, f"/{alias}{rest}").status_code for rest in ("//a", "/../a")] == [404, 404]
    raw = {"RAW_URI": f"/{alias}/\u00fc".encode().decode("latin-1")}  # as clients send it that do not encode it
    assert ask(app, f"/{alias}/\u00fc", environ_overrides=raw).headers["Location"] == f"{base}/%C3%BC"


@pytest.mark.usefixtures("domain")
def test_the_longest_alias_that_a_path_begins_with_has_its_rest(app: Flask, alice: Client, sql: Sql) -> None:
    docs, deep = "https://example.com/docs", "https://example.com/deep?v=2"
    add(alice, "docs", url=docs, extrapath=True)
    link_id = add(alice, "docs/\u00fc", url=deep, extrapath=True)
    add(alice, "docs/\u00fc/page")
    paths = {
        "/docs/a/b": f"{docs}/a/b",
        "/docs/ub/c": f"{docs}/ub/c",
        "/docs/\u00fc": deep,
        "/docs/\u00fc/": deep,
        "/docs/\u00fc/page": PAGE,
        **{
            f"/docs/\u00fc{rest}": f"https://example.com/deep{rest}?v=2"
            for rest in ("/b/c/", "/page/b", "/b~/c", "/a%2Fb%20c/d", "/a//b", "/b/qr", "/qr/a/b", "/%FF%00/a")
        },
    }
    for form in ("NFC", "NFD"):
        assert {path: ask(app, unicodedata.normalize(form, path)).headers["Location"] for path in paths} == paths
    assert ask(app, "/docs/\u00fc/qr").mimetype == "image/png"
    assert [ask(app, f"/docs/\u00fc{rest}").status_code for rest in ("/../a", "/b/../../c", "//b")] == [404] * 3
    assert alice.get(f"/api/url/{link_id}").get_json()["data"]["clicks"] == 2 * 10
    alice.put(f"/api/url/{link_id}/update", {"extrapath": False})
    assert ask(app, "/docs/\u00fc/b").headers["Location"] == f"{docs}/%C3%BC/b"
    sql("UPDATE links SET url = %(url)s WHERE id = %(id)s RETURNING 1", url=f"https://{HOST}/docs/\u00fc/x", id=link_id)
    alice.put(f"/api/url/{link_id}/update", {"extrapath": True})
    assert ask(app, "/docs/\u00fc/b").status_code == 508


def test_the_alias_before_a_rest_is_found_without_regard_to_case(app: Flask, alice: Client) -> None:
    alice.add("/api/domain/add", {"domain": f"https://{HOST}", "widealiases": True, "ignorecase": True})
    add(alice, "Docs/V1", url="https://example.com/v1", extrapath=True)
    assert ask(app, "/docs/v1/A/b").headers["Location"] == "https://example.com/v1/A/b"


@pytest.mark.usefixtures("domain")
def test_a_path_takes_few_statements_whatever_its_length(app: Flask, alice: Client, executed: list[str]) -> None:
    add(alice, "docs/v1", url="https://example.com/docs", extrapath=True)
    numbers = []
    for path in ("/docs/v1/a", "/docs/v1" + "/a" * 45, "/docs/v1" + "/a" * 500):
        ask(app, path)
        executed.clear()
        assert ask(app, path).status_code == 302
        numbers.append(len([statement for statement in executed if "aliases a" in statement]))
    assert numbers == [3, 3, 2]  # the last one is too long for an alias


@pytest.mark.usefixtures("domain")
def test_a_redirect_takes_one_statement(alice: Client, executed: list[str], app: Flask) -> None:
    add(alice, "docs/\u00fcber")
    ask(app, "/docs/\u00fcber")
    executed.clear()
    assert ask(app, "/docs/\u00fcber").status_code == 302
    [statement] = [statement for statement in executed if " links " in statement]  # not those of jobs
    assert "FROM aliases" in statement


@pytest.mark.usefixtures("domain")
def test_a_qr_code_can_lead_to_such_a_link(app: Flask, alice: Client) -> None:
    add(alice, "docs/\u00fcber")
    data = f"https://{HOST}/docs/\u00fcber"
    made = alice.post("/api/qr/add", {"type": "link", "data": data}).get_json()
    assert made["error"] == 0, made
    alice.add("/api/qr/add", {"type": "link", "data": unicodedata.normalize("NFD", data)})
    assert alice.post("/api/qr/add", {"type": "link", "data": f"https://{HOST}/docs/other"}).get_json()["error"] == 1


@pytest.mark.usefixtures("domain")
def test_of_many_at_once_one_has_the_alias(app: Flask, alice: Client) -> None:
    def create(number: int) -> int:
        alias = unicodedata.normalize("NFD" if number % 2 else "NFC", "docs/\u00fcber")
        members = {"url": PAGE, "custom": alias, "domain": HOST}
        return Client(app.test_client(), alice.key).post("/api/url/add", members).status_code

    assert sorted(at_once(20, create)) == [200, *[400] * 19]


# --- imports


@pytest.mark.usefixtures("domain")
def test_imports_keep_aliases(app: Flask, alice: Client, run_import: Import, sql: Sql) -> None:
    rows = [sale(alias).replace("s.example.com", HOST) for alias in ("docs/v1", "a.b", "\u00fcml\u00e4ut")]
    assert run_import(alice, shlink(*rows))["made"] == 3
    dub = f"id,domain,key,url,shortLink,clicks\n1,{HOST},c/x,https://example.com/x,https://{HOST}/c/x,3\n"
    assert run_import(alice, dub.encode(), "?source=dub")["made"] == 1
    urls = f"Long URL,Short URL\nhttps://example.com/y,https://{HOST}/c/%C3%BC\n"
    assert run_import(alice, urls.encode())["made"] == 1
    assert aliases(sql, alice) == ["a.b", "c/x", "c/\u00fc", "docs/v1", "\u00fcml\u00e4ut"]
    assert ask(app, "/c/x").headers["Location"] == "https://example.com/x"


def test_imports_keep_the_case_of_aliases_where_it_is_ignored(alice: Client, run_import: Import, app: Flask) -> None:
    both = {"domain": f"https://{HOST}", "widealiases": True, "ignorecase": True}
    alice.add("/api/domain/add", both)
    assert run_import(alice, shlink(sale("C/X").replace("s.example.com", HOST)))["made"] == 1
    assert ask(app, "/c/x").status_code == 302


# --- the host of the service


@pytest.fixture
def own(app_with: Callable[..., Flask], sql: Sql) -> Iterator[Flask]:
    """The service with wide aliases on its own host."""
    wide = app_with(aliases="widealiases")
    with wide.app_context():
        domains.prepare_own_host()
    yield wide
    sql("UPDATE service SET widealiases = false RETURNING 1")


OURS = "127.0.0.1:5000"


def test_the_host_of_the_service_can_have_them(own: Flask, register: Callable[..., Client]) -> None:
    client = register("dana", via=own)
    link_id = add(client, "guide/\u00fcber", domain="")
    assert ask(own, "/guide/\u00fcber", OURS).headers["Location"] == PAGE
    assert client.put(f"/api/url/{link_id}/update", {"custom": "guide/v1.0"}).status_code == 200
    client.add("/api/bio/add", {"name": "Dana", "alias": "team/dana"})
    add(client, "team", domain="", extrapath=True)
    assert ask(own, "/team/dana", OURS).status_code == 200
    made = client.post("/api/qr/add", {"type": "link", "data": f"{BASE_URL}/guide/v1.0"}).get_json()
    assert made["error"] == 0, made
    for alias in ("console/x", "login/x", "c/x", "u/dana/list-1", "static/x", "account/x", "docs/x", "openapi.json"):
        assert "is reserved" in refused(client, custom=alias)
    client.add("/api/domain/add", {"domain": f"https://{HOST}", "widealiases": True})
    for alias in ("statistics/x", "avatar/x", "c/x"):  # hidden by pages that branded domains do not have
        moved = add(client, alias)
        assert client.put(f"/api/url/{moved}/update", {"domain": ""}).get_json()["code"] == "alias_reserved"
        many = {"ids": [moved], "data": {"domain": ""}}
        assert client.put("/api/urls/bulk", many).get_json()["results"][0]["code"] == "alias_reserved"
    plain = add(client, "statistics")
    assert client.put(f"/api/url/{plain}/update", {"domain": ""}).status_code == 200
    branded = add(client, "login/now")
    for sent in ({"domain": ""}, {"domain": "", "custom": "c/x"}):
        answer = client.put(f"/api/url/{branded}/update", sent).get_json()
        assert "reserved" in answer["message"] or answer["code"] == "alias_reserved"
    assert client.put(f"/api/url/{link_id}/update", {"custom": "c/x"}).get_json()["code"] == "alias_reserved"
    for alias in ("a.b", "\u00fcml\u00e4ut"):
        assert send(client, yourls(alias, 1, 2)).status_code == 200
        with own.app_context():
            while jobs.run_next(lambda _: False) or jobs.fetch_next(lambda _: False):
                pass
        assert ask(own, f"/{alias}", OURS).headers["Location"] == "https://example.com/sale"
    assert ask(own, "/openapi.json", OURS).headers["Location"] == "/api/openapi.json"
    assert add(client, "openapi.json")
    assert ask(own, "/openapi.json").headers["Location"] == PAGE
    for path in ("/console/unknown", "/nothing/here", "/wp-login.php"):
        assert ask(own, path, OURS).status_code == 404


# --- the console


def test_the_form_of_a_domain_has_both_options(console: FlaskClient, domain: int) -> None:
    page = console.get(f"/console/domains/{domain}/edit").text
    assert 'name="ignorecase"' in page
    assert 'name="widealiases"' in page


@pytest.mark.usefixtures("domain")
def test_pages_show_aliases_as_people_write_them(console: FlaskClient, alice: Client) -> None:
    link_id = add(alice, "docs/\u00fcber", title="")
    public = alice.put(f"/api/url/{link_id}/public", {"public": True}).get_json()["data"]["url"]
    own = f"/console/links/{link_id}"
    for path in (own, f"{own}/edit", f"{own}/delete", "/console/links", urlsplit(public).path):
        page = console.get(path).text
        assert "/docs/\u00fcber" in page, path
        assert "%C3" not in re.sub(r' (?:href|src|action|value|data-\w+)="[^"]*"', "", page), path
    assert f'href="https://{HOST}/docs/%C3%BCber"' in console.get(own).text


@pytest.mark.usefixtures("domain")
def test_the_file_of_a_qr_code_has_its_alias_as_name(console: FlaskClient, alice: Client) -> None:
    link_id = add(alice, "docs/\u65e5\u672c.v1")
    headers = console.get(f"/console/links/{link_id}/qr?download=1&format=svg").headers
    assert headers["Content-Disposition"] == "attachment; filename*=UTF-8''qr-docs-%E6%97%A5%E6%9C%AC.v1.svg"
