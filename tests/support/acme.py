"""Debian's certbot, with pebble as the ACME server that issues its certificates."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.certificates import self_signed
from tests.support.servers import free_port, is_open
from tests.support.targets import wait_until


@contextmanager
def authority(folder: Path, port: int) -> Iterator[dict[str, str]]:
    """Yield an environment for certbot. The server finds all names at this port of this machine."""
    for program in ("certbot", "pebble"):
        if not shutil.which(program):
            pytest.skip(f"{program} is missing: apt-get install {program}")
    for name, content in zip(("certificate", "privateKey"), self_signed("localhost"), strict=True):
        (folder / name).write_bytes(content)
    acme, dns = free_port(), free_port()
    files = {name: str(folder / name) for name in ("certificate", "privateKey")}
    settings = {"listenAddress": f"127.0.0.1:{acme}", "httpPort": port} | files
    (folder / "pebble.json").write_text(json.dumps({"pebble": settings}))
    (folder / "letsencrypt").mkdir()
    (folder / "letsencrypt/cli.ini").write_text(
        f"server = https://127.0.0.1:{acme}/dir\nno-verify-ssl = true\n"
        + "".join(f"{kind}-dir = {folder / kind}\n" for kind in ("config", "work", "logs"))
    )
    names = ["pebble-challtestsrv", "-dns01", f"127.0.0.1:{dns}", "-defaultIPv6", ""]
    unused = [word for option in ("-management", "-http01", "-https01", "-tlsalpn01") for word in (option, "")]
    server = ["pebble", "-config", str(folder / "pebble.json"), "-dnsserver", f"127.0.0.1:{dns}"]
    environment = os.environ | {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0", "XDG_CONFIG_HOME": str(folder)}
    with ExitStack() as stack, (folder / "pebble.log").open("wb") as log:
        for command in ([*names, *unused], server):
            process = stack.enter_context(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            stack.callback(process.terminate)
        wait_until(lambda: is_open(acme) and is_open(dns))
        yield environment
