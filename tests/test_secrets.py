"""API keys, passwords and login tokens never appear in a dump of the database or in a log."""

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError

import psycopg2

from tests.conftest import Client
from tests.support.pages import PASSWORD


def request(
    url: str, key: str | None = None, body: object = None, method: str = "GET", headers: dict[str, str] | None = None
) -> bytes:
    headers = {"Content-Type": "application/json"} | (headers or {})
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60) as answer:
            return bytes(answer.read())
    except HTTPError as error:
        return error.read()


def all_values(connection: psycopg2.extensions.connection) -> str:
    """Return every value of every table, as in a dump."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = [name for (name,) in cursor.fetchall()]
        dumped = []
        for table in tables:
            cursor.execute(f"SELECT t::text FROM {table} t")
            dumped += [text for (text,) in cursor.fetchall()]
    return "\n".join(dumped)


def test_a_dump_and_the_logs_contain_no_secret(
    serve: Callable[..., str],
    register: Callable[..., Client],
    raw: psycopg2.extensions.connection,
    tmp_path: Path,
) -> None:
    admin = register("admin", admin=True)
    base = serve("--workers", "1")
    secret = "a secret passphrase"
    new = {"username": "carol", "email": "carol@example.com", "password": secret}
    repeatable = {"Idempotency-Key": "1"}
    carol = json.loads(request(f"{base}/api/user/add", admin.key, new, "POST", repeatable))["data"]["id"]
    again = json.loads(request(f"{base}/api/user/add", admin.key, new, "POST"))
    assert again["error"] == 1, "a duplicate, which PostgreSQL logs"
    key = json.loads(request(f"{base}/api/user/{carol}", admin.key))["data"]["apikey"]
    request(f"{base}/api/account/update", key, {"password": secret + "!"}, "PUT", repeatable)
    request(f"{base}/api/pixels?key={key}", key)
    tokens = []
    for _ in range(2):
        url = json.loads(request(f"{base}/api/user/login/{carol}", admin.key))["url"]
        tokens.append(url.rsplit("/", 1)[1])
        request(url)
    request(url, method="POST", body={})
    request(url, method="POST", body={})
    request(url.replace("/login/", "/login//"))
    request(f"{base}/login/{tokens[0]}?token={tokens[0]}")

    for secret_sent in (key, tokens[1]):
        answered = request(f"{base}/api/account", key, headers={"X-Request-Id": secret_sent, "User-Agent": secret_sent})
        assert json.loads(answered)["error"] == 0

    secrets = {str(admin.key), str(key), secret, PASSWORD, *tokens}
    logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
    server_log = Path(dsn_folder(raw)).with_suffix(".log")
    assert "/login/-" in logs
    assert '"path":"/api/pixels"' in logs
    for place, text in {"dump": all_values(raw), "log": logs, "PostgreSQL's log": server_log.read_text()}.items():
        assert text
        assert not [found for found in secrets if found in text], place


def dsn_folder(connection: psycopg2.extensions.connection) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW data_directory")
        found = cursor.fetchone()
    assert found
    return str(found[0])
