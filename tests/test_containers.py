"""The containers of deploy/compose.yaml, built and run by podman on images that are made of Debian's packages."""

import json
import os
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.nginx import OWN, certify
from tests.support.servers import free_port
from tests.support.targets import wait_until

pytestmark = pytest.mark.containers
PROGRAMS = "podman", "runc", "debootstrap", "curl"
PROJECT, BASE = "linkmgr-check", "localhost/linkmgr-check-base"
# Debian's slim images, of which the image of the service is made, have none of it.
UNNEEDED = (
    "var/cache/apt/*",
    "var/lib/apt/lists/*",
    *(f"usr/share/{name}/*" for name in ("doc", "info", "locale", "man/*")),
)
SERVICES = {"postgresql": (1 << 30, 256), "redis": (128 << 20, 64), "service": (1 << 30, 512), "nginx": (256 << 20, 64)}
HOST, CLIENT = "198.51.100.1", "198.51.100.10"


def podman(*arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["podman", *arguments], capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stderr[-2000:]
    return done


def build(file: Path, name: str, *options: str | Path) -> None:
    arguments = "--network=host", f"--build-arg=BASE={BASE}", f"--file={file}", f"--tag=localhost/{name}"
    podman("build", *arguments, *options, ROOT)


def make_base(folder: Path) -> None:
    """Make an image of Debian's base packages, and skip the tests if podman cannot run it."""
    if podman("image", "exists", BASE, check=False).returncode:
        subprocess.run(["debootstrap", "--variant=minbase", "bookworm", folder], check=True, stdout=subprocess.DEVNULL)
        unneeded = [f"--exclude=./{path}" for path in UNNEEDED]
        subprocess.run(["tar", "-C", folder, *unneeded, "-cf", folder.with_suffix(".tar"), "."], check=True)
        podman("import", folder.with_suffix(".tar"), BASE)
    if (tried := podman("run", "--rm", "--memory=64m", BASE, "true", check=False)).returncode:
        pytest.skip(f"podman runs no container here: {tried.stderr}")


@pytest.fixture(scope="module", autouse=True)
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    if missing := [program for program in PROGRAMS if not shutil.which(program)]:
        pytest.skip(f"{' '.join(missing)}: apt-get install the packages that CONTRIBUTING names")
    if os.geteuid() != 0:
        pytest.skip("only root can make the base image and a network")
    folder = tmp_path_factory.mktemp("images")
    with pytest.MonkeyPatch.context() as environment, ExitStack() as stack:
        limits = (
            '["nofile=4096:4096", "nproc=4096:4096"]'  # podman's are higher than a container in a container may have
        )
        (folder / "containers.conf").write_text(f'[containers]\ndefault_ulimits={limits}\n[engine]\nruntime="runc"\n')
        environment.setenv("CONTAINERS_CONF", str(folder / "containers.conf"))
        make_base(folder / "base")
        (folder / "pip.conf").write_text("[global]\ncert = /etc/authorities.crt\n")  # those that this machine trusts
        authorities = f"--volume={ssl.get_default_verify_paths().cafile}:/etc/authorities.crt:ro"
        build(ROOT / "deploy/Containerfile", "linkmgr", authorities, f"--volume={folder}/pip.conf:/etc/pip.conf:ro")
        for name in ("nginx", "postgres", "redis"):
            build(ROOT / "tests/containers/Containerfile", f"linkmgr-check-{name}", f"--target={name}")
        stack.callback(podman, "image", "prune", "--force")
        yield


class Deployment:
    def __init__(self, folder: Path) -> None:
        self.folder, self.http, self.https = folder, free_port(), free_port()
        self.secrets = folder / "deploy/containers"
        (folder / "deploy").mkdir()
        shutil.copytree(ROOT / "deploy/nginx", folder / "deploy/nginx")
        compose = (ROOT / "deploy/compose.yaml").read_text()
        compose = re.sub("image: (nginx|postgres|redis):.*", r"image: localhost/linkmgr-check-\1", compose)
        compose = compose.replace("80:80", f"{self.http}:80").replace("443:443", f"{self.https}:443")
        compose = compose.replace("    WEB_", "    LINKMGR_LOG_ADDRESSES: full\n    WEB_")
        (folder / "deploy/compose.yaml").write_text(compose)
        certify(folder / "deploy/nginx", OWN)
        for path in (certificates := folder / "deploy/nginx/linkmgr/certificates", *certificates.iterdir()):
            path.chmod(0o755)  # the group of nginx has another number in the container

    def write_settings(self) -> None:
        """Run the commands of the page between the name and the start."""
        page = (ROOT / "deploy/README.md").read_text().partition("## Containers\n")[2]
        commands = re.findall("^    (.+)$", page.partition("up --detach")[0], re.M)[:-1]
        subprocess.run(["sh", "-euc", "\n".join(commands)], cwd=self.folder, check=True)

    def compose(self, *arguments: str) -> None:
        command = ROOT / ".venv/containers/bin/podman-compose", "-p", PROJECT, "-f", self.folder / "deploy/compose.yaml"
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]

    def is_healthy(self, service: str) -> bool:
        return podman("healthcheck", "run", f"{PROJECT}_{service}_1", check=False).returncode == 0

    def status(self) -> int:
        context = ssl._create_unverified_context()  # noqa: S323
        with closing(HTTPSConnection("127.0.0.1", self.https, timeout=30, context=context)) as connection:
            connection.request("GET", "/healthz", headers={"Host": OWN})
            return connection.getresponse().status


def remove_all() -> None:
    """Remove the networks and volumes with their containers."""
    podman("network", "rm", "--force", *(f"{PROJECT}_{name}" for name in ("front", "back")), check=False)
    podman("volume", "rm", "--force", *(f"{PROJECT}_{name}" for name in ("data", "database", "pictures")), check=False)


@pytest.fixture(scope="module")
def deployment(images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    deployment = Deployment(tmp_path_factory.mktemp("deployment"))
    deployment.write_settings()
    remove_all()
    try:
        for service in SERVICES:  # podman 4 does not wait for a healthy dependency
            deployment.compose("up", "--detach", "--no-build", "--no-deps", service)
            wait_until(partial(deployment.is_healthy, service), 120)
        deployment.compose("up", "--detach", "--no-build", "--no-deps", "purge")
        yield deployment
    finally:
        remove_all()


def test_the_image_is_small_and_has_no_database_server() -> None:
    [image] = json.loads(podman("inspect", "localhost/linkmgr").stdout)
    assert image["Size"] < 250e6
    found = podman("run", "--rm", "localhost/linkmgr", "find", ".venv", "-name", "postgres", "-o", "-name", "pg_dump")
    assert [Path(line).name for line in found.stdout.splitlines()] == ["pg_dump"]


def test_containers_have_their_limits_and_no_secret_in_their_settings(deployment: Deployment) -> None:
    password = (deployment.secrets / "database_password").read_text().strip()
    for service, limits in SERVICES.items():
        [container] = json.loads(podman("inspect", f"{PROJECT}_{service}_1").stdout)
        assert (container["HostConfig"]["Memory"], container["HostConfig"]["PidsLimit"]) == limits
        assert password not in str(container)


def test_the_address_and_the_scheme_of_a_client_arrive(deployment: Deployment) -> None:
    with ExitStack() as stack:
        holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        stack.callback(holder.wait)
        stack.callback(holder.kill)
        own = Path("/proc/self/ns/net").readlink()
        wait_until(lambda: Path(f"/proc/{holder.pid}/ns/net").readlink() != own)
        inside = ["nsenter", f"--target={holder.pid}", "--net"]
        for command in (
            ["ip", "link", "add", "linkmgr-check", "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid)],
            ["ip", "address", "add", f"{HOST}/24", "dev", "linkmgr-check"],
            ["ip", "link", "set", "linkmgr-check", "up"],
            [*inside, "ip", "address", "add", f"{CLIENT}/24", "dev", "eth0"],
            [*inside, "ip", "link", "set", "eth0", "up"],
        ):
            subprocess.run(command, check=True)
        url = f"https://{OWN}:{deployment.https}/login"
        forged = ["--header", "X-Forwarded-For: 203.0.113.9", "--header", f"Host: {OWN}"]
        ask = ["curl", "--silent", "--insecure", "--include", "--resolve", f"{OWN}:{deployment.https}:{HOST}", url]
        answer = subprocess.run([*inside, *ask, *forged], capture_output=True, text=True, check=True).stdout
    assert re.search("^HTTP/2 200", answer)
    assert "\nstrict-transport-security: " in answer, "the service sees HTTPS"
    line = next(line for line in podman("logs", f"{PROJECT}_service_1").stdout.splitlines() if '"/login"' in line)
    assert json.loads(line)["address"] == CLIENT


def test_commands_run_and_a_dump_is_made(deployment: Deployment) -> None:
    command = "exec", f"{PROJECT}_service_1"
    podman(*command, ".venv/bin/flask", "--app", "app", "users", "add", "admin", "admin@example.org", "--admin")
    assert "The database has been dumped" in podman(*command, "deploy/backup", "/var/lib/linkmgr/backups").stdout
    wait_until(lambda: "visits deleted" in podman("logs", f"{PROJECT}_purge_1").stdout, 60)


def test_the_ports_stay_open_while_the_service_restarts(deployment: Deployment) -> None:
    with subprocess.Popen(["podman", "restart", f"{PROJECT}_service_1"], stdout=subprocess.DEVNULL) as restart:
        statuses = [deployment.status()]
        while restart.poll() is None or statuses[-1] != 200:
            time.sleep(0.05)
            statuses.append(deployment.status())
    assert set(statuses) == {200, 503}
