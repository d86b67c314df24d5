"""One-time codes of an authenticator app (TOTP, RFC 6238), and recovery codes in their place."""

import base64
import re
import secrets
import time

import pyotp
import segno

from linkmgr.core import keys
from linkmgr.core.errors import AppError, existing, required
from linkmgr.core.settings import settings
from linkmgr.core.web import attempts
from linkmgr.features.signin import factors

RECOVERY_CODES = 10
_RECOVERY_BYTES = 10  # too many to be guessed from a digest
_STEP = 30  # seconds
_DRIFT = (0, -1, 1)  # time steps that the clock of a phone may be off


def _matching_step(secret: str, code: str) -> int | None:
    """Return the time step of a code, or None if it is not one of this minute."""
    code, now = re.sub(r"\s", "", code), int(time.time()) // _STEP
    steps = (now + drift for drift in _DRIFT)
    return next((step for step in steps if pyotp.TOTP(secret).verify(code, for_time=step * _STEP)), None)


def _count_attempt(user_id: int) -> None:
    """Count a code before it is compared, right ones too, so that no more are tried at once than
    the limit allows."""
    attempts.spend(attempts.Limit(f"codes:{user_id}", code="too_many_codes"))


def use(user_id: int, code: str) -> None:
    """Use up a one-time code or a recovery code of a user."""
    _count_attempt(user_id)
    sealed = required(factors.secret(user_id, enrolled=True), "code_wrong")
    step = _matching_step(keys.unseal(user_id, sealed), code)
    is_used = factors.use_step(user_id, step) if step else factors.use_recovery_code(user_id, _digest(code))
    if not is_used:
        raise AppError("code_wrong")


# --- enrollment


def begin(user_id: int) -> None:
    if not factors.new_secret(user_id, keys.seal(user_id, pyotp.random_base32())):
        raise AppError("codes_enrolled")


def waiting_secret(user_id: int, email: str) -> tuple[str, str]:
    """Return the secret that waits for its first code, and its QR code as the URL of an image."""
    secret = keys.unseal(user_id, required(factors.secret(user_id, enrolled=False), "codes_enrolled"))
    url = pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name=settings().name)
    return secret, segno.make(url, error="m").svg_data_uri(scale=5, light="#fff")


def enroll(user_id: int, code: str) -> list[str]:
    """Begin to ask for codes, and return the recovery codes."""
    _count_attempt(user_id)
    sealed = required(factors.secret(user_id, enrolled=False), "codes_enrolled")
    step = required(_matching_step(keys.unseal(user_id, sealed), code), "code_wrong")
    recovery = _new_recovery_codes()
    if not factors.enroll(user_id, sealed, step=step, recovery=[*map(_digest, recovery)]):
        raise AppError("codes_enrolled")
    return recovery


# --- recovery codes


def _new_recovery_codes() -> list[str]:
    texts = [base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode() for _ in range(RECOVERY_CODES)]
    return ["-".join(re.findall("....", text)) for text in texts]


def _digest(code: str) -> bytes:
    return keys.digest(re.sub(r"[\s-]", "", code).upper())


def replace_recovery_codes(user_id: int) -> list[str]:
    recovery = _new_recovery_codes()
    existing(factors.replace_recovery_codes(user_id, [*map(_digest, recovery)]), "secret of one-time codes")
    return recovery
