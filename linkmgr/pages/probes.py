"""The pages of programs that watch the service: /healthz, /metrics, and the challenge of branded domains."""

import hmac
import time
from contextlib import suppress

import psycopg2
from flask import Blueprint, Response, request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from linkmgr.db.backup import LAST
from linkmgr.errors import AppError
from linkmgr.metrics import metrics
from linkmgr.outbound.domain_check import CHALLENGE_PATH, challenge_response
from linkmgr.repository import service
from linkmgr.settings import RELEASE, settings
from linkmgr.web.responses import Json, ok

bp = Blueprint("probes", __name__)


@bp.get("/healthz")
def healthz() -> Json:
    service.check()
    return ok(version=RELEASE)


@bp.get(f"{CHALLENGE_PATH}<token>")
def prove(token: str) -> Response:
    host = request.host.partition(":")[0].lower().removesuffix(".")
    return Response(challenge_response(host, token), mimetype="text/plain", headers={"Cache-Control": "no-store"})


@bp.get("/metrics")
def scrape() -> Response:
    counters = metrics()
    if counters is None:
        raise AppError("no_such_page")
    authorization = request.headers.get("Authorization", "").encode("utf-8", "replace")
    if not hmac.compare_digest(authorization, f"Bearer {settings().metrics_token}".encode()):
        raise AppError("metrics_token")
    gauges = CollectorRegistry()
    with suppress(psycopg2.Error):  # the counters are available without the database
        for name, value in service.connections().items():
            help_text = "PostgreSQL connections of all processes and machines."
            Gauge(f"linkmgr_database_connections_{name}", help_text, registry=gauges).set(value)
    with suppress(FileNotFoundError):
        age = time.time() - (settings().folder / LAST).stat().st_mtime
        Gauge("linkmgr_backup_age_seconds", "Seconds since the last dump.", registry=gauges).set(age)
    exposition = generate_latest(counters) + generate_latest(gauges)
    return Response(exposition, content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"})
