"""/api/keys and /api/key"""

from linkmgr import keys
from linkmgr.db import transaction
from linkmgr.db.statements import Row
from linkmgr.fields.base import Boolean, Integer, Shown, Text, Timestamp
from linkmgr.fields.bodies import New
from linkmgr.fields.keys import DomainIds, KeyExpiry, Networks, Scopes
from linkmgr.fields.member import member
from linkmgr.repository import api_keys
from linkmgr.resources.resource import Resource, prose, row_id

MAX_OVERLAP = 7 * 86400  # seconds


class KeyRotation(New):
    overlap = member(
        Integer(0, MAX_OVERLAP, load_default=0),
        "The seconds for which the previous key still works, at most 7 days.",
        86400,
    )


class Key(Resource):
    about = prose(__file__, pattern=keys.SCOPED_PATTERN)
    noun = "API key"
    path = "key"
    plural = "keys"
    answered = ("id", "key")
    rows = api_keys

    id = row_id()
    name = member(Text(required=True), "The program that uses the key.", "Newsletter", label="Name")
    prefix = member(Shown({"type": "string"}), "The first characters of the key.", "lmk_Ab3d")
    scopes = member(
        Scopes(required=True, least=1), "What the key allows.", ["links:create", "stats:read"], label="Scopes"
    )
    domains = member(
        DomainIds(load_default=list),
        "The ids of the branded domains that the key is limited to. `[]` means no limit.",
        [17],
        label="Domains",
        default=[],
    )
    own_only = member(
        Boolean(load_default=False),
        "Limits the key to the rows that it creates. It cannot be changed later.",
        False,
        label="Only the links, QR codes and other rows that it creates",
        fixed=True,
    )
    expires = member(
        KeyExpiry(allow_empty=True, allow_none=True),
        "The key stops working at this time. A new key needs a time in the future. An update with a past time ends the "
        "key at once.",
        "2030-12-31 23:59:59",
        label="Expiry",
    )
    allowed_ips = member(
        Networks(load_default=list),
        "The IP addresses and networks that the key can be used from. `[]` means all. IPv4-mapped addresses such as "
        "`::ffff:192.0.2.7` become IPv4.",
        ["192.0.2.0/24", "2001:db8::/32"],
        label="IP addresses",
        default=[],
    )
    created = member(
        Timestamp(dump_only=True), "The time of the last rotation, if there was one.", "2026-11-21 09:30:00"
    )
    last_used = member(Timestamp(dump_only=True, allow_none=True), "The minute of the last use.", "2026-11-21 09:30:00")
    last_address = member(
        Shown({"type": ["string", "null"]}), "The IP address of the first use in this minute.", "192.0.2.7"
    )
    previous_until = member(
        Timestamp(dump_only=True, allow_none=True),
        "The end of the overlap of the last rotation, while it lasts.",
        "2026-11-21 09:30:00",
    )

    @classmethod
    def create(cls, user_id: int, members: Row) -> Row:
        """Add a key, and return also the key itself, which is not shown again."""
        secret = keys.new_scoped_key()
        with transaction.joined():
            added = api_keys.add(user_id, cls.complete(members) | {"secret": secret})
            return cls.read(user_id, added["id"]) | {"key": secret}

    @staticmethod
    def rotate(user_id: int, row_id: int, *, overlap: int, version: str | None = None) -> Row:
        """Replace a key, unless `version` is not that of its row. Return the new key, its prefix, and the end of the
        previous one."""
        secret = keys.new_scoped_key()
        return {"key": secret} | api_keys.rotate(user_id, row_id, secret=secret, overlap=overlap, version=version)
