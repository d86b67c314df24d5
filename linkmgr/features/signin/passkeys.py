"""Passkeys (WebAuthn): stored by the authenticator, with the fingerprint, face or PIN of the user.

A challenge is in the signed session cookie. It can be answered once and within five minutes.
"""

import ipaddress
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit

import webauthn
from flask import session
from webauthn.helpers import bytes_to_base64url, parse_authentication_credential_json
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError, required
from linkmgr.core.settings import settings
from linkmgr.core.web import rate_windows
from linkmgr.features.signin import factors

T = TypeVar("T")

SECONDS = 300  # for the response to a challenge
_CHALLENGE = "challenge"  # with the time when it was made
_DEFAULT_PORTS = {"http": 80, "https": 443}


def are_possible() -> bool:
    """Return True if browsers allow passkeys: they need HTTPS, except on this computer, and a host
    name."""
    with suppress(ValueError):
        ipaddress.ip_address(settings().host)
        return False
    return settings().is_https or settings().host == "localhost"


def _origin() -> str:
    base = urlsplit(settings().base_url)
    port = "" if base.port in (None, _DEFAULT_PORTS[base.scheme]) else f":{base.port}"
    return f"{base.scheme}://{base.hostname}{port}"


def _descriptors(rows: list[Row]) -> list[PublicKeyCredentialDescriptor]:
    return [PublicKeyCredentialDescriptor(id=bytes(row["credential"])) for row in rows if row["credential"]]


def _with_challenge(options: Any) -> str:
    session[_CHALLENGE] = [bytes_to_base64url(options.challenge), int(time.time())]
    return webauthn.options_to_json(options)


def creation_options(user_id: int, email: str, rows: list[Row]) -> str:
    """Return the options in JSON for a browser that makes a new passkey, which is none of these
    factors."""
    return _with_challenge(
        webauthn.generate_registration_options(
            rp_id=settings().host,
            rp_name=settings().name,
            user_id=str(user_id).encode(),
            user_name=email,
            timeout=SECONDS * 1000,
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.REQUIRED,
                user_verification=UserVerificationRequirement.REQUIRED,
            ),
            exclude_credentials=_descriptors(rows),
        )
    )


def request_options(rows: list[Row]) -> str:
    """Return the options in JSON for a browser that asks for one of these passkeys, or for any one
    if there are none."""
    return _with_challenge(
        webauthn.generate_authentication_options(
            rp_id=settings().host,
            timeout=SECONDS * 1000,
            allow_credentials=_descriptors(rows),
            user_verification=UserVerificationRequirement.REQUIRED,
        )
    )


def _verified(verify: Callable[..., T], sent: str, **expected: Any) -> T:
    text, made = session.pop(_CHALLENGE, ("", 0))
    try:
        verified = verify(
            credential=sent,
            expected_challenge=webauthn.base64url_to_bytes(text),
            expected_rp_id=settings().host,
            expected_origin=_origin(),
            require_user_verification=True,
            **expected,
        )
    except Exception as error:  # malformed responses raise errors of many classes in the package
        raise AppError("passkey_refused") from error
    # The cookie can be sent again, so that the database knows which challenge was answered.
    bucket = f"challenge:{keys.digest(text).hex()}"
    if time.time() - made > SECONDS or rate_windows.count(bucket, window=SECONDS)["count"] > 1:
        raise AppError("passkey_refused")
    return verified


def register(user_id: int, name: str, sent: str) -> None:
    made = _verified(webauthn.verify_registration_response, sent)
    factors.add_passkey(
        user_id,
        name,
        credential=made.credential_id,
        public_key=made.credential_public_key,
        counter=made.sign_count,
    )


def use(sent: str) -> int:
    """Return the id of the user whose passkey has signed the challenge."""
    try:
        credential = parse_authentication_credential_json(sent).raw_id
    except Exception as error:  # as above
        raise AppError("passkey_refused") from error
    passkey = required(factors.find_passkey(credential), "passkey_refused")
    verified = _verified(
        webauthn.verify_authentication_response,
        sent,
        credential_public_key=bytes(passkey["public_key"]),
        credential_current_sign_count=passkey["counter"],
    )
    used = required(factors.use_passkey(credential, verified.new_sign_count), "passkey_refused")
    return int(used["user_id"])
