"""The pages of programs that watch the service: /healthz, /metrics, and the challenge of branded
domains."""

import hmac
import time
from contextlib import suppress

import psycopg2
from flask import Blueprint, Response, request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from linkmgr.core.database import backup, service
from linkmgr.core.database.replica import Replica
from linkmgr.core.database.statements import Row, database
from linkmgr.core.errors import AppError
from linkmgr.core.metrics import gauges_text, metrics
from linkmgr.core.outbound.domain_check import CHALLENGE_PATH, challenge_response
from linkmgr.core.settings import RELEASE, settings
from linkmgr.core.web.responses import Json, ok
from linkmgr.repository import purge
from linkmgr.visits import spool

bp = Blueprint("probes", __name__)


@bp.get("/healthz")
def healthz() -> Json:
    service.check()
    return ok(version=RELEASE)


@bp.get(f"{CHALLENGE_PATH}<token>")
def prove(token: str) -> Response:
    host = request.host.partition(":")[0].lower().removesuffix(".")
    return Response(
        challenge_response(host, token), mimetype="text/plain", headers={"Cache-Control": "no-store"}
    )


@bp.get("/metrics")
def scrape() -> Response:
    counters = metrics()
    if counters is None:
        raise AppError("no_such_page")
    authorization = request.headers.get("Authorization", "").encode("utf-8", "replace")
    if not hmac.compare_digest(authorization, f"Bearer {settings().metrics_token}".encode()):
        raise AppError("metrics_token")
    exposition = generate_latest(counters) + gauges_text(_gauges())
    return Response(exposition, content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"})


def _gauges() -> Row:
    """Return the values by name, without those that are unknown, for example because the database
    is unavailable."""
    folder, values = settings().folder, Row()
    with suppress(psycopg2.Error):
        values |= service.gauges()
        values["visits_waiting"], values["visits_waiting_seconds"] = spool.backlog(
            folder / "visits", values["spools"]
        )
        reader = database().reader
        values |= reader.state() if isinstance(reader, Replica) else {}
    for name, file in (("backup", backup.LAST), ("purge", purge.LAST)):
        with suppress(FileNotFoundError):
            values[f"{name}_age_seconds"] = time.time() - (folder / file).stat().st_mtime
    return values
