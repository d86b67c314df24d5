"""The account, plans and users, and the document itself"""

from dataclasses import replace

from linkmgr.api import users
from linkmgr.openapi.model import Access, Operation, Section
from linkmgr.openapi.schemas import all_of, changed, done, own_url, reading, ref, success
from linkmgr.openapi.usual import record_of
from linkmgr.resources.account import Account
from linkmgr.resources.plans import Plan, Subscription
from linkmgr.resources.users import User

_ALL = "in one response: `limit` and `page` are ignored."
_ADMINISTRATOR, _PUBLIC = Access.ADMINISTRATOR, Access.PUBLIC
_ACCOUNT = Operation("GET /api/account", "Read the account", reading("Account"), tagged=True)

ACCOUNT = Section(
    "Account",
    (
        _ACCOUNT,
        replace(_ACCOUNT, route="POST /api/account", description="The same as GET."),
        Operation(
            "PUT /api/account/update",
            "Change the e-mail address or the password",
            changed("Account has been successfully updated.", "Account"),
            Account.updates(),
            codes=("email_taken",),
            description="Send `email`, `password` or both.",
            tagged=True,
        ),
    ),
    Account.about,
    {"Account": record_of(Account)},
)
PLANS = Section(
    "Plans",
    (
        Operation(
            "GET /api/plans", "List plans", all_of("Plan"), access=_ADMINISTRATOR, description=f"All plans {_ALL}"
        ),
        Operation(
            "PUT /api/plan/{plan_id}/user/{user_id}",
            "Subscribe a user to a plan",
            done("User has been subscribed to this plan."),
            Subscription,
            {"type": "yearly"},
            access=_ADMINISTRATOR,
        ),
    ),
    Plan.about,
    {"Plan": record_of(Plan)},
    {"Limits of a plan": "Plan.limits"},
)
USERS = Section(
    "Users",
    (
        Operation(
            "GET /api/users",
            "List users",
            all_of("User"),
            query=users.QUERY,
            codes=("other_secret",),
            access=_ADMINISTRATOR,
            description=f"All users {_ALL}",
        ),
        Operation(
            "GET /api/user/{user_id}",
            "Read a user",
            reading("User"),
            codes=("other_secret",),
            access=_ADMINISTRATOR,
            tagged=True,
        ),
        Operation(
            "POST /api/user/add",
            "Register a user",
            success(message="User has been registered.", data=ref("User")),
            User.creates(),
            {"username": "carol", "email": "carol@example.com", "password": "correct horse"},
            codes=("username_taken", "email_taken", "plan_not_premium", "other_secret"),
            access=_ADMINISTRATOR,
            tagged=True,
        ),
        Operation(
            "DELETE /api/user/{user_id}/delete",
            "Delete a user",
            done("User has been deleted."),
            codes=("delete_self", "delete_last_administrator", "other_secret"),
            access=_ADMINISTRATOR,
            description="Deletes everything that the user owns.",
        ),
        Operation(
            "GET /api/user/login/{user_id}",
            "Create a sign-in link for a user",
            success(url=own_url("login/...")),
            access=_ADMINISTRATOR,
            description="The link can be used once, within an hour.",
        ),
    ),
    User.about,
    {"User": record_of(User)},
)
DOCUMENT = Section(
    "This document",
    (Operation("GET /api/openapi.json", "Read this document", {"type": "object"}, access=_PUBLIC, tagged=True),),
    "The description of the API in the form of OpenAPI, which generators of clients read.",
)
