"""API keys, the tokens of sign-in links and sessions, encryption, and signatures.

The database stores their SHA-256 digests. Each secret has 256 random bits, so the digest needs
neither a salt nor a slow hash. The API key that each user has is also stored encrypted, because the
account page shows it again.

Scoped keys, which users make for their programs, are shown once. Their form is `lmk_`, 30 random
letters and digits (178 bits), and the CRC-32 of these in 6 digits of base 62, so that secret
scanners recognize them, and typing errors are detected.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
import string
from functools import cache
from typing import Any

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from itsdangerous import Signer, URLSafeTimedSerializer

from linkmgr.core.settings import this_app

PREFIX = "linkmgr_"  # lets secret scanners recognize a key
SCOPED_PREFIX = "lmk_"
SCOPED_PATTERN = f"{SCOPED_PREFIX}[0-9A-Za-z]{{36}}"
VISIBLE = len(SCOPED_PREFIX) + 4  # the characters of a scoped key that lists show
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM, _CHECK = 30, 6  # characters


@cache
def _cipher(secret: str) -> Fernet:
    derived = HKDF(hashes.SHA256(), length=32, salt=None, info=b"linkmgr API keys").derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(derived))


def _ciphers() -> MultiFernet:
    config = this_app().config
    return MultiFernet(map(_cipher, [config["SECRET_KEY"], *config["SECRET_KEY_FALLBACKS"]]))


def _signing() -> list[str]:
    config = this_app().config
    return [*config["SECRET_KEY_FALLBACKS"], config["SECRET_KEY"]]  # the last one signs


def signer(salt: str) -> Signer:
    return Signer(_signing(), salt=salt, digest_method=hashlib.sha256)


def serializer(salt: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(_signing(), salt=salt)


@cache
def _keyed(secret: str, salt: str, size: int) -> hashlib.blake2b:
    key = HKDF(hashes.SHA256(), length=32, salt=None, info=salt.encode()).derive(secret.encode())
    return hashlib.blake2b(key=key, digest_size=size)


def _mac(secret: str, salt: str, message: bytes, size: int) -> bytes:
    keyed = _keyed(secret, salt, size).copy()
    keyed.update(message)
    return keyed.digest()


def mac(salt: str, message: bytes, size: int) -> bytes:
    """Return a keyed digest of `size` bytes, for a text that has no room for a whole signature: who
    tries to forge one succeeds once in 256 ** size tries."""
    return _mac(this_app().config["SECRET_KEY"], salt, message, size)


def is_mac(salt: str, message: bytes, sent: bytes) -> bool:
    """Return True if a digest was made with one of the secrets."""
    digests = (_mac(secret, salt, message, len(sent)) for secret in _signing())
    return any(hmac.compare_digest(digest, sent) for digest in digests)


def new_token() -> str:
    return secrets.token_urlsafe(32)


def _checksum(text: str) -> str:
    number, digits = binascii.crc32(text.encode()), ""
    while len(digits) < _CHECK:
        number, digit = divmod(number, len(_BASE62))
        digits = _BASE62[digit] + digits
    return digits


def new_scoped_key() -> str:
    text = "".join(secrets.choice(_BASE62) for _ in range(_RANDOM))
    return SCOPED_PREFIX + text + _checksum(text)


def is_well_formed(key: str) -> bool:
    text, check = key[len(SCOPED_PREFIX) : -_CHECK], key[-_CHECK:]
    return len(text) == _RANDOM and key.isascii() and _checksum(text) == check


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def new_key(user_id: int) -> dict[str, Any]:
    key = PREFIX + new_token()
    # The user id prevents a ciphertext that is copied to another user's row from revealing the key
    # there.
    ciphertext = _ciphers().encrypt(f"{user_id}:{key}".encode()).decode()
    return {"key_digest": digest(key), "key_ciphertext": ciphertext}


def seal_bytes(user_id: int, content: bytes) -> str:
    """Encrypt what only `unseal_bytes` of the same user decrypts. The ciphertext is not one of an
    API key."""
    return _ciphers().encrypt(f"sealed {user_id}:".encode() + content).decode()


def unseal_bytes(user_id: int, ciphertext: str) -> bytes:
    owner, _, content = _ciphers().decrypt(ciphertext).partition(b":")
    if owner != f"sealed {user_id}".encode():
        raise ValueError(f"a text of {owner!r} is stored with user {user_id}")
    return content


def seal(user_id: int, text: str) -> str:
    return seal_bytes(user_id, text.encode())


def unseal(user_id: int, ciphertext: str) -> str:
    return unseal_bytes(user_id, ciphertext).decode()


def reveal(user_id: int, ciphertext: str) -> str:
    owner, _, key = _ciphers().decrypt(ciphertext).decode().partition(":")
    if owner != str(user_id):
        raise ValueError(f"the API key of user {owner} is stored with user {user_id}")
    return key
