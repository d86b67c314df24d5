import atexit
import random
import threading
from contextlib import suppress
from typing import ClassVar

import psycopg2
from flask import Flask

POLL_SECONDS = 1
_STOP_SECONDS = _RETRY_SECONDS = 5
_JITTER = random.SystemRandom()  # workers are forked with the same state of any other


class Background:
    """A thread that works every second until the process stops. A failure is logged, and the work
    is tried again."""

    name: ClassVar[str]  # of what it does, in log messages
    pause: float | None = None  # seconds between two turns, if not POLL_SECONDS

    def __init__(self, app: Flask) -> None:
        self._app = app
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._starting = threading.Lock()

    def start(self) -> None:
        with self._starting:
            if self._thread.ident is None:
                self._thread.start()
                atexit.register(self.stop)

    def stop(self) -> None:
        """Wait until what has begun is finished, so that another process can continue."""
        self.stopping.set()
        self._thread.join(_STOP_SECONDS)

    def work(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        """Release what other processes can take over."""

    def _run(self) -> None:
        while not self.stopping.wait((self.pause or POLL_SECONDS) * _JITTER.uniform(0.8, 1.2)):
            with self._app.app_context():
                try:
                    self.work()
                except psycopg2.Error as error:
                    error_name = type(error).__name__
                    self._app.logger.warning(
                        "database unavailable, %s will be retried: %s", self.name, error_name
                    )
                    self.stopping.wait(_RETRY_SECONDS)
                except Exception as error:  # a bug must not end the thread, which nothing restarts
                    self._app.logger.error("%s failed and will be retried", self.name, exc_info=error)
        with self._app.app_context(), suppress(psycopg2.Error):
            self.end()
