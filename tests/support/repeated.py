"""Requests with the header Idempotency-Key."""

from typing import Any

import psycopg2
from werkzeug.test import TestResponse

from tests.conftest import Client
from tests.support.factories import Sql

Connection = psycopg2.extensions.connection


PIXEL = {"type": "bing", "name": "n", "tag": "t"}


def under(key: str = "key-1", **headers: str) -> dict[str, Any]:
    return {"headers": {"Idempotency-Key": key} | headers}


def add(client: Client, key: str = "key-1", **members: str) -> TestResponse:
    return client.post("/api/pixel/add", PIXEL | members, **under(key))


def is_replayed(response: TestResponse) -> bool:
    return response.headers.get("Idempotency-Replayed") == "true"


def contents(response: TestResponse) -> tuple[int, bytes, str | None]:
    return response.status_code, response.data, response.content_type


def rows(sql: Sql) -> dict[str, Any]:
    """Return the rows of every table except the rate limit counters, with their versions."""
    tables = sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'rate_windows'")
    return {
        name: sql(f"SELECT t::text, xmin::text FROM {name} t ORDER BY 1") for name in (t["tablename"] for t in tables)
    }
