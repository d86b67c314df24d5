"""Redirect rules of Shlink: in a file, and through its API."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from linkmgr.features.imports import shlink as reader
from tests.conftest import Client
from tests.support.foreign_services import HOST, KEY, Start, page_of, read, shlink_link
from tests.support.imported import Import, counts, details, import_of
from tests.support.reading import SALE, only

CASE = Path(__file__).parent / "import_files" / "shlink_rules.json"
OTHER = "https://example.com/other"
SHLINK = {"source": "shlink", "address": f"http://{HOST}", "token": KEY}


def rule(*conditions: tuple[str, str | None, str | None], url: str = OTHER, priority: int = 1) -> dict[str, Any]:
    named = [{"type": kind, "matchKey": key, "matchValue": value} for kind, key, value in conditions]
    return {"longUrl": url, "priority": priority, "conditions": named}


def link(*rules: dict[str, Any]) -> bytes:
    members = {"shortCode": "a", "longUrl": SALE, "hasRedirectRules": True, "redirectRules": rules}
    return json.dumps([members]).encode()


ALL: list[tuple[tuple[str, str | None, str | None], dict[str, Any]]] = [
    (("device", None, "android"), {"device": ["android"]}),
    (("device", None, "mobile"), {"device": ["android", "ios"]}),
    (("device", None, "desktop"), {"device": ["windows", "mac", "linux", "chrome os"]}),
    (("language", None, "pt-BR"), {"language": ["pt-BR"]}),
    (("query-param", "ref", "partner"), {"query": ["ref=partner"]}),
    (("any-value-query-param", "debug", None), {"query": ["debug"]}),
    (("valueless-query-param", "debug", None), {"query": ["debug="]}),
    (("ip-address", None, "192.0.2.7"), {"ip": ["192.0.2.7/32"]}),
    (("ip-address", None, "192.0.2.0/24"), {"ip": ["192.0.2.0/24"]}),
    (("ip-address", None, "11.22.*.*"), {"ip": ["11.22.0.0/16"]}),
    (("geolocation-country-code", None, "DE"), {"country": ["DE"]}),
    (("geolocation-city-name", None, "New York"), {"city": ["New York"]}),
    (("before-date", None, "2027-01-01T00:00:00+01:00"), {"dates": {"until": "2026-12-31 22:59:59"}}),
    (("after-date", None, "2027-01-01T00:00:00+01:00"), {"dates": {"from": "2026-12-31 23:00:00"}}),
    (("browser", None, "safari"), {"browser": ["Safari", "Mobile Safari"]}),
]  # fmt: skip


def test_each_condition_of_shlink_becomes_one_of_ours(alice: Client, run_import: Import) -> None:
    rules = [rule(condition, url=f"{OTHER}/{n}", priority=n) for n, (condition, _) in enumerate(ALL)]
    found = run_import(alice, link(*reversed(rules)))
    assert counts(found) == ("done", 1, 1, 0, 0, 0)
    kept = details(alice, "a")["rules"]
    whens = [{"timezone": "UTC"} | expected for _, expected in ALL]
    assert [{"timezone": "UTC"} | one["when"] for one in kept] == whens
    assert [one["url"] for one in kept] == [f"{OTHER}/{n}" for n in range(len(ALL))]


def test_conditions_of_other_kinds_must_hold_together() -> None:
    row = only(link(rule(
        ("device", None, "ios"), ("language", None, "fr"), ("after-date", None, "2026-01-01T00:00:00+00:00"),
        ("before-date", None, "2026-02-01T00:00:00+00:00"), ("device", None, "ios"),
    )))  # fmt: skip
    when = {
        "device": ["ios"], "language": ["fr"], "dates": {"from": "2026-01-01 00:00:00", "until": "2026-01-31 23:59:59"},
    }  # fmt: skip
    assert (row.problem, row.members["rules"]) == (None, [{"when": when, "url": OTHER}])


TOGETHER = "and must hold together: here, one of them would do"


@pytest.mark.parametrize(
    ("conditions", "why"),
    [
        ([("query-param", "foo", "bar"), ("query-param", "hello", "world")],
         f"two of whose conditions are about 'query', {TOGETHER}"),
        ([("after-date", None, "2026-01-01"), ("after-date", None, "2026-01-02")],
         f"two of whose conditions are about 'dates', {TOGETHER}"),
        ([("moon", None, "full")], "whose condition 'moon' is unknown here"),
        ([("device", None, "toaster")], "whose condition 'device' has the value 'toaster', which is unknown here"),
        ([("browser", None, None)], "whose condition 'browser' has the value '', which is unknown here"),
        ([("ip-address", None, "1.*.3.4")], "whose condition 'ip-address' has the value '1.*.3.4', which is unknown"),
        ([("any-value-query-param", "a=b", None)], "whose condition 'any-value-query-param' has the value 'a=b', wh"),
        ([("before-date", None, "soon")], "whose condition 'before-date' has the value 'soon', which is unknown here"),
        ([], "which has no conditions"),
    ],
)  # fmt: skip
def test_a_rule_that_no_rule_here_can_be_fails_its_link(conditions: list[Any], why: str) -> None:
    row = only(link(rule(("device", None, "ios")), rule(*conditions, priority=2)))
    assert row.problem is not None
    assert row.problem.startswith(f"Row 1 has the redirect rule 2 to {OTHER}, {why}")
    assert row.problem.endswith(". Leave the row out, or empty its columns 'hasRedirectRules' and 'redirectRules'.")
    assert (row.code, row.members) == ("import_inactive", {})


@pytest.mark.parametrize("rules", ["7", '["x"]', "[", "{}"])
def test_rules_of_another_form_fail_their_link(rules: str) -> None:
    row = only(f'longUrl,shortCode,redirectRules\n{SALE},a,"{rules.replace(chr(34), chr(34) * 2)}"\n'.encode())
    assert row.problem == "Row 1 has a 'redirectRules' that is no JSON array of objects. Correct it."


def test_values_that_our_rules_do_not_take_are_named(alice: Client, run_import: Import) -> None:
    found = run_import(alice, link(rule(("geolocation-country-code", None, "QQ"))))
    assert counts(found) == ("done", 1, 0, 0, 0, 1)
    [row] = alice.get(f"/api/imports/{found['id']}/errors", headers={"Accept": "application/json"}).get_json()["data"]
    assert "[0].when.country has the value 'QQ'" in row["message"]


def test_a_list_of_links_has_no_rules_and_says_where_they_are() -> None:
    row = only(CASE.read_bytes())
    assert row.problem == (
        "Row 1 has rules that choose its target at the source. Read the links from the API of Shlink, which has the "
        "rules. Leave the row out, or empty its column 'hasRedirectRules'."
    )


# --- the API


def ruled(number: int, domain: str | None = None) -> dict[str, Any]:
    return shlink_link(number) | {"hasRedirectRules": True, "domain": domain}


def service(links: list[dict[str, Any]], rules: dict[str, Any]) -> Callable[..., Any]:
    def respond(path: str, query: dict[str, str], _request: Any) -> Any:
        if path == "/rest/v3/short-urls":
            return {"shortUrls": page_of(links, query)}
        code = path.removeprefix("/rest/v3/short-urls/").removesuffix("/redirect-rules")
        key = f"{query['domain']}/{code}" if "domain" in query else code
        return {"defaultLongUrl": SALE, "redirectRules": rules[key]} if key in rules else 404

    return respond


def test_the_api_gives_the_rules_of_links_that_have_some(
    start_service: Start, alice: Client, run_jobs: Callable[[], None]
) -> None:
    links = [ruled(1), shlink_link(2), ruled(3, "go.example.org"), ruled(4), ruled(5)]
    android = rule(("device", None, "android"))
    rules = {"code1": [android], "go.example.org/code3": [android], "code4": []}  # code5 is deleted meanwhile
    requests = start_service(service(links, rules))
    number = alice.post("/api/imports/service", SHLINK).get_json()["id"]
    run_jobs()
    assert counts(import_of(alice, number)) == ("done", 5, 4, 0, 0, 1)
    kept = {code: details(alice, code)["rules"] for code in ("code1", "code2", "code3", "code4")}
    when = [{"when": {"device": ["android"]}, "url": OTHER}]
    assert kept == {"code1": when, "code2": [], "code3": when, "code4": []}
    assert len([path for path in requests if "/redirect-rules" in path]) == 4
    assert len(requests) == 5


@pytest.mark.parametrize(("name", "value", "pages"), [("_RULED", 2, 2), ("_RULED", 1, 4), ("_RULE_SECONDS", -1, 4)])
def test_a_page_is_read_again_for_more_links_with_rules(
    *,
    start_service: Start,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: int,
    pages: int,
) -> None:
    monkeypatch.setattr(reader, name, value)
    links = [ruled(n) if n % 2 else shlink_link(n) for n in range(1, 8)]
    rules = {f"code{n}": [rule(("device", None, "android"))] for n in (1, 3, 5)}
    rules["code7"] = [rule(("moon", None, "full"))]
    requests = start_service(service(links, rules))
    rows = read("shlink")
    assert [row.members.get("custom") for row in rows] == [*(f"code{n}" for n in range(1, 7)), None]
    assert [bool(row.members.get("rules")) for row in rows] == [True, False, True, False, True, False, False]
    assert "has the redirect rule 1" in (rows[-1].problem or "")
    assert len([path for path in requests if "/redirect-rules" in path]) == 4
    assert len(requests) == pages + 4


def test_a_preview_shows_the_rules(start_service: Start, alice: Client) -> None:
    start_service(service([ruled(1)], {"code1": [rule(("device", None, "android"))]}))
    [row] = alice.post("/api/imports/service?dry_run=1", SHLINK).get_json()["data"]["rows"]
    assert row["problem"] is None
    assert OTHER in row["link"]["rules"]


def test_a_service_that_sends_no_rules_is_a_clear_failure(
    start_service: Start, alice: Client, run_jobs: Callable[[], None]
) -> None:
    start_service(lambda path, query, _: {} if "redirect-rules" in path else {"shortUrls": page_of([ruled(1)], query)})
    number = alice.post("/api/imports/service", SHLINK).get_json()["id"]
    run_jobs()
    found = import_of(alice, number)
    assert (found["state"], "has no 'redirectRules'" in found["message"]) == ("failed", True)
