"""Responses of a provider are accepted only if all of them are right, and take neither long nor much memory."""

import base64
import hmac
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from flask import Flask
from joserfc import jwk, jws, jwt

from linkmgr.features.signin import oidc
from tests.support.factories import Sql
from tests.support.foreign import answering, server
from tests.support.pages import is_signed_in, words
from tests.support.provider import SECRET, Answer, Change, Provider

Claims = dict[str, Any]
WRONG = "Example SSO sent what this service cannot accept"
DOWN = "Example SSO does not respond."
OWN = jwk.RSAKey.generate_key(2048, {"kid": "own", "use": "sig"})
CURVE = jwk.ECKey.generate_key("P-256", {"kid": "curve"})


def change_json(answer: Answer, change: Callable[[Any], Any]) -> Answer:
    return answer[0], json.dumps(change(json.loads(answer[1]))).encode()


def publish(provider: Provider, *published: jwk.Key) -> None:
    """Add public keys to those of the provider."""
    more = [key.as_dict(private=False) for key in published]
    provider.changes["/jwks"] = partial(change_json, change=lambda keys: {"keys": keys["keys"] + more})


def forge(provider: Provider, key: jwk.Key = OWN, alg: str = "RS256", **header: Any) -> Callable[..., None]:
    """Replace ID tokens by those with changed claims, signed with another key. None removes a claim."""

    def replace(token: Claims, changed: Claims) -> Claims:
        claims = json.loads(jws.extract_compact(token["id_token"].encode()).payload) | changed
        claims = {name: value for name, value in claims.items() if value is not None}
        forged = jwt.encode({"alg": alg} | header, claims, key, algorithms=[alg])
        return token | {"id_token": forged}

    def install(**changed: Any) -> None:
        provider.changes["/token"] = partial(change_json, change=lambda token: replace(token, changed))

    return install


@pytest.fixture
def refused(with_provider: Flask, provider: Provider, sql: Sql) -> Callable[[int, str], None]:
    def check(status: int, sentence: str) -> None:
        browser = with_provider.test_client()
        answer = provider.sign_in(browser)
        assert (answer.status_code, sentence in words(answer.text)) == (status, True), words(answer.text)
        assert not is_signed_in(browser)
        assert sql("SELECT FROM users") == sql("SELECT FROM identities") == []

    return check


def accepted(app: Flask, provider: Provider) -> bool:
    answer = provider.sign_in(app.test_client())
    return (answer.status_code, answer.headers.get("Location")) == (303, "/console")


@pytest.mark.parametrize(("key", "alg"), [(OWN, "RS256"), (OWN, "PS512"), (CURVE, "ES256")])
def test_a_token_is_accepted_that_a_key_of_the_provider_has_signed(
    with_provider: Flask, provider: Provider, key: jwk.Key, alg: str
) -> None:
    publish(provider, key)
    forge(provider, key, alg, kid=key.kid)(at_hash=None)
    assert accepted(with_provider, provider)
    forge(provider, key, alg, kid=key.kid)(aud=["linkmgr"], exp=int(time.time()) - 30, at_hash=None)  # clocks differ
    assert accepted(with_provider, provider)


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"}, {"nonce": None}, {"nonce": ["another"]}, {"nonce": ""},
        {"iss": "https://evil.example"}, {"iss": None}, {"iss": ""},
        {"aud": "another"}, {"aud": None}, {"aud": []}, {"aud": ["linkmgr", "another"]},
        {"aud": ["linkmgr", "another"], "azp": "another"}, {"azp": "another"},
        {"exp": 1_700_000_000}, {"exp": None}, {"exp": "soon"}, {"exp": float("nan")}, {"exp": -(10**400)},
        {"iat": 2_700_000_000}, {"iat": None}, {"nbf": 2_700_000_000},
        {"at_hash": "another"}, {"at_hash": 7}, {"amr": "none"},
        {"sub": None}, {"sub": ""}, {"sub": 7}, {"sub": "x" * 256}, {"sub": "a\0b"}, {"sub": ["dana"]},
    ],
    ids=str,
)  # fmt: skip
def test_a_token_with_wrong_claims_is_refused(
    provider: Provider, refused: Callable[[int, str], None], claims: Claims
) -> None:
    publish(provider, OWN)
    forge(provider, kid="own")(**claims)
    refused(502, WRONG)


def unsigned(token: Claims) -> Claims:
    return token | {"id_token": "eyJhbGciOiJub25lIn0." + token["id_token"].split(".")[1] + "."}


def shortened(token: Claims) -> Claims:
    return token | {"id_token": token["id_token"][:-9] + "AAAAAAAAA"}


@pytest.mark.parametrize(
    "change",
    [
        unsigned,
        shortened,
        *[lambda token, text=text: token | {"id_token": text}
          for text in (None, 7, "", "x", "a.b.c", "a.b.c.d.e", "ä.b.c", "eyJhbGciOiJSUzI1NiJ9.W10.AA", "." * 9)],
        lambda token: token | {"access_token": "two\r\nlines"},
        lambda token: token | {"access_token": None},
        lambda _: [],
        lambda _: {},
    ],
)  # fmt: skip
def test_a_malformed_token_is_refused(
    provider: Provider, refused: Callable[[int, str], None], change: Callable[[Any], Any]
) -> None:
    provider.changes["/token"] = partial(change_json, change=change)
    refused(502, WRONG)


@pytest.mark.parametrize(
    "header", [{"kid": "own"}, {}, {"kid": "own", "jwk": OWN.as_dict(private=False)}], ids=["unknown", "none", "own"]
)
def test_a_token_that_another_has_signed_is_refused(
    provider: Provider, refused: Callable[[int, str], None], header: Claims
) -> None:
    forge(provider, OWN, "RS256", **header)()
    refused(502, WRONG)


@pytest.mark.parametrize("secret", [SECRET.encode(), OWN.as_pem(private=False)])
def test_a_secret_and_a_public_key_sign_no_token(
    provider: Provider, refused: Callable[[int, str], None], secret: bytes
) -> None:
    def sign(token: Claims) -> Claims:
        head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"own"}').decode().rstrip("=")
        signed = f"{head}.{token['id_token'].split('.')[1]}"
        mac = base64.urlsafe_b64encode(hmac.digest(secret, signed.encode(), "sha256")).decode().rstrip("=")
        return token | {"id_token": f"{signed}.{mac}"}

    publish(provider, OWN)
    provider.changes["/token"] = partial(change_json, change=sign)
    refused(502, WRONG)


def test_keys_are_requested_again_when_the_provider_has_replaced_them(with_provider: Flask, provider: Provider) -> None:
    def requests(path: str) -> int:
        return provider.requests.count(path)

    assert [accepted(with_provider, provider) for _ in range(3)] == [True] * 3
    assert (requests("/jwks"), requests("/.well-known/openid-configuration")) == (1, 1)
    provider.rotate()
    assert accepted(with_provider, provider)
    assert requests("/jwks") == 2
    forge(provider, kid="own")()
    assert not accepted(with_provider, provider)
    assert requests("/jwks") == 3, "once, and not again"


def test_metadata_is_requested_again_after_an_hour(
    with_provider: Flask, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert accepted(with_provider, provider)
    monkeypatch.setattr(oidc, "KEPT", 0)
    with_provider.test_client().get("/login/oidc")
    assert provider.requests.count("/.well-known/openid-configuration") == 2


# --- answers that are no answers


def set_members(**changed: Any) -> Change:
    return partial(change_json, change=lambda members: members | changed)


HUGE = b'{"issuer": "' + b"x" * oidc.MAX_BYTES + b'"}'


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (set_members(issuer="https://evil.example"), 502),
        (set_members(issuer=7), 502),
        (set_members(authorization_endpoint="javascript:alert(1)"), 502),
        (set_members(authorization_endpoint=["x"]), 502),
        (lambda answer: (200, b"<html>"), 502),
        (lambda answer: (200, b"[" * 100_000), 502),
        (lambda answer: (200, HUGE), 502),
        (lambda answer: (302, answer[1]), 502),
        (lambda answer: (404, answer[1]), 502),
        (lambda answer: (500, answer[1]), 503),
        (lambda answer: (429, b"{}"), 503),
    ],
)
def test_a_sign_in_does_not_begin_with_wrong_metadata(
    with_provider: Flask, provider: Provider, change: Change, status: int
) -> None:
    provider.changes["/openid-configuration"] = change
    answer = with_provider.test_client().get("/login/oidc")
    assert (answer.status_code, "Example SSO" in answer.text) == (status, True)
    assert answer.headers.get("Retry-After") == (str(oidc.RETRY) if status == 503 else None)


@pytest.mark.parametrize("path", ["/token", "/jwks", "/me"])
@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda answer: (200, b"null"), 502),
        (lambda answer: (200, b'{"keys": [{"kty": "RSA"}, 7]}'), 502),
        (lambda answer: (200, HUGE), 502),
        (lambda answer: (401, b'{"error": "invalid_client"}'), 502),
        (lambda answer: (503, b""), 503),
    ],
)
def test_a_sign_in_does_not_end_with_a_wrong_response(
    provider: Provider, refused: Callable[[int, str], None], *, path: str, change: Change, status: int
) -> None:
    provider.changes[path] = change
    refused(status, WRONG if status == 502 else DOWN)


def test_the_claims_of_another_person_are_refused(provider: Provider, refused: Callable[[int, str], None]) -> None:
    provider.changes["/me"] = set_members(sub="mallory")
    refused(502, WRONG)


def test_a_provider_that_is_down_is_a_503_and_is_not_asked_again_at_once(
    provider: Provider, app_with: Callable[..., Flask]
) -> None:
    with server(answering(b"")) as port:
        pass
    app = app_with(**provider.settings(oidc_issuer=f"http://127.0.0.1:{port}"))
    answer = app.test_client().get("/login/oidc")
    assert (answer.status_code, DOWN in answer.text, 'type="password"' in answer.text) == (503, True, True)
    with server(answering(b"{}")) as port:
        issuer = f"http://127.0.0.1:{port}"
        oidc._kept[issuer, "failure"] = time.monotonic(), {}
        app = app_with(**provider.settings(oidc_issuer=issuer))
        assert app.test_client().get("/login/oidc").status_code == 503
        oidc._kept[issuer, "failure"] = time.monotonic() - oidc.RETRY, {}
        assert app.test_client().get("/login/oidc").status_code == 502


def test_a_slow_provider_holds_a_thread_for_a_moment_only(
    provider: Provider, with_provider: Flask, monkeypatch: pytest.MonkeyPatch, refused: Callable[[int, str], None]
) -> None:
    """Each of its responses comes in time, but not all of them together."""
    monkeypatch.setattr(oidc, "DEADLINE", 0.8)

    def late(answer: Answer) -> Answer:
        time.sleep(0.5)
        return answer

    provider.changes |= {"/token": late, "/jwks": late, "/me": late}
    started = time.monotonic()
    refused(503, DOWN)
    assert time.monotonic() - started < 5
