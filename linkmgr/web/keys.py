"""Secrets that the service hands out: API keys, and the tokens of login links and sessions.

A stored secret is a SHA-256 digest, by which it is looked up.  All of them hold 256 random bits, so that the
digest needs no salt and no slowness.  API keys, which are shown again, are kept encrypted beside their digest.
"""

import base64
import hashlib
import secrets
from typing import Any

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from flask import Flask

from linkmgr.settings import this_app

PREFIX = "linkmgr_"  # by which secret scanners recognise a key


def init_app(app: Flask) -> None:
    # The first secret encrypts, each one decrypts.
    known = [app.config["SECRET_KEY"], *app.config["SECRET_KEY_FALLBACKS"]]
    app.extensions["linkmgr_ciphers"] = MultiFernet([_cipher(secret) for secret in known])


def _cipher(secret: str) -> Fernet:
    derived = HKDF(hashes.SHA256(), length=32, salt=None, info=b"linkmgr API keys").derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(derived))


def _ciphers() -> MultiFernet:
    found: MultiFernet = this_app().extensions["linkmgr_ciphers"]
    return found


def new_token() -> str:
    return secrets.token_urlsafe(32)


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def new_key(user_id: int) -> dict[str, Any]:
    """A new API key as the columns that keep it."""
    key = PREFIX + new_token()
    # Bound to the user: a ciphertext that is moved to another row does not show its key there.
    sealed = _ciphers().encrypt(f"{user_id}:{key}".encode()).decode()
    return {"key_digest": digest(key), "key_ciphertext": sealed}


def reveal(user_id: int, ciphertext: str) -> str:
    owner, _, key = _ciphers().decrypt(ciphertext).decode().partition(":")
    if owner != str(user_id):
        raise ValueError(f"the API key of user {owner} is stored with user {user_id}")
    return key
