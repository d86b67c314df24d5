"""Debian's nginx with the configuration in deploy/, and a client that calls the service through it."""

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from werkzeug.datastructures import Headers
from werkzeug.test import EnvironBuilder, TestResponse
from werkzeug.wrappers import Request

from tests.conftest import BASE_URL, ROOT
from tests.support.certificates import self_signed
from tests.support.servers import free_port
from tests.support.targets import wait_until

OWN, BRANDED = "go.example.org", "brand.example.net"
SERVED = {"Host": urlsplit(BASE_URL).netloc}  # the host name that nginx forwards

_MAIN = """
daemon off;
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr;
events {{ worker_connections 1024; }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include linkmgr.conf;
    include {folder}/cdn*.conf;
}}
"""


def certify(folder: Path, name: str) -> None:
    """Create a self-signed certificate in the folder layout of certbot, where nginx looks for it."""
    public, private = self_signed(name)
    lineage, installed = folder / "live" / name, folder / "linkmgr/certificates"
    lineage.mkdir(parents=True, exist_ok=True)
    (lineage / "fullchain.pem").write_bytes(public)
    (lineage / "privkey.pem").write_bytes(private)
    hook_environment = {"RENEWED_LINEAGE": str(lineage), "RENEWED_DOMAINS": name}
    own = {"CERTIFICATES": str(installed), "NGINX_GROUP": str(os.getgid())}
    subprocess.run([ROOT / "deploy/certificate"], env=os.environ | hook_environment | own, check=True)


class Nginx:
    """A running nginx. `ask` sends a request; `open` takes the arguments of a FlaskClient, so a Client accepts it."""

    def __init__(self, folder: Path, http: int, https: int) -> None:
        self.folder, self.http, self.https = folder, http, https

    def answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.https), timeout=1):
            return True
        return False

    def connect(self, name: str | None = OWN) -> socket.socket:
        """Connect over TLS under a name that the certificate must match, or over plain HTTP."""
        plain = socket.create_connection(("127.0.0.1", self.https if name else self.http), timeout=20)
        if name is None:
            return plain
        trusting = ssl.create_default_context(cafile=str(self.folder / f"linkmgr/certificates/{name}.pem"))
        trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # without the root of an authority
        return trusting.wrap_socket(plain, server_hostname=name)

    def ask(
        self,
        path: str,
        name: str = OWN,
        *,
        method: str = "GET",
        tls: bool = True,
        body: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> TestResponse:
        connection = HTTPConnection(name)
        connection.sock = self.connect(name if tls else None)
        with closing(connection):
            connection.request(method, path, body, {"Host": name} | (headers or {}))
            answer = connection.getresponse()
            asked = Request(EnvironBuilder(method=method).get_environ())
            return TestResponse(
                [answer.read()], f"{answer.status} {answer.reason}", Headers(answer.getheaders()), asked
            )

    def open(
        self,
        path: str,
        *,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        data: str | None = None,
        content_type: str = "application/json",
    ) -> TestResponse:
        sent = (headers or {}) | {"Content-Type": content_type} | SERVED
        return self.ask(path, method=method, body=data, headers=sent)


@contextmanager
def running(folder: Path, *services: int, own: str = "") -> Iterator[Nginx]:
    """Run nginx with deploy/nginx, local settings replaced, in front of services on these ports. `own` are further
    locations over HTTPS."""
    if not shutil.which("nginx"):
        pytest.skip("nginx is missing: apt-get install nginx")
    shutil.copytree(ROOT / "deploy/nginx", folder, dirs_exist_ok=True)
    http, https = free_port(), free_port()
    site = folder / "linkmgr/site.conf"
    upstream = "".join(f"server 127.0.0.1:{port} max_fails=3 fail_timeout=5s;\n" for port in services)
    theirs = "server 127.0.0.1:5000 max_fails=3 fail_timeout=5s;"
    changed = site.read_text().replace(theirs, upstream).replace("/var/cache/linkmgr", f"{folder}/cache")
    site.write_text(changed.replace("/var/lib/linkmgr-challenges", f"{folder}/challenges"))
    served = folder / "linkmgr.conf"
    served.write_text(served.read_text().replace("ssl_session_tickets off;", f"ssl_session_tickets off;\n{own}"))
    (folder / "linkmgr/listen_http.conf").write_text(f"listen 127.0.0.1:{http} default_server;")
    (folder / "linkmgr/listen_https.conf").write_text(f"listen 127.0.0.1:{https} ssl http2 default_server;")
    for name in (OWN, BRANDED):
        certify(folder, name)
    user = "user root;" if os.geteuid() == 0 else ""  # workers need access to the folder
    (folder / "nginx.conf").write_text(_MAIN.format(folder=folder, user=user))
    log = folder / "nginx.log"
    with log.open("wb") as output:
        process = subprocess.Popen(["nginx", "-c", folder / "nginx.conf"], stderr=output)
    try:
        made = Nginx(folder, http, https)
        wait_until(lambda: process.poll() is not None or made.answers())
        assert process.poll() is None, log.read_text()
        yield made
    finally:
        process.terminate()
        process.wait(20)
