import re
from typing import Any, ClassVar

from marshmallow import ValidationError
from psycopg2.errors import UniqueViolation

from linkmgr.core.database.statements import Row, undoable
from linkmgr.core.fields.base import Array, Boolean, Choice, Password, Shown
from linkmgr.core.fields.bodies import load
from linkmgr.core.fields.member import JsonSchema, member
from linkmgr.core.fields.resource import Resource
from linkmgr.core.web import passwords
from linkmgr.features.public_statistics import repository as public_statistics
from linkmgr.features.statistics.periods import PERIODS
from linkmgr.visits.dimensions import TITLES

_TOKEN = re.compile("[A-Za-z0-9_-]{43}")  # as keys.new_token() makes them


class Tables(Array):
    json: ClassVar[JsonSchema] = {"type": "array", "items": {"type": "string", "enum": list(TITLES)}}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[str]:
        if not isinstance(value, list) or any(name not in [*TITLES] for name in value):
            raise ValidationError(f"must be an array of {', '.join(TITLES)}")
        return [name for name in TITLES if name in value]


class PublicPage(Resource):
    public = member(Boolean(), "Shows the page. Without it, the page has no address.", True)
    url = member(
        Shown({"type": "string"}),
        'The address of the page, or "" if there is none.',
        "https://go.example.org/statistics/" + "3q2-7w" * 7 + "A",
    )
    haspassword = member(Shown({"type": "boolean"}), "", False)
    password = member(
        Password(1, allow_empty=True, load_only=True),
        "Visitors must enter this password whenever they open the page.",
        "correct horse",
        removed="",
    )
    period = member(Choice(PERIODS), "The period of all figures, as in `GET /api/stats`.", "28d")
    tables = member(Tables(), "The dimensions of which the page has a table.", ["country", "referrer"])


def change(user_id: int, sent: Row, **subject: int) -> Row:
    if sent["password"]:
        sent["password"] = passwords.hashed(sent["password"])
    return public_statistics.change(user_id, **subject, **sent)


def restore(user_id: int, record: Row) -> None:
    """Store an exported page of the `link` or the `campaign`, if it has one. Keep its address,
    unless that could be guessed, or another page has it."""
    subject: Row = {f"{name}_id": record[name] for name in ("link", "campaign") if record.get(name)}
    sent = load(PublicPage.updates(), {name: record.get(name) for name in ("public", "period", "tables")})
    if record.get("password_hash"):
        sent["password"] = passwords.imported_hash(record["password_hash"])
    address: Row = {"token": token} if _TOKEN.fullmatch(token := str(record.get("token"))) else {}
    if subject:
        try:
            with undoable():
                public_statistics.change(user_id, **subject, **sent, **address)
        except UniqueViolation:
            public_statistics.change(user_id, **subject, **sent)
