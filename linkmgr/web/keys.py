"""API keys, the tokens of login links and sessions, and encryption.

The database stores their SHA-256 digests. Each secret has 256 random bits, so the digest needs neither a salt nor a
slow hash. API keys are also stored encrypted, because the account page shows them again.
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

PREFIX = "linkmgr_"  # lets secret scanners recognize a key


def init_app(app: Flask) -> None:
    # MultiFernet encrypts with the first secret and decrypts with any of them.
    all_secrets = [app.config["SECRET_KEY"], *app.config["SECRET_KEY_FALLBACKS"]]
    app.extensions["linkmgr_ciphers"] = MultiFernet([_cipher(secret) for secret in all_secrets])


def _cipher(secret: str) -> Fernet:
    derived = HKDF(hashes.SHA256(), length=32, salt=None, info=b"linkmgr API keys").derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(derived))


def _ciphers() -> MultiFernet:
    ciphers: MultiFernet = this_app().extensions["linkmgr_ciphers"]
    return ciphers


def new_token() -> str:
    return secrets.token_urlsafe(32)


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def new_key(user_id: int) -> dict[str, Any]:
    """Create an API key. Return the columns that store it."""
    key = PREFIX + new_token()
    # The user id prevents a ciphertext that is copied to another user's row from revealing the key there.
    ciphertext = _ciphers().encrypt(f"{user_id}:{key}".encode()).decode()
    return {"key_digest": digest(key), "key_ciphertext": ciphertext}


def seal(user_id: int, text: str) -> str:
    """Encrypt a text that only `unseal` of the same user decrypts. Its ciphertext is not one of an API key."""
    return _ciphers().encrypt(f"sealed {user_id}:{text}".encode()).decode()


def unseal(user_id: int, ciphertext: str) -> str:
    owner, _, text = _ciphers().decrypt(ciphertext).decode().partition(":")
    if owner != f"sealed {user_id}":
        raise ValueError(f"a text of {owner} is stored with user {user_id}")
    return text


def reveal(user_id: int, ciphertext: str) -> str:
    owner, _, key = _ciphers().decrypt(ciphertext).decode().partition(":")
    if owner != str(user_id):
        raise ValueError(f"the API key of user {owner} is stored with user {user_id}")
    return key
