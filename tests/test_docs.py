"""/api/docs: the API reference as pages."""

import gzip
import html
import json
import re
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from selenium.webdriver.common.keys import Keys

from linkmgr.core.error_catalogue import CATALOGUE
from linkmgr.core.settings import RELEASE
from linkmgr.document.document import pages_of
from linkmgr.schemas.statistics import STATISTICS
from linkmgr.visits.dimensions import DIMENSIONS, TOPS
from tests.conftest import ROOT, Client
from tests.support.browser import Browser
from tests.support.document import contents, document
from tests.support.operations import CALLS, Call, examples
from tests.support.pages import POLICY, docs_paths
from tests.support.pages import docs as docs_pages
from tests.support.stage import Stage

MAX_FIRST = 100_000  # bytes of the first page
OPERATIONS = {
    each["operationId"].replace(".", "_") for methods in document()["paths"].values() for each in methods.values()
}


@pytest.fixture
def page(app: Flask) -> str:
    return docs_pages(app.test_client())


def test_every_operation_is_on_a_page_that_the_first_one_links_to(app: Flask, page: str) -> None:
    first = app.test_client().get("/api/docs", headers={"Accept-Encoding": "gzip"})
    assert (first.status_code, first.mimetype, first.headers["Content-Encoding"]) == (200, "text/html", "gzip")
    text = gzip.decompress(first.data).decode()
    assert len(text) < MAX_FIRST
    listed = re.findall(r'<li class="operation" id="(\w+)"><a href="(/api/docs/[a-z-]+)#(\w+)">', text)
    assert {name for name, path, target in listed if name == target and path in docs_paths(text)} == OPERATIONS
    assert set(re.findall('<details class="operation" id="([A-Za-z_]+)">', page)) == OPERATIONS
    assert app.test_client().get("/api/docs/nothing").status_code == 404


def test_it_loads_no_external_resource_and_connects_to_this_service_only(app: Flask) -> None:
    page = app.test_client().get("/api/docs")
    [nonce] = re.findall('nonce="(.+?)"', page.text)
    policy = f"{POLICY}; connect-src 'self'; script-src 'nonce-{nonce}'"
    assert page.headers["Content-Security-Policy"] == policy
    assert re.findall(r'(?:src|href)="(?!/|#)', page.text) == []


BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"}


@pytest.mark.parametrize(
    ("headers", "mimetype"),
    [(BROWSER, "text/html"), ({"Accept": "*/*"}, "application/json"), ({}, "application/json")],
    ids=["browser", "curl", "program"],
)
def test_over_the_rate_limit_a_browser_gets_a_page_and_a_program_json(
    app_with: Callable[..., Flask], alice: Client, headers: dict[str, str], mimetype: str
) -> None:
    reader = app_with(rate_limit="1 per minute").test_client()
    shown, refused = (reader.get("/api/docs?counted=1", headers=headers) for _ in range(2))
    assert (shown.status_code, shown.headers["X-RateLimit-Remaining"]) == (200, "0")
    assert (refused.status_code, refused.mimetype) == (429, mimetype)
    assert refused.headers["Retry-After"].isdigit()
    assert reader.get("/api/account", headers=headers).mimetype == "application/json"


def test_reading_takes_no_request_from_a_limit(app_with: Callable[..., Flask], alice: Client) -> None:
    reader, key = app_with(rate_limit="1 per minute").test_client(), {"Authorization": f"Bearer {alice.key}"}
    first = reader.get("/api/docs").text
    for path in ["/api/docs", "/api/openapi.json", "/api/docs/changes", *docs_paths(first)] * 2:
        for headers in ({}, key):
            assert reader.get(path, headers=headers).headers["X-RateLimit-Remaining"] == "1", path
    assert int(reader.get("/api/account", headers=key).headers["X-RateLimit-Remaining"]) == 599, "of the plan"
    partly = [reader.get("/api/openapi.json?tags=Links").status_code for _ in range(2)]
    assert partly == [200, 429], "it is computed"


def test_the_page_of_links_has_at_most_3000_words(app: Flask) -> None:
    [section] = re.findall(
        '<section class="card".*</section>', app.test_client().get("/api/docs/links").text, re.DOTALL
    )
    text = re.sub("<[^>]+>", " ", re.sub("</?(?:code|b|a|span|small)\\b[^>]*>", "", section))
    assert len(html.unescape(text).split()) <= 3000


def test_an_example_shows_an_object_once(app: Flask) -> None:
    text = html.unescape(app.test_client().get("/api/docs/links").text)
    examples = re.findall('aria-label="Response">(.*?)</pre>', text, re.DOTALL)
    assert '"record": {...}' in examples[1]
    assert sum(text.count('"haspassword"') for text in examples) == 1


def test_the_examples_of_statistics_have_labels_of_their_dimension() -> None:
    statistics = STATISTICS["properties"]
    shown = {name: next(iter(schema["examples"][0])) for name, schema in statistics.items() if name in TOPS}
    assert shown == {dimension.top: dimension.example for dimension in DIMENSIONS if dimension.top}
    assert {**shown, "topReferrers": "t.co"} == shown, "of which `socialCount` counts the clicks"


def test_the_example_of_the_filters_of_statistics_is_one(app: Flask) -> None:
    text = html.unescape(app.test_client().get("/api/docs/statistics").text)
    table = text.rpartition("Members of meta")[2].partition("</table>")[0]
    assert ('{"country": "DE,-US"}' in re.sub("<[^>]*>", "", table), "germany" in table) == (True, False)


def test_each_page_has_a_title_of_its_own(app: Flask) -> None:
    first = app.test_client().get("/api/docs").text
    texts = [first, *(app.test_client().get(path).text for path in (*docs_paths(first), "/api/docs/changes"))]
    titles = [re.findall("<title>(.*?) · linkmgr</title>", text)[0] for text in texts]
    assert len({*titles}) == len(titles)
    assert {"API", "QR codes · API"} < {*titles}


@pytest.mark.parametrize(("path", "place"), [("/api/", "/api/docs"), ("/docs", "/api/docs"), ("/docs/", "/api/docs"),
                                             ("/openapi.json", "/api/openapi.json")])  # fmt: skip
def test_paths_that_people_try_lead_to_the_documentation(app: Flask, path: str, place: str) -> None:
    answer = app.test_client().get(path, headers=BROWSER)
    assert (answer.status_code, answer.headers["Location"]) == (302, place)


def test_a_program_that_requests_the_root_of_the_api_gets_an_error_that_names_the_documentation(alice: Client) -> None:
    answer = alice.get("/api")
    assert (answer.status_code, "/api/docs" in answer.get_json()["message"]) == (404, True)


def test_these_paths_belong_to_links_on_branded_domains(app: Flask, alice: Client) -> None:
    target, host = "https://example.com/docs", "go.example.net"
    alice.add("/api/domain/add", {"domain": f"https://{host}"})
    for path in ("/docs", "/openapi.json"):
        assert app.test_client().get(path, headers={"Host": host}).status_code == 404
        assert app.test_client().get(path, headers={"Host": "else.example"}).status_code == 404
    alice.add("/api/url/add", {"url": target, "custom": "docs", "domain": host})
    assert app.test_client().get("/docs", headers={"Host": host}).headers["Location"] == target


def test_every_member_of_every_body_has_a_row_with_its_type_and_an_example(page: str) -> None:
    for section, routes in pages_of(contents()):
        anchor = section.title.lower().replace(" ", "-")
        bodies = [route.operation.body for route in routes if route.operation.body]
        members = {name: example for body in bodies for name, example in examples(body).items()}
        for name, example in members.items():
            [row] = re.findall(f'<tr id="{anchor}-{name}">(.*?)</tr>', page, re.DOTALL)
            type_ = re.findall('<td class="type">(.*?)</td>', row, re.DOTALL)[0]
            assert type_
            shown = re.findall('<span class="example">Example: <code>(.*?)</code>', row, re.DOTALL)[0]
            assert json.loads(html.unescape(shown)) == example


RULES = (
    "geotarget[].location", "devicetarget[].device", "languagetarget[].language", "overlay-&lt;id&gt;",
     "A number becomes text.", "private | public", "parameters[].value", "deeplink.apple", "A date alone means",
     "auto | light | dark | ocean", "`limit` and `page` are ignored", "Days that visits are kept", "fname", "ssid",
     "at most 10", "or a 303 after the form", "at most 100,000 answers", "`/o/answer`", "at most 1,000", "`Other`",
     "Weeks begin on Monday", "A range contains its start and not its end", "Accept: text/csv", "by=time:day,country",
     "/.well-known/linkmgr/", "Requests that take long",
     "`Idempotency-Replayed: true`", "send its `ETag`", "a 404 there", "`/api/openapi.json` need no key",
     "send it as `after`", "of which `r`", "Pages of any origin may call", "If-None-Match",
     "languages in lower case", "keeps the stored image", "`[]` in an update", "`haspassword`",
)  # fmt: skip


def test_the_rules_that_the_specification_leaves_open_are_on_it(page: str) -> None:
    assert [text for text in RULES if re.sub("`(.+?)`", r"<code>\1</code>", text) not in page] == []


def test_code_and_bold_text_may_span_lines(page: str) -> None:
    prose = re.sub("<pre.*?</pre>", "", page, flags=re.DOTALL)
    assert re.findall(r"`|\*\*", prose) == []
    assert "<code>The member &#39;alias&#39; is unknown" in " ".join(page.split())


def test_every_error_code_is_on_it_with_its_status_and_sentence(page: str) -> None:
    for code, (status, sentence) in CATALOGUE.items():
        [row] = re.findall(f'<tr id="error-{code}">(.*?)</tr>', page, re.DOTALL)
        assert str(status) in row
        assert re.sub(":[a-z]+}", "}", sentence) in html.unescape(row)


def test_the_page_of_changes_has_dates_and_the_release(app: Flask) -> None:
    answer = app.test_client().get("/api/docs/changes")
    assert re.search(r"<h2>20\d\d-\d\d-\d\d</h2>", answer.text)
    assert (answer.mimetype, answer.headers["Linkmgr-Version"]) == ("text/html", RELEASE)


# --- the commands, as a shell runs them


def output(command: str) -> str:
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, timeout=30).stdout


def run(command: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(output(command))
    return answer


def commands(page: str) -> dict[str, str]:
    """Return the commands by the ids of their operations."""
    found = re.findall(
        '<details class="operation" id="([A-Za-z_]+)">.*?<pre class="text curl".*?>(.*?)</pre>', page, re.DOTALL
    )
    return {name: html.unescape(command) for name, command in found}


def test_every_command_works_when_it_is_copied(unlimited: str, stage: Stage, tmp_path: Path) -> None:
    def read(path: str) -> str:
        with urllib.request.urlopen(f"{unlimited}{path}") as response:
            return str(response.read().decode())

    shown = commands("".join(map(read, docs_paths(read("/api/docs")))))
    assert set(shown) == OPERATIONS
    routes = {call.operation: call for call in reversed(CALLS)}  # a link is the last item on a channel
    ids = {
        (method.upper(), path): operation["operationId"].replace(".", "_")
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    }
    order = ["GET", "POST", "PUT", "DELETE"]

    def position(call: Call) -> tuple[int, int]:
        """Delete rows and block a link last, then those whose ids are in examples, which may be the same rows, and
        then their owner."""
        deletes = call.path.endswith(("/delete", "/decide"))
        last = ("bulk" in call.path) + 2 * (call.rows == ["user"])
        return order.index("DELETE" if deletes else call.method), last

    file = tmp_path / "links.csv"
    file.write_text("Long URL\nhttps://example.com/")
    for call in sorted(routes.values(), key=position):
        command = shown[ids[call.method, call.route.path]]
        path = call.path_of([17] * len(call.rows))
        assert f"{unlimited}{path}" in command
        filled = command.replace(path, stage.path(call)).replace("API_KEY", str(stage.caller(call).key))
        filled = filled.replace("@links.csv", f"@{file}")
        if call.operation.file:
            output(filled.replace("--output export.zip", "--output /dev/null") + " --fail --silent")
            continue
        answer = run(f"{filled} --silent -H 'Accept: application/json'")  # some responses are CSV without it
        # The ids in the bodies of bulk requests are those of no rows. Tests check no targets.
        codes = ("bulk_failed", "link_unknown", "checks_off")
        assert answer.get("error", 0) == 0 or answer["code"] in codes, (filled, answer)


def test_the_commands_of_the_readme_work_when_they_are_copied(unlimited: str, alice: Client) -> None:
    texts = [(ROOT / name).read_text() for name in ("README.md", "deploy/README.md")]
    lines = re.findall(r"^ {4,}(curl .*/api/.*)$", "\n".join(texts), re.MULTILINE)
    assert lines
    for line in lines:
        filled = re.sub(r"https?://[^/ ]+(?=/api/)", unlimited, line).replace("API_KEY", "$KEY")
        command = f"BASE={unlimited} KEY={alice.key}; {filled} --silent"
        if "text/csv" in line:
            assert output(command).startswith("country,clicks"), filled
        else:
            assert run(command)["error"] == 0, filled


# --- in a browser


@pytest.fixture
def docs(browser: Browser, base: str) -> Browser:
    browser.open(f"{base}/api/docs")
    return browser


def open_operation(docs: Browser, name: str) -> None:
    docs.run(f"location.hash = '{name}'")
    docs.wait_until(lambda: docs.find(f"#{name} .trial button").is_displayed())


@pytest.mark.browser
def test_an_operation_is_found_and_tried_with_the_keyboard_alone(docs: Browser, alice: Client) -> None:
    docs.run("document.getElementById('api-key').focus()")
    docs.press(str(alice.key), Keys.TAB, "pixel add")
    docs.wait_for_text(f"1 of {len(OPERATIONS)} operations")
    docs.run("document.querySelector('#pixels_create a').focus()")
    docs.press(Keys.ENTER)
    docs.wait_until(lambda: docs.find("#pixels_create textarea").is_displayed())
    docs.run("document.querySelector('#pixels_create textarea').focus()")
    docs.press(Keys.TAB, Keys.ENTER)
    docs.wait_for_text("HTTP 200")
    assert alice.get("/api/pixels").get_json()["data"]["pixels"][0]["tag"] == "GTM-ABC123"


@pytest.mark.browser
def test_an_error_response_is_shown_unchanged(docs: Browser) -> None:
    open_operation(docs, "pixels_get")
    docs.find("#pixels_get-pixel_id").send_keys("17", Keys.ENTER)
    docs.wait_for_text("HTTP 401")
    assert '"code": "key_missing"' in docs.find("#pixels_get .response").text


@pytest.mark.browser
def test_a_command_follows_the_form_and_still_works_when_it_is_copied(docs: Browser, alice: Client) -> None:
    open_operation(docs, "channels_create")
    body = docs.find("#channels_create textarea")
    body.clear()
    body.send_keys('{"name": "Dana\'s", "description": "$HOME \\\\"}')
    docs.find("#channels_create-Idempotency-Key").send_keys("it's mine")
    command = docs.find("#channels_create .curl").text
    added = [run(f"{command.replace('API_KEY', str(alice.key))} --silent") for _ in range(2)]
    assert added[0]["error"] == 0
    assert added[1] == added[0]
    [channel] = alice.get("/api/channels").get_json()["data"]["channels"]
    assert (channel["name"], channel["description"]) == ("Dana's", "$HOME \\")
    open_operation(docs, "channels_get")
    docs.find("#channels_get-limit").send_keys("7")
    docs.find("#channels_get-channel_id").send_keys(str(channel["id"]))
    command = docs.find("#channels_get .curl").text
    assert run(f"{command.replace('API_KEY', str(alice.key))} --silent")["data"]["perpage"] == 7


@pytest.mark.browser
def test_a_copied_command_has_the_key_that_the_page_does_not_show(docs: Browser) -> None:
    docs.find("#api-key").send_keys("linkmgr_secret")
    open_operation(docs, "pixels_list")
    docs.run("document.execCommand = () => { window.copied = document.activeElement.value; return true; }")
    docs.run("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    docs.find("#pixels_list .copy").click()
    assert "Authorization: Bearer linkmgr_secret" in docs.run("return window.copied")
    assert "linkmgr_secret" not in docs.text


@pytest.mark.browser
def test_without_scripts_no_broken_controls_are_shown(docs: Browser) -> None:
    docs.scripts(run=False)
    docs.driver.refresh()
    docs.find("#account a").click()
    docs.wait_for("/api/docs/account")
    assert [each for each in docs.all("form, .response") if each.is_displayed()] == []
    docs.find("#account_update summary").click()
    assert "email_taken" in docs.find("#account_update").text
