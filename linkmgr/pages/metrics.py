"""/metrics: what Prometheus is told, when it knows the token."""

import hmac
from collections.abc import Iterator
from contextlib import suppress

import psycopg2
from flask import Blueprint, Response, request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from linkmgr.repository import connections
from linkmgr.settings import settings
from linkmgr.web.errors import AppError
from linkmgr.web.metrics import Metrics, metrics

bp = Blueprint("metrics", __name__)


class _Everything(Collector):
    def __init__(self, counted: Metrics) -> None:
        self.counted = counted

    def collect(self) -> Iterator[Metric]:
        yield from self.counted.collect()
        with suppress(psycopg2.Error):  # what can be told while the database is away is told
            for name, number in connections.count().items():
                doc = "Connections to PostgreSQL, of all processes and machines."
                yield GaugeMetricFamily(f"linkmgr_database_connections_{name}", doc, value=number)


@bp.get("/metrics")
def scrape() -> Response:
    counted = metrics()
    if counted is None:
        raise AppError("no_such_page")
    given = request.headers.get("Authorization", "").encode("utf-8", "replace")
    if not hmac.compare_digest(given, f"Bearer {settings().metrics_token}".encode()):
        raise AppError("metrics_token")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Everything(counted))
    return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"})
