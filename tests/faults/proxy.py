"""Between the service and PostgreSQL: swallows the answer to statements that were executed, and hangs up."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREPARE = re.compile(rb"PREPARE (s[0-9a-f]+) AS (.*)", re.DOTALL)
_EXECUTE = re.compile(rb"EXECUTE (s[0-9a-f]+)")


class Proxy:
    """`swallows` tells of a statement's text whether its answer shall be lost."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.swallows: Callable[[bytes], bool] = lambda _statement: False

    def serve(self, listener: socket.socket) -> None:
        with suppress(OSError):  # the listener is closed at the end
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._connected, args=(client,), daemon=True).start()

    def _connected(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        mute = threading.Event()
        with client, server, suppress(OSError):
            server.connect(str(self.target))
            threading.Thread(target=self._answers, args=(client, server, mute), daemon=True).start()
            self._statements(client, server, mute)

    def _statements(self, client: socket.socket, server: socket.socket, mute: threading.Event) -> None:
        prepared: dict[bytes, bytes] = {}
        while sent := client.recv(65536):
            if made := _PREPARE.search(sent):
                prepared[made[1]] = made[2]
            elif (run := _EXECUTE.search(sent)) and self.swallows(prepared.get(run[1], b"")):
                mute.set()
            server.sendall(sent)

    def _answers(self, client: socket.socket, server: socket.socket, mute: threading.Event) -> None:
        with suppress(OSError):
            while (answer := server.recv(65536)) and not mute.is_set():
                client.sendall(answer)
        for side in (client, server):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)


@contextmanager
def between(folder: Path, target: Path) -> Iterator[Proxy]:
    """A proxy that listens in the folder under the name that the target has in its own."""
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
