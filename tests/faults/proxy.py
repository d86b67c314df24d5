"""A proxy in front of PostgreSQL that drops responses to statements and closes the connection."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREPARE = re.compile(rb"PREPARE (s[0-9a-f]+) AS (.*)", re.DOTALL)
_EXECUTE = re.compile(rb"EXECUTE (s[0-9a-f]+)")


class Proxy:
    """`drops` returns True for the SQL of a message, also of the statement that it executes, whose response is to be
    dropped. `dropped` counts these."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.drops: Callable[[bytes], bool] = lambda _sql: False
        self.dropped = 0

    def serve(self, listener: socket.socket) -> None:
        with suppress(OSError):  # the listener is closed at the end
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._serve_connection, args=(client,), daemon=True).start()

    def _serve_connection(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        mute = threading.Event()
        with client, server, suppress(OSError):
            server.connect(str(self.target))
            threading.Thread(target=self._forward_responses, args=(client, server, mute), daemon=True).start()
            self._forward_statements(client, server, mute)

    def _forward_statements(self, client: socket.socket, server: socket.socket, mute: threading.Event) -> None:
        prepared: dict[bytes, bytes] = {}
        while data := client.recv(65536):
            if match := _PREPARE.search(data):
                prepared[match[1]] = match[2]
            else:
                match = _EXECUTE.search(data)
                if self.drops(data + prepared.get(match[1], b"") if match else data):
                    self.dropped += 1
                    mute.set()
            server.sendall(data)

    def _forward_responses(self, client: socket.socket, server: socket.socket, mute: threading.Event) -> None:
        with suppress(OSError):
            while (data := server.recv(65536)) and not mute.is_set():
                client.sendall(data)
        for side in (client, server):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)


@contextmanager
def between(folder: Path, target: Path) -> Iterator[Proxy]:
    """Run a proxy that listens on a socket in the folder, with the same file name as the target."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / target.name))
        listener.listen(100)
        proxy = Proxy(target)
        threading.Thread(target=proxy.serve, args=(listener,), daemon=True).start()
        try:
            yield proxy
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
