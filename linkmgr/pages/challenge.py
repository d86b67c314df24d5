"""/.well-known/linkmgr/<token>: the response that proves that a host name points to this service."""

from flask import Blueprint, Response, request

from linkmgr.outbound.domain_check import CHALLENGES, answer

bp = Blueprint("challenge", __name__)


@bp.get(f"{CHALLENGES}<token>")
def prove(token: str) -> Response:
    host = request.host.partition(":")[0].lower().removesuffix(".")
    return Response(answer(host, token), mimetype="text/plain", headers={"Cache-Control": "no-store"})
