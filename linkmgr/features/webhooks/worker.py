"""The thread of each serving process that moves events from the outbox and delivers them to
webhooks."""

import random
import threading
from time import monotonic

import orjson
import psycopg2
from cryptography.fernet import InvalidToken
from flask import Flask

from linkmgr.core import keys, metrics
from linkmgr.core.database.background import Background
from linkmgr.core.database.statements import Row
from linkmgr.core.fields.times import iso
from linkmgr.features.webhooks import deliveries, events, outbox
from linkmgr.features.webhooks.sender import Message, Response, Sender

# Seconds until the second attempt, the third and so on: the schedule of the Standard Webhooks
# specification.
SCHEDULE = (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
MAX_TRANSFERS = 100
MAX_PER_USER = MAX_PER_WEBHOOK = 8
EXPIRY_SECONDS = 30
MAX_EXPIRED = 5000  # links, once per poll
_WAIT_SECONDS = 0.2
_GONE = 410
_UNREADABLE = "The secret of the webhook cannot be decrypted. Replace it."


class Dispatcher:
    """Moves and delivers events. Use it in one thread."""

    def __init__(self) -> None:
        self._sender = Sender()

    def run(self, stopping: threading.Event) -> None:
        """Move and deliver events until none is left. When the process stops, finish what has been
        sent."""
        while not stopping.is_set() or self._sender.deliveries:
            if not stopping.is_set():
                has_moved, has_claimed = events.move(), self._claim()
                if not (has_moved or has_claimed or self._sender.deliveries):
                    return
            results = self._sender.wait(_WAIT_SECONDS)
            if results:
                deliveries.store_results([_result(delivery, response) for delivery, response in results])

    def _claim(self) -> bool:
        running = self._sender.deliveries
        if len(running) >= MAX_TRANSFERS:
            return False
        claimed = deliveries.claim(
            limit=MAX_TRANSFERS - len(running),
            # The more transfers run, the fewer are given to one user: a quarter of the free ones,
            # at least one.
            per_user=min(MAX_PER_USER, max(1, (MAX_TRANSFERS - len(running)) // 4)),
            per_webhook=MAX_PER_WEBHOOK,
            running=[delivery["webhook_id"] for delivery in running],
        )
        for delivery in claimed:
            try:
                message = _message(delivery)
            except (InvalidToken, ValueError):  # encrypted with a secret key that this service no longer has
                deliveries.store_results([_result(delivery, Response(None, _UNREADABLE, 0))])
            else:
                self._sender.start(delivery, message)
        return bool(claimed)


class Worker(Background):
    """Delivers events and announces expired links. Interrupted deliveries are sent again after
    their lease."""

    name = "events"

    def __init__(self, app: Flask) -> None:
        self._dispatcher = Dispatcher()
        self._next_expiry = 0.0  # time.monotonic()
        super().__init__(app)

    def work(self) -> None:
        if monotonic() > self._next_expiry:
            self._announce_expired()
        if outbox.has_work():
            self._dispatcher.run(self.stopping)

    def _announce_expired(self) -> None:
        """Announce a batch of expired links. A failure must not stop deliveries."""
        self._next_expiry = monotonic() + EXPIRY_SECONDS
        try:
            outbox.drop_excess()
            if outbox.announce_expired(MAX_EXPIRED):
                self._next_expiry = 0.0
        except psycopg2.Error as error:
            self._app.logger.warning("expired links will be announced later: %s", type(error).__name__)


def _message(delivery: Row) -> Message:
    body = {
        "type": delivery["type"],
        "timestamp": iso(delivery["created"]),
        **delivery["extra"],
        "data": delivery["data"],
    }
    ciphertexts = (delivery["secret_ciphertext"], delivery["previous_ciphertext"])
    secrets = [keys.unseal(delivery["user_id"], ciphertext) for ciphertext in ciphertexts if ciphertext]
    return Message(
        delivery["url"], f"msg_{delivery['number']}", orjson.dumps(body), secrets, delivery["admin"]
    )


def _result(delivery: Row, response: Response) -> Row:
    attempts = delivery["attempts"]
    if not response.is_success:
        metrics.count("delivery_failures")
    delay = None
    if attempts <= len(SCHEDULE):
        delay = max(SCHEDULE[attempts - 1] * random.uniform(0.9, 1.1), response.retry_after or 0)  # noqa: S311
    return {
        "id": delivery["id"],
        "attempts": attempts,
        "delivered": response.is_success,
        "gone": response.status == _GONE,
        "status": response.status,
        "response": response.text,
        "milliseconds": response.milliseconds,
        "delay": delay,
        "retry_after": response.retry_after,
    }
