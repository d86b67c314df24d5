"""The account, API keys, plans and users, and the document itself"""

from linkmgr.api import keys, users
from linkmgr.openapi.model import Operation, listed
from linkmgr.openapi.usual import section
from linkmgr.resources import shapes as js
from linkmgr.resources.keys import Key, KeyRotation
from linkmgr.resources.plans import Plan, Subscription
from linkmgr.resources.shapes import record_of
from linkmgr.resources.users import User
from linkmgr.web.export import BUSY

_SECRET = js.text("lmk_...", pattern="^lmk_")
_SHOWN = record_of(Key)["properties"]
_DEFAULT: dict[str, js.Shape] = {"name": "default", "prefix": "linkmgr_", "active": True, "created": js.TIMESTAMP}

KEYS = section(
    Key,
    "Keys",
    example={"name": "Newsletter", "scopes": ["links:create", "stats:read"], "expires": "2030-12-31 23:59:59"},
    change={"scopes": ["links:create"]},
    codes=("key_exceeded", "admin_scope", "domains_unknown"),
    added=("keys_full",),
    refused=("key_exceeded",),
    responses={
        "index": js.listing("keys", "Key", default=js.ref("DefaultKey")) | {"required": ["error", "data"]},
        "add": js.created("Key", key=_SECRET),
    },
    records={"DefaultKey": js.record(**_DEFAULT, expires=js.or_null(js.TIMESTAMP))},
    others=(
        Operation(
            "PUT /api/key/default/update",
            "Turn the default key on or off",
            js.done("The default key has been turned on."),
            keys.DefaultKeyUpdate,
            codes=("key_exceeded", "default_key_only"),
        ),
        Operation(
            "POST /api/key/{key_id}/rotate",
            "Replace an API key",
            js.success(
                message="API key has been rotated successfully.",
                id=js.ID,
                key=_SECRET,
                prefix=_SHOWN["prefix"],
                previous_until=_SHOWN["previous_until"],
            ),
            KeyRotation,
            codes=("key_exceeded",),
        ),
    ),
)

PLANS = listed(
    "plans",
    "Plans",
    (
        Operation("GET /api/plans", "List plans", js.all_of("Plan")),
        Operation(
            "PUT /api/plan/{plan_id}/user/{user_id}",
            "Subscribe a user to a plan",
            js.done("User has been subscribed to this plan."),
            Subscription,
            {"type": "yearly"},
        ),
    ),
    Plan.about,
    lambda: {"Plan": record_of(Plan)},
    {"Limits of a plan": "Plan.limits"},
)
USERS = listed(
    "users",
    "Users",
    (
        Operation("GET /api/users", "List users", js.all_of("User"), query=users.QUERY, codes=("other_secret", *BUSY)),
        Operation("GET /api/user/{user_id}", "Read a user", js.reading("User"), codes=("other_secret",), tagged=True),
        Operation(
            "POST /api/user/add",
            "Register a user",
            js.success(message="User has been registered.", data=js.ref("User")),
            User.creates(),
            {"username": "carol", "email": "carol@example.com", "password": "correct horse"},
            codes=("username_taken", "email_taken", "plan_not_premium", "other_secret", "password_busy"),
            tagged=True,
        ),
        Operation(
            "DELETE /api/user/{user_id}/delete",
            "Delete a user",
            js.done("User has been deleted."),
            codes=("delete_self", "delete_last_administrator", "other_secret"),
        ),
        Operation(
            "GET /api/user/login/{user_id}", "Create a sign-in link for a user", js.success(url=js.own_url("login/..."))
        ),
    ),
    User.about,
    lambda: {"User": record_of(User)},
)
DOCUMENT = listed(
    "document",
    "This document",
    (Operation("GET /api/openapi.json", "Read this document", {"type": "object"}, tagged=True),),
    "The description of the API in the form of OpenAPI, which generators of clients read.",
)
