import secrets
from typing import ClassVar

from linkmgr.core.fields.base import Boolean, Choice, Integer, Matching, Shown, Text
from linkmgr.core.fields.member import member
from linkmgr.core.fields.resource import (
    DETAIL,
    EXPORT,
    READ,
    Resource,
    Stored,
    Words,
    created,
    row_id,
    updated,
)
from linkmgr.repository import campaigns

SLUG = "[A-Za-z0-9_-]{1,50}", "1 to 50 letters, digits, '_' or '-'"


def _generate_name() -> str:
    return f"Campaign {secrets.token_hex(6)}"


class Campaign(Resource):
    also_shown: ClassVar[dict[str, bool]] = {"domain": True, "campaign": False}

    id = row_id()
    name = member(
        Text(load_default=_generate_name),
        "Unique among your campaigns. Without it, the service generates one on create.",
        "Summer",
        label="Name",
        needed=True,
        synonyms="domain campaign",
    )
    slug = member(
        Matching(*SLUG, allow_empty=True),
        "The last part of the rotator's URL, unique over all users. Without it there is no rotator.",
        "summer",
        label="Rotator",
        shown=DETAIL,
    )
    public = member(
        Boolean(load_default=False),
        "Publishes the rotator and the list. The list never shows private links.",
        True,
        label="Everyone may open the rotator and the list of its links",
    )
    listorder = member(
        Choice(("newest", "oldest"), load_default="newest"),
        "The links that come first on the list.",
        "oldest",
        label="First on the list",
        options={"newest": "Newest links", "oldest": "Oldest links"},
        shown=DETAIL,
    )
    listsize = member(
        Integer(1, 100, load_default=25),
        "The number of links on a page of the list.",
        50,
        label="Links on a page of the list",
        shown=DETAIL,
    )
    rotator = member(
        Shown({}), "A URL, or `false` without a slug.", "https://go.example.org/r/summer", shown=READ
    )
    list = member(Shown({"type": "string"}), "", "https://go.example.org/u/dana/summer-17", shown=READ)
    date = created(shown=EXPORT)
    updated = updated()


CAMPAIGNS = Stored(
    Campaign,
    Words("campaign", path="campaign", plural="campaigns", table="campaigns"),
    rows=campaigns,
    create=campaigns.add,
    change=campaigns.update,
)
