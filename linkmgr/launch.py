"""Starts the service with all that it needs and stops it without leaving anything behind.

python -m linkmgr.launch dev    with demonstration data and reload
python -m linkmgr.launch run    as in production
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

import psycopg2
from cryptography.fernet import InvalidToken

from linkmgr import create_app, demo
from linkmgr.db import embedded, migrations
from linkmgr.db.statements import database, row
from linkmgr.repository import users
from linkmgr.settings import Settings, port, settings

ROOT = Path(__file__).parent.parent
_DEV_OPTIONS = ["--reload", "--workers", "1", "--graceful-timeout", "3"]
_POLL_SECONDS = 0.2
_STOP_SECONDS = 35  # more than gunicorn gives its workers


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            raise SystemExit(f"Port {port} is open to root only: choose another one: PORT=5000 make ...") from None
        except OSError:
            raise SystemExit(
                f"Port {port} is in use: stop what listens there, or choose another one: PORT=5001 make ..."
            ) from None


def _prepare_dev(configured: Settings) -> Callable[[], None]:
    migrations.upgrade(create=True)
    keys = demo.seed(with_demo=configured.demo == "1")
    url = configured.base_url

    def introduce() -> None:
        _say(f"\nlinkmgr is on {url}\n")
        for name, key in keys.items():
            _say(f"  API key of {name + ':':<7}{key}")
        _say(f"\nTry it:\n  curl -H 'Authorization: Bearer {list(keys.values())[-1]}' {url}/api/account\n")
        _say("Unlike in production: the code is loaded again when it changes, there is demonstration data,")
        checked = "domains are taken at their word" if configured.domain_check == "off" else "domains are checked"
        _say(f"{checked}, and the address is one of this machine only. Ctrl-C stops it.\n")

    return introduce


def _prepare_run(configured: Settings) -> Callable[[], None]:
    if migrations.current_version() == 0:
        _say("Making the tables in the empty database ...")
        migrations.upgrade(create=True)
    migrations.require_current()
    administered = row("SELECT EXISTS (SELECT FROM users WHERE admin) AS found") == {"found": True}
    # A secret that does not fit must be told at the start, and not by the first list of users.
    if any_user := row("SELECT id FROM users LIMIT 1"):
        users.read(any_user["id"])

    def introduce() -> None:
        _say(f"linkmgr is on {configured.base_url}")
        if not administered:
            _say(
                "It has no administrator yet. Make one and print the API key:\n"
                "  .venv/bin/flask --app app users add NAME EMAIL --admin\n"
                "  .venv/bin/flask --app app users key NAME"
            )

    return introduce


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _serve(options: list[str], postgres: embedded.Server | None, introduce: Callable[[], None]) -> int:
    """Runs gunicorn until it ends or a signal comes, and keeps the private server alive meanwhile."""
    parent = os.getpid()
    gunicorn = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "gunicorn", "--config", ROOT / "deploy/gunicorn.conf.py", *options, "app:app"],
        cwd=ROOT,
        # Ctrl-C is for the launcher: a worker that hears of it twice, from the terminal and its master, may hang.
        start_new_session=True,
        preexec_fn=lambda: embedded.stop_with_parent(signal.SIGTERM, parent),  # noqa: PLW1509 - no threads here
    )
    # New code without another master: the workers are replaced, the old ones finish what they have begun.
    signal.signal(signal.SIGHUP, lambda *_: gunicorn.send_signal(signal.SIGHUP))
    introduced = False
    try:
        while gunicorn.poll() is None:
            if not introduced and _listens(port()):
                introduce()
                introduced = True
            time.sleep(_POLL_SECONDS)
            if postgres:
                with suppress(OSError):  # out of memory, or the like: tried again
                    postgres.ensure()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        gunicorn.terminate()
        with suppress(subprocess.TimeoutExpired):
            gunicorn.wait(_STOP_SECONDS)
        gunicorn.kill()
        return 0
    return gunicorn.wait()


def _stop(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def main(mode: str) -> int:
    _check_port(port())
    if mode == "dev":
        os.environ.setdefault("LINKMGR_DOMAIN_CHECK", "off")
        os.environ.setdefault("LINKMGR_SERVE_LOOPBACK", "1")
    signal.signal(signal.SIGTERM, _stop)
    with create_app().app_context():
        configured = settings()
        folder = None if configured.database_url else configured.folder / "postgres"
        if folder:
            _say(f"Starting PostgreSQL in {embedded.data_folder(folder)} ...")
        with embedded.running(folder) if folder else nullcontext() as postgres:
            try:
                introduce = _prepare_dev(configured) if mode == "dev" else _prepare_run(configured)
            except psycopg2.OperationalError as error:
                raise SystemExit(f"The database cannot be used: {str(error).splitlines()[0]}.") from None
            except InvalidToken:
                raise SystemExit(
                    "The API keys were encrypted with another secret: name it in LINKMGR_SECRET_KEY_FALLBACKS."
                ) from None
            database().close_idle()
            return _serve(_DEV_OPTIONS if mode == "dev" else [], postgres, introduce)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)
