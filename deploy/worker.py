"""A gunicorn worker that slow clients cannot block.

gunicorn's threads read requests and write responses with blocking calls, so a few slow clients occupy all of them.
In this worker the event loop reads each request, and a thread gets it once it is complete. The event loop also sends
the part of a response that the kernel did not accept at once.
"""

import errno
import resource
import runpy
import socket
import struct
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any

import gunicorn.util
from gunicorn.http.errors import ParseException
from gunicorn.workers.gthread import TConn, ThreadWorker

SECONDS = 10  # timeout of a request from its first byte, and of the first byte of a new connection
_SEND_SECONDS = 60  # timeout of a client that reads a response
_MAX_UNSENT = 8 << 20  # bytes of a response to buffer, more than the longest list; beyond that the thread waits
_MAX_BUFFERED = 32 << 20  # bytes of all responses of a worker to buffer; beyond that a slow client is disconnected
_LINGER_SECONDS = 2  # to discard the rest of a refused request
_CHECK_SECONDS = 0.5  # between two checks of the deadlines
_OVERLAP_SECONDS = 0.3  # longer than a new worker takes to listen
_BLOCK = 16 << 10
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# Not imported, because gunicorn's master would keep the old code on reload.
_Incoming = runpy.run_path(str(Path(__file__).with_name("framing.py")))["Incoming"]


class _Socket(socket.socket):
    """A socket whose sendall() does not wait for the client."""

    _buffered = 0  # bytes of all sockets
    _lock = threading.Lock()

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.unsent = bytearray()

    def sendall(self, data: Any, _flags: int = 0) -> None:
        if not self.unsent:
            sent = self._send_now(data)
            if sent == len(data):
                return
            data = memoryview(data)[sent:]
        if not self._reserve(len(data)):
            raise ConnectionResetError(errno.ECONNRESET, "too many clients do not read their responses")
        self.unsent += data
        if len(self.unsent) > _MAX_UNSENT:
            self._wait()

    def flush(self) -> bool:
        """Send as much as the kernel accepts. Return True when everything is sent."""
        self._remove(self._send_now(self.unsent))
        return not self.unsent

    def discard(self) -> None:
        self._remove(len(self.unsent))

    def _reserve(self, size: int) -> bool:
        with _Socket._lock:
            if _Socket._buffered + size > _MAX_BUFFERED:
                return False
            _Socket._buffered += size
            return True

    def _remove(self, size: int) -> None:
        del self.unsent[:size]
        with _Socket._lock:
            _Socket._buffered -= size

    def _send_now(self, data: Any) -> int:
        try:
            return self.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0

    def _wait(self) -> None:
        self.settimeout(SECONDS)
        try:
            super().sendall(self.unsent)
        except TimeoutError:
            raise ConnectionResetError(errno.ECONNRESET, "the client does not read the response") from None
        finally:
            self.discard()
            self.setblocking(True)


class _Connection(TConn):  # type: ignore[misc]
    incoming: Any

    def close(self, graceful: bool = False) -> None:  # gunicorn would block the event loop for 2 s
        self.sock.discard()
        super().close()


class Worker(ThreadWorker):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadlines: dict[_Connection, float] = {}  # of the connections that the event loop reads or writes
        self._next_check = 0.0

    def init_process(self) -> None:
        _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))  # 1024 may be too few
        super().init_process()

    def handle_quit(self, sig: int, frame: Any) -> None:
        """Exit. gunicorn would shut down the thread pool in the signal handler first. If the signal interrupts the
        submission of a request, that waits for a lock which the submission holds."""
        super(ThreadWorker, self).handle_quit(sig, frame)

    def accept(self, listener: Any) -> bool:
        """Accept a connection. Return False if there is none."""
        try:
            connection, client = listener.accept()
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                raise
            return False
        sock = _Socket(connection.family, connection.type, connection.proto, connection.detach())
        # A second line of defense: limits a blocking read in a thread.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", SECONDS, 0))
        self.nr_conns += 1
        if self.nr_conns >= self.worker_connections:
            self._make_room()
        conn = _Connection(self.cfg, sock, client, listener.getsockname())
        conn.init()
        self.enqueue_req(conn)
        return True

    def _make_room(self) -> None:
        """Close the connection that has been idle, or has been sending its request, for longest."""
        if self.keepalived_conns:
            self.keepalived_conns[0].timeout = 0  # gunicorn closes it after these events
        elif conn := next((conn for conn in self._deadlines if not conn.sock.unsent), None):
            # Not closed here: an event of this connection may still be waiting in the current round.
            self._deadlines[conn] = self._next_check = 0

    def enqueue_req(self, conn: _Connection) -> None:
        """Read a request. gunicorn calls this for a kept-alive connection that is readable or has buffered bytes."""
        conn.incoming = _Incoming(conn.parser.unreader.take_buffered())
        if conn.incoming.data and conn.incoming.is_complete():
            self._dispatch(conn)
            return
        self._receive(conn, registered=False)

    def _receive(self, conn: _Connection, _socket: Any = None, *, registered: bool = True) -> None:
        incoming = conn.incoming
        try:
            received = conn.sock.recv(_BLOCK, socket.MSG_DONTWAIT)
        except BlockingIOError:
            received = None
        except OSError:
            received = b""
        starts = not (registered and incoming.data)
        if received:
            incoming.data += received
        if received and incoming.is_complete():
            self._unregister(conn, registered=registered)
            self._dispatch(conn)
        elif received == b"":
            self._unregister(conn, registered=registered)
            if incoming.data:
                self._refuse(conn, 400, "Bad Request")
            self._close(conn)
        elif excess := incoming.excess():
            self._unregister(conn, registered=registered)
            self._refuse(conn, *excess)
            self._linger(conn)
        else:
            if incoming.expects_continue:
                incoming.expects_continue = False
                with suppress(OSError):  # the next read detects that the client has disconnected
                    conn.sock.sendall(_CONTINUE)
            if starts:
                self._deadlines[conn] = time.monotonic() + SECONDS
            if not registered:
                self.poller.register(conn.sock, EVENT_READ, partial(self._receive, conn))

    def _dispatch(self, conn: _Connection) -> None:
        conn.parser.unreader.unread(bytes(conn.incoming.data))
        conn.incoming.data.clear()
        super().enqueue_req(conn)

    def handle_request(self, req: Any, conn: _Connection) -> Any:
        if conn.incoming.partial:
            req.force_close()
        keep_alive = super().handle_request(req, conn)
        # The rest of a body that the application did not read. gunicorn discards 64 KiB, then it closes the connection
        # although the response did not say so, and a proxy's next request on it fails.
        try:
            while keep_alive and req.body.read(_BLOCK):
                pass
        except ParseException:  # gunicorn would send a second response
            return False
        return keep_alive

    def finish_request(self, conn: _Connection, fs: Any) -> None:
        """Send the rest of a response. gunicorn calls this in the event loop when a thread is done."""
        if conn.sock.unsent and conn.sock.fileno() >= 0:
            self._deadlines[conn] = time.monotonic() + _SEND_SECONDS
            self.poller.register(conn.sock, EVENT_WRITE, partial(self._send, conn, fs))
        elif conn.incoming.partial:
            self._linger(conn)
        else:
            super().finish_request(conn, fs)

    def _send(self, conn: _Connection, fs: Any, _socket: Any) -> None:
        try:
            sent = conn.sock.flush()
        except OSError:
            self._unregister(conn)
            self._close(conn)
            return
        if sent:
            self._unregister(conn)
            self.finish_request(conn, fs)

    def _linger(self, conn: _Connection) -> None:
        """Close the connection once the client has stopped sending. Closing earlier would discard the response."""
        try:
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(conn)
            return
        conn.incoming = _Incoming(b"")
        self._deadlines[conn] = time.monotonic() + _LINGER_SECONDS
        self.poller.register(conn.sock, EVENT_READ, partial(self._discard, conn))

    def _discard(self, conn: _Connection, _socket: Any) -> None:
        try:
            received = conn.sock.recv(_BLOCK, socket.MSG_DONTWAIT)
        except OSError:
            received = b""
        if not received:
            self._unregister(conn)
            self._close(conn)

    def murder_pending(self) -> None:
        """Close connections that have exceeded their deadline. gunicorn calls this after each round of events."""
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + _CHECK_SECONDS
        for conn in [conn for conn, deadline in self._deadlines.items() if deadline <= now]:
            self._unregister(conn)
            if conn.incoming.data and not conn.sock.unsent:
                self._refuse(conn, 408, "Request Timeout")
            self._close(conn)
        if self.nr_conns >= self.worker_connections:
            # The connection that was to make room has sent its request meanwhile. New ones are not accepted.
            self._make_room()

    def _refuse(self, conn: _Connection, status: int, reason: str) -> None:
        with suppress(OSError):  # the client has disconnected
            gunicorn.util.write_error(conn.sock, status, reason, "")

    def _unregister(self, conn: _Connection, *, registered: bool = True) -> None:
        if registered:
            del self._deadlines[conn]
            self.poller.unregister(conn.sock)

    def _close(self, conn: _Connection) -> None:
        self.nr_conns -= 1
        conn.close()

    def set_accept_enabled(self, enabled: bool) -> None:
        """Accept the waiting connections before a stopping worker closes its socket.

        With `reuse_port` each worker has its own socket, and connections arrive there as long as it is open. gunicorn
        would leave it open and drop them.
        """
        if self.alive or enabled:
            super().set_accept_enabled(enabled)
            return
        end = time.monotonic() + _OVERLAP_SECONDS
        while (remaining := end - time.monotonic()) > 0:
            self.wait_for_and_dispatch_events(timeout=remaining)
        super().set_accept_enabled(False)
        for listener in self.sockets:
            while self.accept(listener):
                pass
            listener.close()
