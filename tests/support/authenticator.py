"""An authenticator in Python, for responses that no browser would send."""

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from html import unescape
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


def encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def options_of(page: str) -> dict[str, Any]:
    """Return the options that a page has for the browser."""
    found: dict[str, Any] = json.loads(unescape(page.split('data-passkey="')[1].split('"', maxsplit=1)[0]))
    return found


@dataclass
class Authenticator:
    origin: str = "http://localhost"
    host: str = "localhost"
    flags: int = PRESENT | VERIFIED
    counter: int = 0
    credential: bytes = b"credential"
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def _data(self, flags: int) -> bytes:
        self.counter += 1
        return hashlib.sha256(self.host.encode()).digest() + bytes([flags]) + self.counter.to_bytes(4, "big")

    def _client_data(self, act: str, challenge: str) -> bytes:
        return json.dumps({"type": f"webauthn.{act}", "challenge": challenge, "origin": self.origin}).encode()

    def _response(self, **parts: bytes) -> str:
        response = {name: encoded(part) for name, part in parts.items()}
        name = encoded(self.credential)
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})

    def create(self, page: str) -> str:
        """Return the new passkey that the page asks for."""
        point = self.key.public_key().public_numbers()
        key = {1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32, "big"), -3: point.y.to_bytes(32, "big")}
        attested = bytes(16) + len(self.credential).to_bytes(2, "big") + self.credential + cbor2.dumps(key)
        made = {"fmt": "none", "attStmt": {}, "authData": self._data(self.flags | ATTESTED) + attested}
        client_data = self._client_data("create", options_of(page)["challenge"])
        return self._response(clientDataJSON=client_data, attestationObject=cbor2.dumps(made))

    def get(self, page: str) -> str:
        """Return the signature of the challenge of the page."""
        data, client_data = self._data(self.flags), self._client_data("get", options_of(page)["challenge"])
        signed = data + hashlib.sha256(client_data).digest()
        signature = self.key.sign(signed, ec.ECDSA(hashes.SHA256()))
        return self._response(clientDataJSON=client_data, authenticatorData=data, signature=signature)


def changed(response: str, part: str, content: bytes) -> str:
    """Return a response whose part is replaced, or empty."""
    parsed = json.loads(response)
    parsed["response"][part] = encoded(content)
    return json.dumps(parsed)


def decoded(response: str, part: str) -> bytes:
    return urlsafe_b64decode(json.loads(response)["response"][part] + "===")
