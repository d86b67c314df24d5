"""/api/keys and /api/key"""

from linkmgr import keys
from linkmgr.db import transaction
from linkmgr.db.statements import Row
from linkmgr.fields.base import Boolean, Integer, Shown, Text, Timestamp
from linkmgr.fields.bodies import New
from linkmgr.fields.keys import DomainIds, KeyExpiry, Networks, Scopes
from linkmgr.fields.member import member
from linkmgr.keys import SCOPED_PATTERN
from linkmgr.repository import api_keys
from linkmgr.resources.resource import Resource, row_id

MAX_OVERLAP = 7 * 86400  # seconds


class KeyRotation(New):
    overlap = member(
        Integer(0, MAX_OVERLAP, load_default=0),
        "The seconds for which the previous key still works, at most 7 days.",
        86400,
    )


class Key(Resource):
    about = f"""\
Each user has one API key with full access, the `default` key. Create another key for a program that needs less. It
allows only its `scopes`, and `domains`, `own_only`, `expires` and `allowed_ips` limit it further. All keys of a user
share one rate limit. The list of keys has the default key as `default`. A key with `own_only` or `domains` does not see
it.

A scope is a word and an action:

- `links:read` allows each GET of links, with their statistics and visits. `links:create` allows creating links, but
  not reading them: the response has only the id and the short URL, even if the URL was shortened before. `links:write`
  allows reading, creating, changing and deleting them.
- The words are `account`, `bio`, `campaigns`, `channels`, `domains`, `imports`, `keys`, `links`, `overlay`, `pixels`,
  `qr`, `splash`, `stats` and `webhooks`. Assigning needs `campaigns:write` or `channels:write`.
  The members of a link that refer to other rows, such as `campaign`, need no scope of these.
- `webhooks:read` reads all events with the changed records, of all words. `webhooks:create` and `webhooks:write` can
  have them sent to any URL. The events of users also need `admin`.
- `account:write` can set a new password, so a program with such a key can sign in as the user.
- `admin` is for plans and users. Only administrators can give it. It includes the default keys of all users.
- `*` is all scopes except `admin`. The export of the account needs it.
- `imports:create` can store rows of all kinds, and change links with `on_conflict=update`.

A request whose key does not have the scope is a 403 that names the scope, also in the header `WWW-Authenticate: Bearer
error="insufficient_scope", scope="links:write"`.

With `own_only`, all other rows do not exist for the key: it neither reads, changes nor refers to them, and its lists
have the totals of its own rows. A URL that another key has shortened becomes a new link, which is returned when the key
adds the URL again, and not to other keys. With `domains`, the same applies to links that are not on these domains,
to QR codes and to bio pages; a link must name one of the domains in `domain`; and the key changes nothing but links.
Statistics then need `ids`, `campaign`, `channel` or `domain`.
Operations that do not support these limits are a 403. The names, aliases and domains of rows that the key cannot see
are still in use, and all rows count against the plan.

A key with `keys:write` can create, change, rotate and delete keys with at most its own scopes and at least its own
limits. A user has at most 100 keys.

A key consists of `lmk_`, 30 letters and digits, and 6 more that are their CRC-32 in base 62, so that secret scanners
recognize it: `{SCOPED_PATTERN}`. It is shown once, in the response that creates it; only its SHA-256 digest is stored.
A mistyped key is refused without being looked up."""
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
