"""Browsers of the test client, and what they read on pages of the console."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from linkmgr import console as console_pages
from linkmgr.console import rule_rows
from linkmgr.console.stored_forms import StoredForm
from tests.support import factories
from tests.support.factories import Sql
from tests.support.visited import Visited

if TYPE_CHECKING:
    from tests.conftest import Client

PASSWORD = "correct horse"


def forms() -> list[StoredForm]:
    """Return the forms of the modules of the console."""
    names = [f"{console_pages.__name__}.{module.name}" for module in iter_modules(console_pages.__path__)]
    return [value for name in names for value in vars(import_module(name)).values() if isinstance(value, StoredForm)]


# The factories of rows, by the word after /console/
ROWS = {form.path[1:]: factories.of(form.stored) for form in forms()} | {
    "imports": factories.an_import,
    "conversions": factories.conversion,
}


def signed_in(app: Flask, email: str = "alice@example.com", password: str = PASSWORD) -> FlaskClient:
    browser = app.test_client()
    assert browser.post("/login", data={"email": email, "password": password}).status_code == 303
    return browser


@pytest.fixture
def console(app: Flask, alice: "Client") -> FlaskClient:
    """A browser of alice, signed in by password."""
    return signed_in(app)


def login_path(admin: "Client", user: "Client") -> str:
    """Return the path of a new login link."""
    return "/login/" + str(admin.get(f"/api/user/login/{user.id}").get_json()["url"]).rsplit("/", 1)[1]


def by_link(app: Flask, admin: "Client", user: "Client") -> FlaskClient:
    browser = app.test_client()
    browser.post(login_path(admin, user))
    return browser


def is_signed_in(browser: FlaskClient) -> bool:
    return browser.get("/account").status_code == 200


def send(browser: FlaskClient, path: str, **fields: str) -> str:
    """Send a form and return the page with its message: that of a refusal, or the one that it redirects to."""
    answer = browser.post(path, data=fields)
    if answer.status_code in (400, 429):
        return answer.text
    assert (answer.status_code, answer.headers["Location"]) == (303, "/account")
    return browser.get("/account").text


def words(page: str) -> str:
    return " ".join(page.split())


def get(browser: FlaskClient, path: str) -> str:
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def visit(tracked_id: int, days: int = 0, **labels: str) -> Visited:
    return Visited(tracked_id, datetime.now(UTC) - timedelta(days=days), **labels)  # type: ignore[arg-type]


def console_rules(app: Flask) -> list[tuple[str, str]]:
    """Return the method and the rule of each route."""
    return [
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/console")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    ]


def fields(page: str) -> dict[str, list[str]]:
    """Return the values that a browser sends with the form of the page, by name."""
    form = page.split('<form method="post" class="form"')[1].split("</form>", maxsplit=1)[0]
    sent: dict[str, list[str]] = {}
    for tag, name in re.findall(r'(<(?:input|select|textarea)\b[^>]*\bname="([^"]+)"[^>]*>)', form):
        box = re.search('type="(checkbox|radio)"', tag)
        value = re.search(' value="([^"]*)"', tag)
        if tag.startswith("<textarea"):
            value = re.match(r"\n(.*?)</textarea>", form.split(tag)[1], re.DOTALL)
        if tag.startswith("<select"):
            options = form.split(tag)[1].split("</select>")[0]
            value = re.search('value="([^"]*)" selected', options) or re.search('value="([^"]*)"', options)
        if not box or " checked" in tag:
            sent.setdefault(name, []).append(unescape(value[1]) if value else "")
    return sent


def as_form(body: dict[str, Any]) -> dict[str, Any]:
    """Return the fields for a body. Objects and arrays of objects have one field for each of their members."""
    form: dict[str, Any] = {}
    for name, value in body.items():
        if name == "rules":
            for number, rule in enumerate(value):
                rows = rule_rows.rows(rule)
                form[f"rules.{number}.condition"] = [name for name, _ in rows]
                form |= {f"rules.{number}.value": [text for _, text in rows], f"rules.{number}.url": rule["url"]}
            continue
        for row in value if isinstance(value, list) else [value]:
            for part, text in row.items() if isinstance(row, dict) else [("", row)]:
                form.setdefault(f"{name}.{part}" if part else name, []).append("1" if text is True else text)
    return form


def names(page: str) -> set[str]:
    form = page.split('<form method="post" class="form"')[1]
    return {name.split(".")[0] for name in re.findall(r'\bname="([^"]+)"', form)}


def message(page: str, name: str) -> str:
    found = re.search(f'id="{name}-error"[^>]*>([^<]+)<', page)
    return unescape(words(found[1])) if found else ""


def details(client: "Client", link_id: int) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/url/{link_id}").get_json()["details"]
    return found


def pages(app: Flask, sql: Sql, user_id: int, **ids: int) -> Iterator[str]:
    """Yield the path of each page, with one of the ids or that of a new row of the user."""
    for method, rule in console_rules(app):
        if method != "GET" or "/export/" in rule or rule.endswith(".csv"):  # files of any size are streamed
            continue
        word = rule.split("/")[2] if rule.count("/") > 1 else ""
        if "<" in rule and word not in ids:
            ids[word] = ROWS[word](sql, user_id) if word in ROWS else user_id
        if "/plans/<" in rule:
            ids[word] = sql("SELECT min(id) AS id FROM plans")[0]["id"]
        yield re.sub("<[^>]+>", str(ids.get(word)), rule)
        ids.pop("administration", None)


def docs_paths(first: str) -> list[str]:
    """Return the paths of the sections that the first page of /api/docs links to."""
    return sorted(set(re.findall('data-section="([^"]+)"', first)))


def docs(browser: FlaskClient) -> str:
    """Return all pages of /api/docs."""
    first = browser.get("/api/docs").text
    return first + "".join(browser.get(path).text for path in docs_paths(first))


def seen(page: str) -> str:
    """Return the text of a page."""
    return words(re.sub("<[^>]*>", " ", page))


POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def contrast(first: str, second: str) -> float:
    darker, lighter = sorted(_luminance(color.removeprefix("#")) for color in (first, second))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ids_of(page: str) -> list[int]:
    """Return the ids of the links in a list."""
    return [int(found) for found in re.findall(r'id="short-(\d+)"', page)]
