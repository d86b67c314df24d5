"""The configuration files in deploy/: other programs accept them, and what they name exists."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from flask import Flask

from linkmgr.core.settings import VARIABLES
from tests.conftest import ROOT
from tests.support.receivers import Receiver

DEPLOY = ROOT / "deploy"
UNITS = sorted(path.name for path in (DEPLOY / "systemd").glob("*.*") if path.is_file())
SCRIPTS = sorted(path for path in DEPLOY.iterdir() if path.is_file() and path.read_text().startswith("#!/bin/sh"))
NO_TEXTS = {"certificates", "__pycache__"}
TEXTS = sorted(path for path in DEPLOY.rglob("*") if path.is_file() and NO_TEXTS.isdisjoint(path.parts))

systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd-analyze is missing: apt-get install systemd"
)


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units, with the paths of a service installed here."""
    folder = tmp_path / "units"
    shutil.copytree(DEPLOY / "systemd", folder, symlinks=True)
    for unit in folder.glob("*.service"):
        here = unit.read_text().replace("/opt/linkmgr/.venv/bin", _escaped(Path(sys.executable).parent))
        unit.write_text(here.replace("/opt/linkmgr", _escaped(ROOT)))
    return folder


def _escaped(path: Path) -> str:
    """Return a path escaped as a word of a command line in a unit."""
    return str(path).replace(" ", r"\x20")


@systemd
@pytest.mark.parametrize("unit", UNITS)
def test_systemd_accepts_the_unit(units: Path, unit: str) -> None:
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", units / unit], capture_output=True, text=True, check=False
    )
    # It also reads other installed units and may complain about them.
    assert [line for line in verified.stderr.splitlines() if "linkmgr" in line] == []


@systemd
@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.endswith(".service")])
def test_the_service_is_sandboxed(units: Path, unit: str) -> None:
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=25", units / unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr


def test_systemd_starts_the_service_again_however_often_it_fails() -> None:
    unit = (DEPLOY / "systemd/linkmgr.service").read_text().partition("[Service]")[0]
    assert "\nStartLimitIntervalSec=0\n" in unit, "after five failures in ten seconds, a later database is not found"


def test_a_start_a_dump_or_a_purge_that_hangs_fails_after_a_time() -> None:
    """Otherwise it is never reported, and dumps and purges wait for a start that hangs."""
    for unit, bound in (("linkmgr", "5min"), ("linkmgr-backup", "12h"), ("linkmgr-purge", "12h")):
        text = (DEPLOY / f"systemd/{unit}.service").read_text()
        assert re.findall("^TimeoutStartSec=(.*)$", text, re.MULTILINE) == [bound]


def test_commands_name_the_instance_of_postgresql_that_must_have_stopped() -> None:
    """`postgresql` of Debian ends before its instances do."""
    commands = re.findall("^    (.*systemctl .*)$", (DEPLOY / "README.md").read_text(), re.MULTILINE)
    stops = [line for line in commands if re.search(r"\b(stop|restart|disable)\b.* postgresql\b", line)]
    assert len(stops) == 3
    assert all("postgresql@15-main" in line for line in stops)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("a checkout")
    for name in ("linkmgr", "deploy"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns(*NO_TEXTS))
    for name in ("app.py", "schema.sql"):
        shutil.copy2(ROOT / name, copy)
    return copy


@pytest.mark.parametrize("broken", ["", "app.py", "deploy/gunicorn.conf.py", "deploy/worker.py", "deploy/queues.py"])
def test_a_reload_fails_before_it_begins_if_a_file_is_broken(app: Flask, dsn: str, checkout: Path, broken: str) -> None:
    unit = (DEPLOY / "systemd/linkmgr.service").read_text()
    *checks, signal = re.findall("^ExecReload=(.*)$", unit, re.MULTILINE)
    assert signal == "/bin/kill -HUP $MAINPID"
    programs = {"/opt/linkmgr/.venv/bin/flask": [sys.executable, "-m", "flask"]}
    programs |= {"/opt/linkmgr/.venv/bin/python": [sys.executable]}
    settings = {"LINKMGR_DATABASE_URL": dsn, "LINKMGR_DATA_DIR": str(checkout / "data")}
    kept = (checkout / broken).read_text() if broken else ""
    try:
        if broken:
            (checkout / broken).write_text(f"{kept}import nothing")
        codes = []
        for check in checks:
            program, *options = check.split()
            command = [*programs[program], *options]
            run = subprocess.run(command, cwd=checkout, env=os.environ | settings, capture_output=True, check=False)
            codes.append(run.returncode)
    finally:
        if broken:
            (checkout / broken).write_text(kept)
    assert any(codes) is bool(broken)


def test_fail2ban_starts_with_the_jails_of_debian_which_has_no_log_files(tmp_path: Path) -> None:
    if not shutil.which("fail2ban-client"):
        pytest.skip("fail2ban is missing: apt-get install fail2ban")
    shutil.copytree("/etc/fail2ban", tmp_path / "fail2ban")
    shutil.copy2(DEPLOY / "fail2ban/filter.conf", tmp_path / "fail2ban/filter.d/linkmgr.conf")
    shutil.copy2(DEPLOY / "fail2ban/jail.conf", tmp_path / "fail2ban/jail.d/linkmgr.conf")
    command = ["fail2ban-client", "--test", "-c", str(tmp_path / "fail2ban")]
    tested = subprocess.run(command, capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_shells_read_every_character_of_a_quoted_setting(tmp_path: Path) -> None:
    sample = (DEPLOY / "systemd/environment").read_text()
    values = dict(re.findall("^([A-Z_]+)='(.*)'$", sample, re.MULTILINE))
    assert len(values) == len([line for line in sample.splitlines() if not line.startswith("#")])
    given = values | {"LINKMGR_DATABASE_URL": "postgresql://u:$5`a b@h/db?sslmode=require&connect_timeout=3"}
    (tmp_path / "environment").write_text("".join(f"{name}='{value}'\n" for name, value in given.items()))
    [read] = re.findall(r"^\. .*$", (DEPLOY / "flask").read_text(), re.MULTILINE)
    command = read.replace("/etc/linkmgr", str(tmp_path)) + '\nexec "$0" -c "import os; print(dict(os.environ))"'
    printed = subprocess.run(["sh", "-euac", command, sys.executable], capture_output=True, text=True, check=True)
    assert given.items() <= ast.literal_eval(printed.stdout).items()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.name))
def test_a_script_is_executable_and_prints_its_usage(script: Path) -> None:
    assert script.stat().st_mode & 0o111
    assert f"# deploy/{script.name} " in script.read_text()
    assert subprocess.run(["sh", "-n", script], check=False).returncode == 0


def test_commands_on_the_database_and_dumps_read_their_own_settings_last(tmp_path: Path) -> None:
    for name, value in (("environment", "pooler"), ("database", "postgresql")):
        (tmp_path / name).write_text(f"FROM={value}")
    script = (DEPLOY / "flask").read_text().replace("/etc/linkmgr", str(tmp_path)).partition("\ncd ")[
        0
    ] + "\necho $FROM"
    read = [subprocess.check_output(["sh", "-c", script, "flask", group], text=True) for group in ("users", "database")]
    assert read == ["pooler\n", "postgresql\n"]
    drop_ins = [path for kind in ("", "backup") for path in (DEPLOY / f"systemd/linkmgr-{kind}.service.d").iterdir()]
    inside = "".join(path.read_text() for path in sorted(drop_ins, key=lambda path: path.name))
    assert re.findall("^EnvironmentFile=(.+)$", inside, re.M) == ["/etc/linkmgr/environment", "-/etc/linkmgr/database"]


def test_a_failed_dump_or_purge_is_reported(receiver: Receiver) -> None:
    for unit in ("backup", "purge"):
        assert "\nOnFailure=linkmgr-alert@%n.service\n" in (DEPLOY / f"systemd/linkmgr-{unit}.service").read_text()
    subprocess.run(
        [DEPLOY / "alert", "linkmgr-backup.service"], check=True, env=os.environ | {"ALERT_URL": receiver.url}
    )
    [alert] = receiver.received
    assert alert.body.startswith(b"linkmgr-backup.service failed on ")


def test_every_setting_that_is_named_exists() -> None:
    for path in TEXTS:
        assert set(re.findall("LINKMGR_([A-Z_]*[A-Z])", path.read_text())) <= VARIABLES, path


def test_the_containers_purge_every_day(app: Flask, dsn: str, tmp_path: Path) -> None:
    [command] = re.findall(r"command: \[sh, -c, (.+)\]", (DEPLOY / "compose.yaml").read_text())
    (tmp_path / "sleep").write_text("#!/bin/sh\necho slept $1\n")
    (tmp_path / "sleep").chmod(0o755)

    def run(database_url: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", command.replace(".venv/bin/flask", f"'{sys.executable}' -m flask")],
            cwd=ROOT,
            env=os.environ
            | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
            | {"LINKMGR_DATABASE_URL": database_url, "LINKMGR_DATA_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    done = run(dsn).stdout
    assert re.fullmatch(r"0 visits deleted, \d+ monthly partitions dropped\.\nslept 86400\n", done), done
    failed = run("postgresql://127.0.0.1:1/none")
    assert failed.returncode != 0, "the container is not restarted at once"
    assert failed.stdout == ""


def test_every_source_of_the_container_image_exists() -> None:
    copied = re.findall(r"^COPY ([^-].*) \S+$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    sources = [source for line in copied for source in line.split()]
    kept = re.findall("^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert sorted(sources) == sorted(kept)
    assert all((ROOT / path).exists() for path in kept)


def test_containers_are_bounded_and_isolated_and_their_secrets_are_files() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    readme = (DEPLOY / "README.md").read_text()
    for name, service in compose["services"].items():
        assert service["pids_limit"] <= 512, name
        assert service["mem_limit"], name
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}, name
        assert name == "purge" or service["healthcheck"]["test"], name
        assert "network_mode" not in service, name
        assert service["image"] == "linkmgr" or re.search(r":\d+\.\d+.*@sha256:[0-9a-f]{64}$", service["image"]), name
        assert service.keys().isdisjoint({"ports", "privileged"}) or name == "nginx"
        assert not re.search("PASSWORD[^_]|://.*:.*@", str(service.get("environment"))), name
        for source in re.findall(r"'\./(\S+?):", str(service.get("volumes"))):
            assert (DEPLOY / source).exists() or f">deploy/{source}\n" in readme, source
    assert all(f">deploy/{secret['file']}\n" in readme for secret in compose["secrets"].values())
    address = compose["services"]["service"]["networks"]["front"]["ipv4_address"]
    assert f"s/127.0.0.1:5000/{address}:5000/" in readme
    assert compose["services"]["nginx"]["networks"] == ["front"]
    assert compose["networks"]["back"] == {"internal": True}


def test_the_first_administrator_is_added_when_the_tables_exist() -> None:
    commands = [line.strip() for line in (DEPLOY / "README.md").read_text().splitlines()]
    created, added = (commands.index(f"deploy/flask {command}") for command in (
        "database create", 'users add admin "$email" --admin'))  # fmt: skip
    assert created < added
