"""The connection to the mail server.

A message that the server has got, but not answered in time, is sent again. So the server has longer
to look at it than for other answers, and all ends before another process takes the job.
"""

import smtplib
import ssl
from contextlib import suppress
from email.message import EmailMessage
from time import monotonic
from typing import Any

from linkmgr.core.settings import settings

SECONDS, ANSWER_SECONDS = 10, 25  # for each response of the server, and at least for that to a message
DEADLINE = 50  # seconds for all; the lease of the job is 60
_PERMANENT = 500


class Refused(Exception):
    """The server will never take the message."""


class _Smtp(smtplib.SMTP):
    answer, end, is_sending = b"", float("inf"), False

    def getreply(self) -> tuple[int, bytes]:
        if self.sock:
            left = self.end - monotonic()
            self.sock.settimeout(max(0.1, left if self.is_sending else min(left, SECONDS)))
        return super().getreply()

    def data(self, msg: Any) -> tuple[int, bytes]:
        if self.end - monotonic() < ANSWER_SECONDS:
            raise TimeoutError("The mail server is too slow.")
        self.is_sending = True
        code, self.answer = super().data(msg)
        self.is_sending = False
        return code, self.answer


class _SmtpOverTls(_Smtp, smtplib.SMTP_SSL):
    pass


def send(message: EmailMessage, recipient: str) -> str:
    """Send a message and return the response of the server.

    Raise Refused, or an OSError, such as SMTPException, if another attempt may succeed.
    """
    server, sender = settings().mail_url, settings().mail_from
    assert server
    assert sender
    context = ssl.create_default_context()
    options: Any = {"local_hostname": settings().host, "timeout": SECONDS}
    options |= {"context": context} if server.is_tls else {}
    end = monotonic() + DEADLINE
    smtp = (_SmtpOverTls if server.is_tls else _Smtp)(server.host, server.port, **options)
    smtp.end = end
    try:
        if server.starttls:
            smtp.starttls(context=context)
        if server.user:
            smtp.login(server.user, server.password)
        _transmit(smtp, message, sender.addr_spec, recipient)
        with suppress(OSError):  # the server has taken the message
            smtp.quit()
    finally:
        smtp.close()
    return smtp.answer.decode(errors="replace")


def _transmit(smtp: _Smtp, message: EmailMessage, sender: str, recipient: str) -> None:
    try:
        smtp.send_message(message, sender, [recipient])
    except smtplib.SMTPRecipientsRefused as error:
        code, answer = error.recipients[recipient]
        if code >= _PERMANENT:
            raise Refused(f"{code} {answer.decode(errors='replace')}") from error
        raise
    except smtplib.SMTPDataError as error:
        if error.smtp_code >= _PERMANENT:
            raise Refused(str(error)) from error
        raise
    except smtplib.SMTPNotSupportedError as error:
        raise Refused("The mail server takes no addresses with letters beyond ASCII.") from error
