from typing import Any, ClassVar

from marshmallow import ValidationError

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.base import Array, Choice, Password, Shown
from linkmgr.core.fields.member import JsonSchema, member
from linkmgr.core.fields.resource import Resource
from linkmgr.core.settings import settings
from linkmgr.core.web import passwords
from linkmgr.features.public_statistics import repository as public_statistics
from linkmgr.features.statistics.periods import PERIODS
from linkmgr.visits.dimensions import TITLES

# One that begins with the first visit could be of any length
BOUNDED_PERIODS = tuple(name for name in PERIODS if name != "all")


class Tables(Array):
    default_error_messages = {"invalid": "must be an array of dimensions such as ['country']"}
    json: ClassVar[JsonSchema] = {"type": "array", "items": {"type": "string", "enum": list(TITLES)}}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[str]:
        if not isinstance(value, list):
            raise self.make_error("invalid")
        for name in value:
            if name not in [*TITLES]:
                raise ValidationError(
                    f"must not contain {str(name)[:60]!r}. Possible values: {', '.join(TITLES)}"
                )
        return [name for name in TITLES if name in value]


class PublicPage(Resource):
    url = member(
        Shown({"type": "string"}),
        'The address of the page, which cannot be guessed, or "" while it is off.',
        "https://go.example.org/statistics/" + "3q2-7w" * 7 + "A",
    )
    haspassword = member(Shown({"type": "boolean"}), "", False)
    password = member(
        Password(1, allow_empty=True, load_only=True),
        "Visitors must enter this password whenever they open the page.",
        "correct horse",
        label="Password",
        removed="",
    )
    period = member(
        Choice(BOUNDED_PERIODS),
        "The period of all figures, until now, in the time zone of your account.",
        "28d",
        label="Period",
        default=public_statistics.PERIOD,
    )
    tables = member(
        Tables(),
        "The dimensions of which the page has a table. `[]` leaves the clicks over time alone.",
        ["country", "referrer"],
        label="Tables",
        default=public_statistics.TABLES,
    )


def with_url(page: Row) -> Row:
    token = page["token"]
    return page | {"url": f"{settings().base_url}/statistics/{token}" if token else ""}


def change(user_id: int, subject: Row, sent: Row) -> Row:
    """Show the page of a subject, or change what was sent of it."""
    password = sent.pop("password")
    hashed = passwords.hashed(password) if password else password
    return with_url(public_statistics.change(user_id, **subject, **sent, password_hash=hashed))
