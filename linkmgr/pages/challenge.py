"""/.well-known/linkmgr/<token>: the response that proves that a host name points to this service."""

from flask import Blueprint, Response, request

from linkmgr.outbound.domain_check import CHALLENGE_PATH, challenge_response

bp = Blueprint("challenge", __name__)


@bp.get(f"{CHALLENGE_PATH}<token>")
def prove(token: str) -> Response:
    host = request.host.partition(":")[0].lower().removesuffix(".")
    return Response(challenge_response(host, token), mimetype="text/plain", headers={"Cache-Control": "no-store"})
