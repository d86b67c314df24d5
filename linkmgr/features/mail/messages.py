"""The messages: a template each, of which both parts are made, so that they say the same.

A template has the subject and blocks, separated by empty lines. A block is a paragraph, rows of a
table, whose cells a tab separates, or a link such as `[Label](url)`, whose URL is a value. Values
have no line breaks, so that they cannot add headers or blocks.
"""

import re
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from linkmgr.core import keys
from linkmgr.core.database.statements import Row
from linkmgr.core.feature import has_console
from linkmgr.core.fields.zones import parse_zone
from linkmgr.core.settings import settings, this_app
from linkmgr.core.web import session_store
from linkmgr.features.mail import weekly

_ACCENT = "#4355d9"  # of style.css
# Long lines are not folded: a URL with a line break is none.
_POLICY = SMTP.clone(max_line_length=900)
_LINK = re.compile(r"\[([^][]+)\]\((\w+)\)")


class Message(NamedTuple):
    """`path` is that of the page behind its link, with values. `label` is the name of its switch on
    the account page. Without one it is always sent."""

    path: str = "/account"
    label: str = ""
    most: int = 10  # to a user in an hour


MESSAGES = {
    "test": Message(),
    "invitation": Message(most=30),
    "password_reset": Message(most=3),
    "confirm_email": Message(most=5),
    "email_changed": Message("/login"),
    "new_browser": Message(),
    "account_changed": Message(),
    "key_expires": Message("/console/keys", "An API key expires within a week", most=100),
    "plan_limit": Message(label="A limit of your plan is reached"),
    "import_finished": Message("/console/imports/{import_id}", "An import has ended"),
    "webhook_off": Message("/console/webhooks/{webhook_id}", "A webhook was turned off"),
    "weekly_report": Message(
        "/console/statistics?period=last_week", "Each Monday, the visits of the week before"
    ),
}


def email_signer() -> Any:
    return keys.serializer("linkmgr new e-mail address")


def off_signer() -> Any:
    return keys.serializer("linkmgr unwanted mail")


def _reset_values(user: Row, _values: Row) -> Row:
    return {"url": session_store.new_link(user["id"], by_admin=False)}


def _confirm_values(user: Row, values: Row) -> Row:
    token = email_signer().dumps([user["id"], user["email"], values["email"]])
    return {"url": f"{settings().base_url}/account/email/{token}"}


def _report_values(user: Row, values: Row) -> Row:
    return weekly.figures(user["id"], parse_zone(user["timezone"]), values["monday"])


# Values that are not stored with the job: secrets, and figures of the time at which it is sent
_PREPARED: dict[str, Callable[[Row, Row], Row]] = {
    "password_reset": _reset_values,
    "confirm_email": _confirm_values,
    "weekly_report": _report_values,
}


def address(text: str) -> Address:
    """Parse an address, whose domain becomes ASCII. Raise ValueError if no message can have it."""
    local, _, host = text.rpartition("@")
    domain = host.encode("idna").decode()
    try:
        if local.isascii():
            return Address(addr_spec=f"{local}@{domain}")
        return Address(username=local, domain=domain)  # needs SMTPUTF8
    except (HeaderParseError, IndexError) as error:  # IndexError: without a part
        raise ValueError(str(error)) from error


def compose(name: str, user: Row, values: Row, *, recipient: Address, message_id: str) -> EmailMessage:
    """Compose a message to a user, or to another `recipient`."""
    if name in _PREPARED:
        values = values | _PREPARED[name](user, values)
    sender, kind, base_url = settings().mail_from, MESSAGES[name], settings().base_url
    assert sender
    path = kind.path if has_console() or not kind.path.startswith("/console") else "/account"
    shared = {"name": settings().name, "username": user["username"], "base_url": base_url}
    shared |= {"url": base_url + path.format(**values)}
    if kind.label:
        shared["off"] = f"{base_url}/account/unsubscribe/{off_signer().dumps([user['id'], name])}"
    values = _cleaned(shared | values)
    subject, blocks = _blocks(name, values, parse_zone(user["timezone"]))
    message = EmailMessage(policy=_POLICY)
    message["Subject"] = subject
    message["From"] = Address(sender.display_name or values["name"], sender.username, sender.domain)
    message["To"] = recipient
    message["Date"] = format_datetime(datetime.now(UTC))
    message["Message-ID"] = f"<{message_id}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"
    if "off" in values:
        message["List-Unsubscribe"] = f"<{values['off']}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    page = this_app().jinja_env.get_template("mail/base.html")
    accent = (settings().accent or _ACCENT)[: len(_ACCENT)]
    html = page.render(subject=subject, blocks=blocks, accent=accent, name=values["name"])
    message.set_content(_text(blocks), cte="quoted-printable")
    message.add_alternative(html, subtype="html", cte="quoted-printable")
    return message


def _cleaned(value: Any) -> Any:
    """Return values whose texts are single lines without control characters."""
    if isinstance(value, dict):
        return {name: _cleaned(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_cleaned(part) for part in value]
    if isinstance(value, str):
        return " ".join("".join(letter if letter.isprintable() else " " for letter in value).split())
    return value


def _blocks(name: str, values: Row, zone: ZoneInfo) -> tuple[str, list[Row]]:
    """Return the subject and the blocks: each has a `text`, perhaps with a `url`, or `rows`."""

    def local(text: str) -> str:
        at = datetime.fromisoformat(text[: len("2026-11-21 09:30:00")]).replace(tzinfo=UTC).astimezone(zone)
        return f"{at:%b} {at.day}, {at.year}, {at:%H:%M} {at:%Z}"

    template = this_app().jinja_env.get_template(f"mail/{name}.txt")
    text = template.render(**values, local=local)
    subject, *parts = (part.strip() for part in re.split(r"\n\s*\n", text) if part.strip())
    return " ".join(subject.split()), [_block(part, values) for part in parts]


def _block(part: str, values: Row) -> Row:
    if "\t" in part:
        return {"rows": [[cell.strip() for cell in line.split("\t")] for line in part.splitlines()]}
    if link := _LINK.fullmatch(part):
        return {"text": link[1], "url": values[link[2]], "is_button": link[2] == "url"}
    return {"text": " ".join(part.split())}


def _text(blocks: list[Row]) -> str:
    parts = []
    for block in blocks:
        if "rows" in block:
            parts.append("\n".join("  ".join((f"{row[0]:>9}", *row[1:])) for row in block["rows"]))
        elif "url" in block:
            parts.append(f"{block['text']}:\n{block['url']}")
        else:
            parts.append(textwrap.fill(block["text"], 76, break_long_words=False, break_on_hyphens=False))
    return "\n\n".join(parts) + "\n"
