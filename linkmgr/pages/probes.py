"""The pages of programs that watch the service: /healthz, /metrics, and the challenge of branded domains."""

import hmac
import time
from contextlib import suppress

import psycopg2
from flask import Blueprint, Response, request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, Info, generate_latest

from linkmgr.db import backup
from linkmgr.db.replica import Replica
from linkmgr.db.statements import Row
from linkmgr.errors import AppError
from linkmgr.metrics import metrics
from linkmgr.outbound.domain_check import CHALLENGE_PATH, challenge_response
from linkmgr.repository import purge, service
from linkmgr.settings import RELEASE, settings, this_app
from linkmgr.visits import spool
from linkmgr.web.responses import Json, ok

bp = Blueprint("probes", __name__)

_GAUGES = {
    "database_connections_open": "PostgreSQL connections of all processes and machines.",
    "database_connections_in_use": "PostgreSQL connections of all processes and machines that execute a statement.",
    "visits_waiting": "Visits in the data folder that are not yet stored.",
    "visits_waiting_seconds": "Age of the oldest of them.",
    "jobs_waiting": "Background jobs, at most 10000.",
    "jobs_waiting_seconds": "Seconds since a job is due that no process has taken.",
    "jobs_failing": "Background jobs that have failed more than three times in a row.",
    "events_waiting_seconds": "Age of the oldest event that no process has prepared for webhooks.",
    "deliveries_waiting": "Events that wait for webhooks, at most 10000.",
    "replica_in_use": "1 if this process reads from the replica.",
    "replica_lag_seconds": "Age of the last commit that the replica has replayed.",
    "backup_age_seconds": "Seconds since the last dump.",
    "purge_age_seconds": "Seconds since the last purge.",
}


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
    registry = CollectorRegistry()
    Info("linkmgr_build", "The version of this process.", registry=registry).info({"version": RELEASE})
    values = _gauges()
    for name, help_text in _GAUGES.items():
        if (value := values.get(name)) is not None:
            Gauge(f"linkmgr_{name}", help_text, registry=registry).set(value)
    exposition = generate_latest(counters) + generate_latest(registry)
    return Response(exposition, content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"})


def _gauges() -> Row:
    """Return the values by name, without those that are unknown, for example because the database is unavailable."""
    folder, values = settings().folder, Row()
    with suppress(psycopg2.Error):
        values |= service.gauges()
        values["visits_waiting"], values["visits_waiting_seconds"] = spool.backlog(folder / "visits", values["spools"])
        reader = this_app().extensions["linkmgr_reader"]
        values |= reader.state() if isinstance(reader, Replica) else {}
    for name, file in (("backup", backup.LAST), ("purge", purge.LAST)):
        with suppress(FileNotFoundError):
            values[f"{name}_age_seconds"] = time.time() - (folder / file).stat().st_mtime
    return values
