"""Start the service with its private PostgreSQL, and stop both together.

python -m linkmgr.launch dev    with demonstration data and automatic reload
python -m linkmgr.launch run    as in production
"""

import errno
import logging
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

import psycopg2
from cryptography.fernet import InvalidToken
from gunicorn.systemd import sd_notify

from linkmgr import create_app, demo
from linkmgr.core.database import embedded, folders, migrations
from linkmgr.core.database.statements import database
from linkmgr.core.settings import Settings, port, settings
from linkmgr.core.web import session_store
from linkmgr.repository import domains, public, users

ROOT = Path(__file__).parent.parent
_POLL_SECONDS = 0.2
_BACKLOG = 2048  # that of gunicorn
_START_SECONDS = 60  # until a new gunicorn is given up
_STOP_SECONDS = 35  # longer than gunicorn's graceful_timeout


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _check_workers() -> None:
    """Check WEB_CONCURRENCY, which gunicorn converts to a number as soon as it is imported."""
    workers = os.environ.get("WEB_CONCURRENCY", "1")
    if not re.fullmatch("[1-9][0-9]{0,2}", workers):
        raise SystemExit(f"WEB_CONCURRENCY must be a number of workers from 1 to 999; it is {workers!r}.")


def _address_and_workers() -> tuple[tuple[str, int] | str, int]:
    from gunicorn.config import Config  # noqa: PLC0415 - after the check of WEB_CONCURRENCY
    from gunicorn.util import parse_address  # noqa: PLC0415

    config = Config()
    options = config.parser().parse_args(config.get_cmd_args_from_env())
    address = parse_address(options.bind[0]) if options.bind else ("127.0.0.1", port())
    return address, options.workers or int(os.environ.get("WEB_CONCURRENCY") or os.cpu_count() or 1)


def _listen(mode: str) -> list[socket.socket]:
    """Open a socket for each worker, among which the kernel distributes connections. As long as the
    launcher keeps them, no connection is lost that a worker has not accepted when it stops."""
    address, workers = _address_and_workers()
    if not isinstance(address, tuple):
        return []
    host, number = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server(address, family=family).close()
        return [
            socket.create_server(
                address, family=family, backlog=_BACKLOG, reuse_port=True, dualstack_ipv6=":" in host
            )
            for _ in range(1 if mode == "dev" else workers)
        ]
    except PermissionError:
        raise SystemExit(
            f"Only root may listen on port {number}. Choose another one: PORT=5000 make ..."
        ) from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise SystemExit(
                f"Port {number} is in use. Stop the program that listens there, or choose another: "
                "PORT=5001 make ..."
            ) from None
        raise SystemExit(f"{host} is not an address of this machine.") from None


def _prepare_dev(config: Settings) -> str:
    migrations.upgrade(create=True)
    domains.prepare_own_host()
    keys = demo.seed(with_demo=config.demo)
    links = {f"Sign in as {name}": session_store.new_link(users.find_id(name)) for name in reversed(keys)}
    url = config.base_url
    pages = {"Console": f"{url}/console", "API documentation": f"{url}/api/docs"}
    if demo.DEMO in keys and public.bio(None, demo.BIO):
        pages["Demo bio page"] = f"{url}/{demo.BIO}"
    facts = links | pages | {f"API key of {name}": key for name, key in keys.items()}
    lines = "\n".join(f"  {name + ':':<20}{fact}" for name, fact in facts.items())
    # A command in another shell prints the URL of this port only if it gets the setting.
    command = f"{f'PORT={port()} ' if 'PORT' in os.environ else ''}.venv/bin/flask --app app users login NAME"
    checks = "not verified" if config.domain_check == "off" else "verified"
    return f"""
linkmgr is running at {url}

{lines}

A sign-in link works once, within an hour. For a new one: {command}

Try it:
  curl -H 'Authorization: Bearer {list(keys.values())[-1]}' {url}/api/account

Unlike in production, the code is reloaded when it changes, there is demonstration data,
branded domains are {checks}, and the URL works on this machine only.
Requests are logged to {_access_log(config)}. Press Ctrl-C to stop.
"""


def _prepare_run(config: Settings) -> str:
    if migrations.current_version() == 0:
        _say("Creating the tables in the empty database ...")
        migrations.upgrade(create=True)
    migrations.require_current()
    domains.prepare_own_host()
    # Decrypt a key, so that a wrong secret stops the start instead of the first list of users.
    user_id = users.any_id()
    if user_id is not None:
        users.read(user_id)
    introduction = f"linkmgr is running at {config.base_url}"
    if users.has_administrator():
        return introduction
    return f"""{introduction}
There is no administrator yet. Add one and print the API key:
  .venv/bin/flask --app app users add NAME EMAIL --admin
  .venv/bin/flask --app app users key NAME"""


def _access_log(config: Settings) -> Path:
    return config.folder / "access.log"


def _dev_options(config: Settings) -> list[str]:
    """Return the options of gunicorn for `make dev`. Requests are logged to a file, so that the
    terminal keeps showing the API keys."""
    log = _access_log(config)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    return ["--reload", "--workers", "1", "--graceful-timeout", "3", "--access-logfile", str(log)]


def _notify(state: str) -> None:
    sd_notify(state, logging.getLogger(__name__))  # systemd, if it has started this process


class _Gunicorn(subprocess.Popen[bytes]):
    def __init__(self, options: list[str], sockets: list[socket.socket]) -> None:
        numbers = [listener.fileno() for listener in sockets]
        options = [*options, *(f"--bind=fd://{number}" for number in numbers)]
        parent = os.getpid()
        self._ready, answering = os.pipe()  # gunicorn.conf.py sends a byte when its workers answer
        environment = os.environ | {"READY_FD": str(answering)}
        environment.pop("NOTIFY_SOCKET", None)  # gunicorn says that it is ready before it has workers
        super().__init__(
            [
                sys.executable,
                "-m",
                "gunicorn",
                "--config",
                ROOT / "deploy/gunicorn.conf.py",
                *options,
                "app:app",
            ],
            cwd=ROOT,
            env=environment,
            pass_fds=[answering, *numbers],
            # Only the launcher gets Ctrl-C: a worker that gets it from the terminal and from its
            # master may hang.
            start_new_session=True,
            preexec_fn=lambda: embedded.stop_with_parent(signal.SIGTERM, parent),
        )
        os.close(answering)
        self._deadline = time.monotonic() + _START_SECONDS

    def answers(self) -> bool | None:
        """Return None while it starts, and False once it has failed."""
        if not select.select([self._ready], [], [], 0)[0]:
            if time.monotonic() > self._deadline:
                self.kill()
            return None
        answers = os.read(self._ready, 1) != b""
        os.close(self._ready)
        return answers


class _Service:
    """gunicorn. A reload starts another one beside it, which replaces it when it answers."""

    def __init__(self, options: list[str], sockets: list[socket.socket], introduction: str) -> None:
        self._options, self._sockets, self._introduction = options, sockets, introduction
        self._processes = [_Gunicorn(options, sockets)]  # the newest is the last
        self._serving: _Gunicorn | None = None
        self._must_reload = False

    def check(self) -> int | None:
        """Continue a start or a reload. Return the exit status of a service that has ended."""
        newest = self._processes[-1]
        if newest is not self._serving:
            self._continue_start(newest)
        elif self._must_reload:
            self._must_reload = False
            _notify("RELOADING=1")
            self._processes.append(_Gunicorn(self._options, self._sockets))
        ended = (self._serving or newest).poll()
        self._processes = [process for process in self._processes if process.poll() is None]
        return ended

    def _continue_start(self, newest: _Gunicorn) -> None:
        match newest.answers():
            case True:
                for old in self._processes[:-1]:
                    old.terminate()
                _say("The new version serves." if self._serving else self._introduction)
                self._serving = newest
                _notify("READY=1\nSTATUS=Serving")
                if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
                    signal.signal(signal.SIGHUP, self._reload)
            case False:
                newest.wait()
                if self._serving:
                    _say("The reload failed: the new version does not start. The one before keeps serving.")
                    _notify("READY=1\nSTATUS=The last reload failed. The version before it serves.")

    def _reload(self, _signal: int, _frame: FrameType | None) -> None:
        self._must_reload = True

    def stop(self) -> None:
        end = time.monotonic() + _STOP_SECONDS
        for listener in self._sockets:
            listener.close()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0, end - time.monotonic()))
            process.kill()


def _serve(service: _Service, postgres: embedded.Server | None) -> int:
    try:
        while (status := service.check()) is None:
            time.sleep(_POLL_SECONDS)
            if postgres:
                with suppress(OSError):  # such as out of memory; the next round tries again
                    postgres.ensure()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _notify("STOPPING=1")
        service.stop()
        return 0
    return status


def _stop(_signal: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a shell sends it a second time
    raise KeyboardInterrupt


def main(mode: str) -> int:
    # Without a terminal, SIGHUP requests a reload, which does nothing before gunicorn is ready.
    # gunicorn inherits this.
    # nohup ignores it
    with_terminal = (mode == "dev" or os.isatty(0)) and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
    signal.signal(signal.SIGHUP, _stop if with_terminal else signal.SIG_IGN)
    _check_workers()
    sockets = _listen(mode)
    if mode == "dev":
        os.environ.setdefault("LINKMGR_DOMAIN_CHECK", "off")
        os.environ.setdefault("LINKMGR_SERVE_LOOPBACK", "1")
    signal.signal(signal.SIGTERM, _stop)
    with create_app().app_context():
        config = settings()
        folder = None if config.database_url else config.folder / "postgres"
        if folder:
            _say(f"Starting PostgreSQL in {folders.data_folder(folder)} ...")
        with embedded.running(folder) if folder else nullcontext() as postgres:
            try:
                introduction = _prepare_dev(config) if mode == "dev" else _prepare_run(config)
            except psycopg2.OperationalError as error:
                raise SystemExit(f"The database cannot be used: {str(error).splitlines()[0]}.") from None
            except InvalidToken:
                raise SystemExit(
                    "The API keys were encrypted with another secret. Add it to LINKMGR_SECRET_KEY_FALLBACKS."
                ) from None
            database().close_idle()
            options = _dev_options(config) if mode == "dev" else []
            return _serve(_Service(options, sockets, introduction), postgres)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)
