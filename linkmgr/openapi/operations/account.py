"""/api/account"""

from linkmgr.api import account
from linkmgr.openapi.model import Operation, Resource
from linkmgr.openapi.schemas import ID, TIMESTAMP, JsonSchema, changed, choice, or_null, own_url, reading, record, text

ACCOUNT: dict[str, JsonSchema] = {
    "id": ID,
    "email": text("dana@example.com"),
    "username": text("dana"),
    "avatar": own_url("avatar/dana.png"),
    "status": choice("pro", "free", "admin"),
    "expires": or_null(TIMESTAMP),
    "registered": TIMESTAMP,
}

RESOURCE = Resource(
    name="Account",
    description="""\
`status` is `admin` for administrators, `pro` while a premium plan is in force, and `free` otherwise. `expires` is the
end of the plan, or `null` if it has none.""",
    records={"Account": record(**ACCOUNT)},
    operations=(
        Operation("GET", "/api/account", "Read the account", reading("Account"), tagged=True),
        Operation(
            "POST", "/api/account", "Read the account", reading("Account"), description="The same as GET.", tagged=True
        ),
        Operation(
            "PUT",
            "/api/account/update",
            "Change the e-mail address or the password",
            changed("Account has been successfully updated.", "Account"),
            account.AccountUpdate,
            {"email": "new@example.com"},
            codes=("email_taken",),
            description="Send `email`, `password` or both.",
            tagged=True,
        ),
    ),
)
