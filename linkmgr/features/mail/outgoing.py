"""The jobs that send messages. Values are encrypted, because some of them give access."""

import smtplib
import time
from datetime import UTC, datetime
from email.message import EmailMessage
from time import monotonic
from typing import Any

import orjson
from cryptography.fernet import InvalidToken
from flask import current_app

from linkmgr.core import keys, metrics
from linkmgr.core.database.jobs import Handler, Later
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.settings import settings
from linkmgr.core.web import rate_windows, session_store
from linkmgr.core.web import request as web_request
from linkmgr.features.mail import messages, repository, smtp
from linkmgr.features.mail.messages import MESSAGES

HOUR, DAY = 3600, 86400
MIN_PAUSE, MAX_PAUSE = 30, 4 * HOUR  # seconds between two attempts, each about as long as all before
MAX_PER_ADDRESS = 5  # messages of a kind in an hour to an address that may be a stranger's
RESETS, RESETS_OF_CLIENT, RESETS_OF_ACCOUNT = 1000, 10, 3  # in an hour
_ANSWERS = (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused, AppError)  # the server is there
_down_until = [float("-inf")]  # the time until which this process does not connect, after it failed


def notify(
    user_id: int, message: str, *, to: str | None = None, about: str | None = None, **values: Any
) -> None:
    """Enqueue a message to a user, or to the address `to`. Users get one message `about` the
    same."""
    if settings().mail_url is None:
        return
    if to and not _spend(f"{message} to {keys.digest(to.lower()).hex()}", MAX_PER_ADDRESS):
        return
    sealed = keys.seal(user_id, orjson.dumps({"to": to, **values}).decode())
    repository.enqueue(user_id, message, most=MESSAGES[message].most, sealed=sealed, about=about)


def _spend(bucket: str, limit: int) -> bool:
    return rate_windows.spend(f"mail:{bucket}", 1, limit=limit, window=HOUR) is not None


# --- a forgotten password


def request_reset(text: str) -> None:
    """Enqueue a look-up of an account by its e-mail address or name. The request does the same
    whether there is one or not."""
    bucket = f"reset by {web_request.network()}"
    if not _spend(bucket, RESETS_OF_CLIENT):
        seconds = rate_windows.current(f"mail:{bucket}", window=HOUR)["seconds"]
        raise AppError("rate_limited", limit=RESETS_OF_CLIENT, per="hour", seconds=seconds)
    if _spend(f"reset of {keys.digest(text.lower()).hex()}", RESETS_OF_ACCOUNT) and _spend("resets", RESETS):
        repository.enqueue_task("mail_reset", {"account": keys.seal(0, text)})


def _reset(argument: Row) -> bool:
    user_id = session_store.find_credentials(keys.unseal(0, argument["account"]))["id"]
    if user_id is not None:
        notify(user_id, "password_reset")
    return True


# --- sending


def _send(argument: Row) -> bool:
    """Send a message. Return True also if it is not needed any more, or was given up."""
    if settings().mail_url is None:
        return True
    if monotonic() < _down_until[0]:
        raise Later(_pause(argument))
    what = argument["message"], argument["user_id"]
    try:
        if composed := _compose(argument):
            smtp.send(*composed)
    except (OSError, AppError) as error:  # also SMTPException
        if not isinstance(error, _ANSWERS):
            _down_until[0] = monotonic() + MIN_PAUSE
        if _age(argument) < DAY:
            current_app.logger.warning("message %s to user %s will be sent later: %r", *what, error)
            raise Later(_pause(argument)) from error
        metrics.count("job_failures")
        current_app.logger.error("message %s to user %s was given up: %r", *what, error)
    except (smtp.Refused, InvalidToken, ValueError) as error:
        metrics.count("job_failures")
        current_app.logger.error("message %s to user %s cannot be sent: %r", *what, error)
    return True


def _age(argument: Row) -> float:
    return time.time() - float(argument["enqueued"])


def _pause(argument: Row) -> float:
    return min(max(_age(argument), MIN_PAUSE), MAX_PAUSE)


def _compose(argument: Row) -> tuple[EmailMessage, str] | None:
    user, name = repository.recipient(argument["user_id"]), argument["message"]
    if user is None or name in user["no_mail"]:
        return None
    values = orjson.loads(keys.unseal(user["id"], argument["values"]))
    values["at"] = datetime.fromtimestamp(argument["enqueued"], UTC).isoformat(" ", "seconds")
    recipient = messages.address(values.pop("to") or user["email"])
    composed = messages.compose(name, user, values, recipient=recipient, message_id=argument["id"])
    return composed, recipient.addr_spec


HANDLERS = {"mail": Handler(_send, is_apart=True), "mail_reset": Handler(_reset)}
