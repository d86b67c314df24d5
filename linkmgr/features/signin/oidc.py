"""Sign-in at an OpenID Connect provider: discovery, the authorization code flow with PKCE, and the
checks of the ID token.

The operator chooses the provider, so its hosts need not be public. Our requests to it are bounded
in size, and those for one page in time. Its metadata and keys are kept in the process for an hour,
and a failure for some seconds.
"""

import re
import time
from base64 import b64encode
from contextlib import closing
from ipaddress import ip_network
from typing import Any, cast
from urllib.parse import quote, urlencode

import orjson
import pycurl
from authlib.common.urls import add_params_to_uri
from authlib.oauth2 import OAuth2Client
from authlib.oidc.core import CodeIDToken
from flask import current_app
from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.outbound import fetch
from linkmgr.core.settings import settings
from linkmgr.core.web import pool
from linkmgr.features.signin.accounts import Person

DEADLINE = 5.0  # seconds of all requests for one page
MAX_BYTES = 256 * 1024  # of a response
KEPT, RETRY = 3600, 5  # seconds that metadata and keys are used, and that no request follows a failure
AGAIN = 300  # seconds within which a person has signed in again
LEEWAY = 60  # seconds by which the clocks may differ
MAX_TEXT = 255  # characters of a claim
# Those with a public key: with others, who knows the secret of the client could sign.
ALGORITHMS = [
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519",
]  # fmt: skip
_ANYWHERE = (ip_network("0.0.0.0/0"), ip_network("::/0"))
_OK, _ERROR, _BUSY = 200, 500, 429
_CLAIMS = {"email", "email_verified", "preferred_username"}
# The metadata, the keys and the last failure of each issuer, with the time of the request
_kept: dict[tuple[str, str], tuple[float, Row]] = {}
_NEVER: tuple[float, Row] = (float("-inf"), {})


def _down(reason: str) -> AppError:
    current_app.logger.warning("OpenID Connect: %.300r", reason)
    return AppError("provider_down", name=settings().oidc_name, seconds=RETRY)


def _wrong(reason: str) -> AppError:
    current_app.logger.error("OpenID Connect: refused: %.300r", reason)
    return AppError("provider_wrong", name=settings().oidc_name)


class _Response(fetch.Transfer):
    max_bytes = MAX_BYTES


def _request(url: str, end: float, *headers: str, form: Row | None = None) -> tuple[int, Row]:
    """Return the status and the members of the response, which has none unless it is a JSON
    object."""
    pool.take("fetch_busy")
    response = _Response(_ANYWHERE)
    with response.sockets, closing(response.make_curl()) as curl:
        curl.setopt(pycurl.URL, url.encode())
        curl.setopt(pycurl.TIMEOUT_MS, max(1, int((end - time.monotonic()) * 1000)))
        curl.setopt(pycurl.HTTPHEADER, ["Accept: application/json", "Expect:", *headers])
        if form is not None:
            curl.setopt(pycurl.POSTFIELDS, urlencode(form))
        try:
            curl.perform()
        except pycurl.error as error:
            if error.args[0] == pycurl.E_WRITE_ERROR:
                raise _wrong(f"more than {MAX_BYTES} bytes from {url}") from None
            raise _down(f"{error.args[1]}: {url}") from None
        status = curl.getinfo(pycurl.RESPONSE_CODE)
    if status >= _ERROR or status == _BUSY:
        raise _down(f"status {status} from {url}")
    try:
        members = orjson.loads(response.received)
    except orjson.JSONDecodeError:
        members = None
    return status, members if isinstance(members, dict) else {}


def text(value: Any) -> str:
    """Return a text of the provider that can be stored, or ""."""
    return value if isinstance(value, str) and len(value) <= MAX_TEXT and value.isprintable() else ""


def _fetch(name: str, url: str, end: float, since: float) -> Row:
    """Return a document of the provider that was requested after `since`, by the monotonic
    clock."""
    issuer = settings().oidc_issuer
    at, document = _kept.get((issuer, name), _NEVER)
    if at >= since:
        return document
    at = time.monotonic()
    if at < _kept.get((issuer, "failure"), _NEVER)[0] + RETRY:
        raise AppError("provider_down", name=settings().oidc_name, seconds=RETRY)
    try:
        status, document = _request(url, end)
        if status != _OK:
            raise _wrong(f"status {status} from {url}")
        if name == "metadata" and text(document.get("issuer")).removesuffix("/") != issuer:
            raise _wrong(f"another issuer in {url}: {document.get('issuer')}")
    except AppError as error:
        if error.code != "fetch_busy":  # which says nothing of the provider
            _kept[issuer, "failure"] = time.monotonic(), {}
        raise
    _kept[issuer, name] = at, document
    return document


def _metadata(end: float) -> Row:
    url = f"{settings().oidc_issuer}/.well-known/openid-configuration"
    return _fetch("metadata", url, end, time.monotonic() - KEPT)


def _endpoint(name: str, end: float) -> str:
    url, is_secure = text(_metadata(end).get(name)), settings().oidc_issuer.startswith("https://")
    if not url.startswith("https://" if is_secure else ("https://", "http://")):
        raise _wrong(f"{name} {url}")
    return url


def _keys(end: float, since: float) -> KeySet:
    return KeySet.import_key_set(cast("Any", _fetch("keys", _endpoint("jwks_uri", end), end, since)))


def _redirect_uri() -> str:
    return f"{settings().base_url}/login/oidc/callback"


def begin(*, again: bool = False) -> tuple[str, str, str, str]:
    """Return the URL at the provider, and the state, the nonce and the verifier of the sign-in.
    With `again`, the provider asks a person who has signed in there to do so again."""
    state, nonce, verifier = keys.new_token(), keys.new_token(), keys.new_token()
    client = OAuth2Client(
        None,
        client_id=settings().oidc_client_id,
        scope=" ".join(settings().oidc_scopes),
        redirect_uri=_redirect_uri(),
        code_challenge_method="S256",
    )
    endpoint = _endpoint("authorization_endpoint", time.monotonic() + DEADLINE)
    more = {"prompt": "login", "max_age": 0} if again else {}
    url, _ = client.create_authorization_url(
        endpoint, state=state, nonce=nonce, code_verifier=verifier, **more
    )
    return str(url), state, nonce, verifier


def finish(code: str, nonce: str, verifier: str, *, again: bool = False) -> tuple[Person, str]:
    """Redeem the code. Return the person and the ID token. With `again`, the person must have
    signed in at the provider just now."""
    end = time.monotonic() + DEADLINE
    token = _redeem(code, verifier, end)
    id_token, access_token = (str(token.get(name, "")) for name in ("id_token", "access_token"))
    claims = _verified(id_token, access_token, nonce, end)
    at = claims.get("auth_time")
    if again and not (isinstance(at, int | float) and at > time.time() - AGAIN):
        raise _wrong(f"auth_time {at}")
    needed = _CLAIMS | ({settings().oidc_groups_claim} if settings().oidc_groups else set())
    if not needed <= claims.keys() and "userinfo_endpoint" in _metadata(end):
        if not re.fullmatch("[!-~]+", access_token):
            raise _wrong("the access token")
        status, more = _request(
            _endpoint("userinfo_endpoint", end), end, f"Authorization: Bearer {access_token}"
        )
        if status != _OK or more.get("sub") != claims["sub"]:
            raise _wrong(f"status {status} or another sub from the userinfo endpoint")
        claims = more | claims
    groups = claims.get(settings().oidc_groups_claim)
    listed = frozenset(map(text, groups if isinstance(groups, list) else [groups]))
    email, username = text(claims.get("email")), text(claims.get("preferred_username"))
    return Person(claims["sub"], email, claims.get("email_verified") is True, username, listed), id_token


def _redeem(code: str, verifier: str, end: float) -> Row:
    client_id, secret, headers = settings().oidc_client_id, settings().oidc_client_secret, []
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": _redirect_uri()}
    form |= {"code_verifier": verifier}
    methods = _metadata(end).get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    if secret and "client_secret_basic" in methods:
        credentials = f"{quote(client_id, '')}:{quote(secret, '')}".encode()  # RFC 6749, 2.3.1
        headers = [f"Authorization: Basic {b64encode(credentials).decode()}"]
    else:
        form |= {"client_id": client_id} | ({"client_secret": secret} if secret else {})
    status, members = _request(_endpoint("token_endpoint", end), end, *headers, form=form)
    if members.get("error") == "invalid_grant":
        raise AppError("sign_in_expired")
    if status != _OK:
        raise _wrong(f"status {status} from the token endpoint: {members.get('error')}")
    return members


def _verified(id_token: str, access_token: str, nonce: str, end: float) -> Row:
    """Return the claims of an ID token that a key of the provider has signed for this sign-in. Keys
    that are not known yet are requested once."""
    now, issuer, client_id = time.monotonic(), _metadata(end)["issuer"], settings().oidc_client_id
    registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    expected = {
        "iss": {"essential": True, "value": issuer},
        "aud": {"essential": True, "value": client_id},
    }
    parameters = {"nonce": nonce, "client_id": client_id, "access_token": access_token}
    try:
        try:
            token = jwt.decode(id_token, _keys(end, since=now - KEPT), registry=registry)
        except (InvalidKeyIdError, BadSignatureError):
            token = jwt.decode(id_token, _keys(end, since=now), registry=registry)
        claims = CodeIDToken(token.claims, token.header, expected, parameters)
        claims.validate(leeway=LEEWAY)
    except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _wrong(f"the ID token: {type(error).__name__} {error}") from None
    if not text(claims["sub"]):
        raise _wrong("sub")
    return dict(claims)


def sign_out_url(id_token: str) -> str | None:
    """Return the URL that ends the session at the provider and leads back, or None if it has
    none."""
    end = time.monotonic() + DEADLINE
    if "end_session_endpoint" not in _metadata(end):
        return None
    back = f"{settings().base_url}/login"
    sent = {
        "id_token_hint": id_token,
        "client_id": settings().oidc_client_id,
        "post_logout_redirect_uri": back,
    }
    return str(add_params_to_uri(_endpoint("end_session_endpoint", end), [*sent.items()]))
