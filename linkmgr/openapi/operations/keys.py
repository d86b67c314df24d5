"""/api/keys and /api/key"""

from linkmgr.api import keys
from linkmgr.openapi.model import Operation
from linkmgr.openapi.schemas import ID, TIMESTAMP, created, done, listing, or_null, record, ref, success, text
from linkmgr.openapi.usual import record_of, section
from linkmgr.resources.keys import Key, KeyRotation

_SECRET = text("lmk_...", pattern="^lmk_")
_SHOWN = record_of(Key)["properties"]
_DEFAULT = record(
    name="default",
    prefix="linkmgr_",
    active=True,
    created=TIMESTAMP,
    expires=or_null(TIMESTAMP),
)

SECTION = section(
    Key,
    "Keys",
    example={"name": "Newsletter", "scopes": ["links:create", "stats:read"], "expires": "2030-12-31 23:59:59"},
    change={"scopes": ["links:create"]},
    codes=("key_exceeded", "admin_scope", "domains_unknown"),
    added=("keys_full",),
    refused=("key_exceeded",),
    responses={
        "index": listing("keys", "Key", default=ref("DefaultKey")) | {"required": ["error", "data"]},
        "add": created("Key", key=_SECRET),
    },
    records={"DefaultKey": _DEFAULT},
    others=(
        Operation(
            "PUT /api/key/default/update",
            "Turn the default key on or off",
            done("The default key has been turned on."),
            keys.DefaultKeyUpdate,
            codes=("key_exceeded", "default_key_only"),
            description="It can be turned off while there is another valid key. This needs a key without limits. It "
            "can always be turned on again on the page of API keys in the console, or by its replacement on the "
            "account page.",
        ),
        Operation(
            "POST /api/key/{key_id}/rotate",
            "Replace an API key",
            success(
                message="API key has been rotated successfully.",
                id=ID,
                key=_SECRET,
                prefix=_SHOWN["prefix"],
                previous_until=_SHOWN["previous_until"],
            ),
            KeyRotation,
            codes=("key_exceeded",),
            description="The previous key works for `overlap` more seconds. A key that an earlier rotation replaced "
            "stops working at once.",
        ),
    ),
)
