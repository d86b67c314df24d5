"""Fixtures: alice and bob own data, admin administers, anonymous has no key. Each is an API client."""

import json
import math
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import http_sf
import psycopg2
import pytest
from argon2 import PasswordHasher
from flask import Flask
from flask.testing import FlaskClient
from jinja2 import FileSystemBytecodeCache
from werkzeug.test import TestResponse

from linkmgr import create_app
from linkmgr.core import keys
from linkmgr.core.database import embedded, lookups, migrations, statements
from linkmgr.core.error_catalogue import CATALOGUE
from linkmgr.core.settings import RELEASE
from linkmgr.core.web import passwords
from linkmgr.repository import users
from tests.support import document, routes
from tests.support.batches import links, one_batch, run_jobs  # noqa: F401 - fixtures
from tests.support.brands import brand_folder, ours, public_pages  # noqa: F401 - fixtures
from tests.support.browser import browser, chromium  # noqa: F401 - fixtures
from tests.support.checked_sites import checked_links  # noqa: F401 - a fixture
from tests.support.contract import read_by  # noqa: F401 - a fixture
from tests.support.filled import filled  # noqa: F401 - a fixture
from tests.support.foreign import web  # noqa: F401 - a fixture
from tests.support.foreign_services import start_service  # noqa: F401 - a fixture
from tests.support.imported import run_import, small_batches  # noqa: F401 - fixtures
from tests.support.interstitials import show  # noqa: F401 - fixtures
from tests.support.keyring import make_key, make_restricted  # noqa: F401 - fixtures
from tests.support.mailbox import _shared_box, post, post_of, start_mailbox, tls  # noqa: F401 - fixtures
from tests.support.markers import pytest_collection, pytest_collection_modifyitems, pytest_configure  # noqa: F401 - hooks
from tests.support.own_plan import on_plan  # noqa: F401 - a fixture
from tests.support.pages import PASSWORD, console  # noqa: F401 - a fixture
from tests.support.provider import provider, shared_provider, with_provider  # noqa: F401 - fixtures
from tests.support.receivers import deliver, receiver  # noqa: F401 - fixtures
from tests.support.refusals import refusal  # noqa: F401 - a fixture
from tests.support.reports import bob_link, free, link, visited  # noqa: F401 - fixtures
from tests.support.schemas import _empty, drop_past_months, empty, emptying, flask, fresh, migrate  # noqa: F401 - fixtures
from tests.support.searched import stock  # noqa: F401 - fixtures
from tests.support.servers import base, logs, redis_url, serve, shared, unlimited  # noqa: F401 - fixtures
from tests.support.sessions import signed_in  # noqa: F401 - a fixture
from tests.support.shortlinks import short  # noqa: F401 - a fixture
from tests.support.stage import stage  # noqa: F401 - a fixture
from tests.support.targets import located, target  # noqa: F401 - fixtures
from tests.support.transactions import costs  # noqa: F401 - a fixture
from tests.support.transactions import statements as executed  # noqa: F401 - a fixture
from tests.support.visit_queues import make_recorder, recorder  # noqa: F401 - fixtures
from tests.support.visited import store  # noqa: F401 - a fixture
from tests.support.worlds import aging, dump, world  # noqa: F401 - fixtures

FAILURES = ("short_url_unknown", "bulk_failed")  # with the status 200, as clients expect
SECRET = re.compile(
    rf"linkmgr_[A-Za-z0-9_-]{{43}}|{keys.SCOPED_PATTERN}|/login/[A-Za-z0-9_-]{{43}}"
)  # an API key or a login link
ROOT = Path(__file__).parent.parent
BASE_URL = "http://127.0.0.1:5000"
MANY = "1000000 per minute"
_NO_TIMEOUT = "SET LOCAL statement_timeout = 0; "

# Strong password hashes would slow down every test that creates one.
passwords.hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
routes.install()
lookups.QUICK_SECONDS = lookups.SECONDS = 10.0  # on a busy machine

# Remove the settings of the calling environment, and what `make test` passes on to a `make` that a test runs.
for name in [
    name for name in os.environ if name.startswith("LINKMGR_") or name in ("MAKELEVEL", "MAKEFLAGS", "MFLAGS")
]:
    del os.environ[name]


class Client:
    """An API client that checks on every response what the specification says of all responses."""

    def __init__(self, http: FlaskClient, key: str | None = None, user_id: int = 0, username: str = "") -> None:
        self.http, self.key, self.id, self.username = http, key, user_id, username

    def call(self, method: str, path: str, members: Any = None, **options: Any) -> TestResponse:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        headers |= options.pop("headers", {})
        if members is not None:
            options |= {"data": json.dumps(members), "content_type": "application/json"}
        response = self.http.open(path, method=method, headers=headers, **options)
        check(response)
        return response

    def get(self, path: str, **options: Any) -> TestResponse:
        return self.call("GET", path, **options)

    def post(self, path: str, members: Any = None, **options: Any) -> TestResponse:
        return self.call("POST", path, members, **options)

    def put(self, path: str, members: Any = None, **options: Any) -> TestResponse:
        return self.call("PUT", path, members, **options)

    def delete(self, path: str, **options: Any) -> TestResponse:
        return self.call("DELETE", path, **options)

    def add(self, path: str, members: Any = None) -> int:
        """Create a resource and return its id."""
        response = self.post(path, members)
        assert response.status_code == 200, response.text
        return int(response.get_json()["id"])


def check(response: TestResponse) -> None:
    not_modified = response.status_code == 304
    text = "" if response.mimetype == "application/zip" else response.text
    body: dict[str, Any] = response.get_json() if response.mimetype == "application/json" and text else {}
    failed = response.status_code != 200 or body.get("code") in FAILURES
    is_file = response.mimetype in ("text/csv", "application/x-ndjson", "application/zip") and not failed
    assert is_file or response.mimetype == (None if not_modified else "application/json")
    assert response.status_code < 500 or response.status_code == 503, response.text
    if not_modified:
        assert response.data == b""
    elif response.request.method != "HEAD" and not is_file:
        assert body["error"] is not False
        assert body["error"] == int(failed)
        if failed:
            of_bulk = {"results", "created", "updated", "deleted", "failed", "warnings"}
            members = set(body) - {"errors"} - (of_bulk if body["code"].startswith("bulk_") else set())
            assert members == {"error", "message", "code", "request_id", "docs"}
            assert body["docs"].endswith(f"/api/docs/errors#error-{body['code']}")
            if "Idempotency-Replayed" not in response.headers:
                assert body["request_id"] == response.headers["X-Request-Id"]
            assert body["message"].endswith(".")
            assert CATALOGUE[body["code"]][0] == response.status_code
    if SECRET.search(text):
        assert response.headers.get("Cache-Control") == "no-store"
    for header in ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"):
        assert [value.isdigit() for value in response.headers.getlist(header)] == [True]
    assert response.headers["Linkmgr-Version"] == RELEASE
    check_quota(dict(response.headers))
    if response.status_code == 429 and '"rate_limited"' in response.text:
        assert response.headers["RateLimit"].endswith(f";r=0;t={response.headers['Retry-After']}")
    assert ("Retry-After" in response.headers) == (response.status_code in (429, 503))
    document.check(response)


def check_quota(headers: Mapping[str, str]) -> None:
    """Check that RateLimit and RateLimit-Policy say the same as the documented headers."""
    prefixes = {"default": "X-RateLimit"} | (
        {"rows": "X-RateLimit-Rows"} if "X-RateLimit-Rows-Limit" in headers else {}
    )
    policies, services = (structured_list(headers[name]) for name in ("RateLimit-Policy", "RateLimit"))
    assert [name for name, _ in policies] == [name for name, _ in services] == [*prefixes]
    for (_, quota), (_, service), prefix in zip(policies, services, prefixes.values(), strict=True):
        assert (quota["q"], service["r"]) == (int(headers[f"{prefix}-Limit"]), int(headers[f"{prefix}-Remaining"]))
        assert 0 < service["t"] <= quota["w"]


def structured_list(header: str) -> list[Any]:
    """Parse a list of structured field values (RFC 9651)."""
    members: list[Any] = http_sf.parse(header.encode(), tltype="list")  # type: ignore[assignment]
    return members


@pytest.fixture(scope="session")
def dsn() -> Iterator[str]:
    if given := os.environ.get("TEST_DATABASE_URL"):
        yield given
    else:
        with embedded.server(None) as started:
            yield started


def _flushing(app: Flask) -> Callable[..., Any]:
    """Store visits as soon as a request is answered, so that a test can query them."""
    service, visits = app.wsgi_app, app.extensions["linkmgr_visit_queue"]

    def answer(environ: dict[str, Any], start_response: Any) -> Any:
        try:
            return service(environ, start_response)
        finally:
            visits.flush()

    return answer


@pytest.fixture(scope="session")
def make_app(dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Flask]:
    data_dir = tmp_path_factory.mktemp("data")
    templates = data_dir / "templates"  # which the services of the tests use too
    templates.mkdir(mode=0o700)

    def make(features: Iterable[str] | None = None, **settings: str) -> Flask:
        defaults = {"database_url": dsn, "data_dir": str(data_dir), "base_url": BASE_URL, "domain_check": "off"}
        defaults |= {"rate_limit": MANY, "page_rate_limit": MANY, "private_networks": "127.0.0.0/8"}
        defaults |= {"private_networks_for_all": "1"}
        app = create_app(features, **(defaults | settings))
        app.testing = True
        app.jinja_env.bytecode_cache = FileSystemBytecodeCache(str(templates))  # each service would compile them again
        app.config["PROPAGATE_EXCEPTIONS"] = False
        app.wsgi_app = _flushing(app)  # type: ignore[method-assign]
        if "data_dir" not in settings:
            # Files that killed workers of other tests left in this folder would be stored while a test runs.
            app.extensions["linkmgr_visit_queue"]._next_orphans = math.inf
        if counter := app.extensions.get("linkmgr_missing_paths"):
            counter.start = lambda: None  # it would store what other tests did not find while a test runs
        return app

    return make


@pytest.fixture(scope="session")
def app_with(make_app: Callable[..., Flask]) -> Callable[..., Flask]:
    """Return the service with these settings, which tests share."""
    return cache(make_app)


@pytest.fixture(scope="session")
def app(make_app: Callable[..., Flask]) -> Flask:
    made = make_app()
    with made.app_context():
        migrations.upgrade(create=True)
    return made


@pytest.fixture
def sql(app: Flask) -> Callable[..., list[statements.Row]]:
    """Execute a statement directly in the database, without a timeout, because many tests run at once."""

    def run(statement: str, **params: Any) -> list[statements.Row]:
        with app.app_context():
            return statements.database().execute(statement, params, idempotent=True, prelude=_NO_TIMEOUT)

    return run


@pytest.fixture
def register(app: Flask, sql: Callable[..., list[statements.Row]]) -> Callable[..., Client]:
    """Create a user, by default on a plan without limits, and a client with the user's key."""

    def make(username: str, *, admin: bool = False, plan: str = "Business", via: Flask = app) -> Client:
        with app.app_context():
            user_id = users.next_id()
            users.add(
                user_id,
                username=username,
                email=f"{username}@example.com",
                password_hash=passwords.hashed(PASSWORD),
                admin=admin,
                **keys.new_key(user_id),
            )
            sql("UPDATE users SET plan_id = p.id FROM plans p WHERE users.id = %(id)s AND name = %(plan)s RETURNING 1",
                id=user_id, plan=plan)  # fmt: skip
            key = users.read(user_id)["apikey"]
        return Client(via.test_client(), key, user_id, username)

    return make


@pytest.fixture
def alice(register: Callable[..., Client]) -> Client:
    return register("alice")


@pytest.fixture
def bob(register: Callable[..., Client]) -> Client:
    return register("bob")


@pytest.fixture
def admin(register: Callable[..., Client]) -> Client:
    return register("admin", admin=True)


@pytest.fixture
def anonymous(app: Flask) -> Client:
    return Client(app.test_client())


@pytest.fixture
def raw(dsn: str) -> Iterator[psycopg2.extensions.connection]:
    """A separate database connection, independent of the service."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    yield connection
    connection.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail skipped tests in CI, where everything that they need must be installed."""
    report = yield
    if report.skipped and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped: {report.longrepr}"
    return report
