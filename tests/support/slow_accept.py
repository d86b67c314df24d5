"""The service on a machine that is slow to continue after it has accepted a connection, for tests."""

import time
from typing import Any

from gunicorn.sock import TCPSocket

from app import app


def _accept(listener: Any) -> Any:
    accepted = listener.sock.accept()
    time.sleep(1)  # longer than a worker takes to stop
    return accepted


TCPSocket.accept = _accept

__all__ = ("app",)
