"""/api/keys and /api/key"""

from linkmgr.api import keys
from linkmgr.keys import SCOPED_PATTERN
from linkmgr.openapi.model import PAGING, Member, Operation, Resource
from linkmgr.openapi.schemas import (
    ID,
    TIMESTAMP,
    JsonSchema,
    array_of,
    changed,
    done,
    flag,
    listing,
    or_null,
    reading,
    record,
    ref,
    success,
    text,
)

_SECRET = text("lmk_...", pattern="^lmk_")
_PREFIX = text("lmk_Ab3d")
_PREVIOUS = or_null(TIMESTAMP) | {"description": "The end of the overlap of the last rotation, while it lasts."}
_KEY: dict[str, JsonSchema] = {
    "id": ID,
    "name": text("Newsletter"),
    "prefix": _PREFIX | {"description": "The first characters of the key."},
    "scopes": array_of(text("links:create")),
    "domains": array_of(ID),
    "own_only": flag(False),
    "expires": or_null(TIMESTAMP),
    "allowed_ips": array_of(text("192.0.2.0/24")),
    "created": TIMESTAMP | {"description": "The time of the last rotation, if there was one."},
    "last_used": or_null(TIMESTAMP) | {"description": "The minute of the last use."},
    "last_address": or_null(text("192.0.2.7")) | {"description": "The IP address of the first use in this minute."},
    "previous_until": _PREVIOUS,
}
_DEFAULT: dict[str, JsonSchema] = {
    "name": text("default"),
    "prefix": text("linkmgr_"),
    "active": flag(True),
    "created": TIMESTAMP,
    "expires": or_null(TIMESTAMP),
}

RESOURCE = Resource(
    name="Keys",
    description=f"""\
Each user has one API key with full access, the `default` key. Create another key for a program that needs less. It
allows only its `scopes`, and `domains`, `own_only`, `expires` and `allowed_ips` limit it further. All keys of a user
share one rate limit.

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
adds the URL again while the other link exists. With `domains`, the same applies to links that are not on these domains,
to QR codes and to bio pages; a link must name one of the domains in `domain`; and the key changes nothing but links.
Statistics then need `ids`, `campaign`, `channel` or `domain`.
Operations that do not support these limits are a 403. The names, aliases and domains of rows that the key cannot see
are still in use, and all rows count against the plan.

A key with `keys:write` can create, change, rotate and delete keys with at most its own scopes and at least its own
limits. A user has at most 100 keys.

A key consists of `lmk_`, 30 letters and digits, and 6 more that are their CRC-32 in base 62, so that secret scanners
recognize it: `{SCOPED_PATTERN}`. It is shown once, in the response that creates it; only its SHA-256 digest is stored.
A mistyped key is refused without being looked up.""",
    members={
        "name": Member("Newsletter", "For yourself."),
        "scopes": Member(["links:create", "stats:read"], "What the key allows."),
        "domains": Member(
            [17], "The ids of the branded domains that the key is limited to. `[]` means no limit.", default=[]
        ),
        "own_only": Member(
            False, "Limits the key to the rows that it creates. It cannot be changed later.", default=False
        ),
        "expires": Member(
            "2030-12-31 23:59:59",
            "The key stops working at this time. A new key needs a time in the future. An update with a past time ends "
            "the key at once.",
        ),
        "allowed_ips": Member(
            ["192.0.2.0/24", "2001:db8::/32"],
            "The IP addresses and networks that the key can be used from. `[]` means all. IPv4-mapped "
            "addresses such as `::ffff:192.0.2.7` become IPv4.",
            default=[],
        ),
        "overlap": Member(86400, "The seconds for which the previous key still works, at most 7 days.", default=0),
        "active": Member(True, "`false` turns the default key off."),
    },
    records={"Key": record(**_KEY), "DefaultKey": record(**_DEFAULT)},
    operations=(
        Operation(
            "GET",
            "/api/keys",
            "List API keys",
            listing("keys", "Key", default=ref("DefaultKey")) | {"required": ["error", "data"]},
            query=PAGING,
            description="`default` is the key that each user has, which is not in the list. A key with `own_only` "
            "or `domains` does not see it.",
        ),
        Operation("GET", "/api/key/{key_id}", "Read an API key", reading("Key"), tagged=True),
        Operation(
            "POST",
            "/api/key/add",
            "Add an API key",
            success(id=ID, key=_SECRET),
            keys.KeyCreate,
            {"name": "Newsletter", "scopes": ["links:create", "stats:read"], "expires": "2030-12-31 23:59:59"},
            codes=("key_exceeded", "keys_full", "admin_scope", "domains_unknown"),
        ),
        Operation(
            "PUT",
            "/api/key/{key_id}/update",
            "Change an API key",
            changed("API key has been updated successfully.", "Key"),
            keys.KeyUpdate,
            {"scopes": ["links:create"]},
            codes=("key_exceeded", "admin_scope", "domains_unknown"),
            tagged=True,
        ),
        Operation(
            "PUT",
            "/api/key/default/update",
            "Turn the default key on or off",
            done("The default key has been turned on."),
            keys.DefaultKeyUpdate,
            {"active": True},
            codes=("key_exceeded", "default_key_only"),
            description="It can be turned off while there is another valid key. This needs a key without limits. It "
            "can always be turned on again on the page of API keys in the console, or by its replacement on the "
            "account page.",
        ),
        Operation(
            "POST",
            "/api/key/{key_id}/rotate",
            "Replace an API key",
            success(
                message=text("API key has been rotated successfully."),
                id=ID,
                key=_SECRET,
                prefix=_PREFIX,
                previous_until=_PREVIOUS,
            ),
            keys.KeyRotation,
            {"overlap": 86400},
            codes=("key_exceeded",),
            description="The previous key works for `overlap` more seconds. A key that an earlier rotation replaced "
            "stops working at once.",
        ),
        Operation(
            "DELETE",
            "/api/key/{key_id}/delete",
            "Delete an API key",
            done("API key has been deleted successfully."),
            codes=("key_exceeded",),
        ),
    ),
)
