"""/api/users and /api/user"""

from linkmgr.openapi.model import Access, Operation, Section, parameter
from linkmgr.openapi.schemas import ID, all_of, done, own_url, reading, record, ref, success, text
from linkmgr.openapi.usual import record as shown
from linkmgr.resources.account import STATUSES
from linkmgr.resources.users import User

SECTION = Section(
    name="Users",
    description=User.about,
    records={
        "User": shown(User),
        "UserAdded": record(id=ID, email=text("carol@example.com"), username=text("carol")),
    },
    operations=(
        Operation(
            "GET",
            "/api/users",
            "List users",
            all_of("User"),
            query=(
                parameter("filter", "Only users with this status.", type="string", enum=list(STATUSES)),
                parameter("email", "A part of the e-mail address.", type="string", maxLength=255),
            ),
            codes=("other_secret",),
            access=Access.ADMINISTRATOR,
            description="All users in one response: `limit` and `page` are ignored.",
        ),
        Operation(
            "GET",
            "/api/user/{user_id}",
            "Read a user",
            reading("User"),
            codes=("other_secret",),
            access=Access.ADMINISTRATOR,
            tagged=True,
        ),
        Operation(
            "POST",
            "/api/user/add",
            "Register a user",
            success(message=text("User has been registered."), data=ref("UserAdded")),
            User.creates(),
            {"username": "carol", "email": "carol@example.com", "password": "correct horse"},
            codes=("username_taken", "email_taken", "plan_not_premium"),
            access=Access.ADMINISTRATOR,
        ),
        Operation(
            "DELETE",
            "/api/user/{user_id}/delete",
            "Delete a user",
            done("User has been deleted."),
            codes=("delete_self", "delete_last_administrator", "other_secret"),
            access=Access.ADMINISTRATOR,
            description="Deletes everything that the user owns.",
        ),
        Operation(
            "GET",
            "/api/user/login/{user_id}",
            "Create a sign-in link for a user",
            success(url=own_url("login/...")),
            access=Access.ADMINISTRATOR,
            description="The link can be used once, within an hour.",
        ),
    ),
)
