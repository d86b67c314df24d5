"""/api/account"""

from linkmgr.openapi.model import Operation, Section
from linkmgr.openapi.schemas import changed, reading
from linkmgr.openapi.usual import record
from linkmgr.resources.account import Account

SECTION = Section(
    name="Account",
    description=Account.about,
    records={"Account": record(Account)},
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
            Account.updates(),
            codes=("email_taken",),
            description="Send `email`, `password` or both.",
            tagged=True,
        ),
    ),
)
