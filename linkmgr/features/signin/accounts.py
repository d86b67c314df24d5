"""The user of a person whom a provider or a proxy has identified: a connected one, one with the
same verified e-mail address, or a new one; and what the person's groups give."""

import re
import secrets
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple

import psycopg2
from flask import current_app

from linkmgr.core import errors
from linkmgr.core.database.transaction import in_transaction
from linkmgr.core.errors import AppError
from linkmgr.core.fields.bodies import load
from linkmgr.core.settings import PREFIX, settings
from linkmgr.features.signin import repository
from linkmgr.repository import plans, users
from linkmgr.schemas.users import ManagedUser, register

_MAX_NAME, _MIN_NAME, _NUMBERED = 40, 3, 10  # characters of a name before a number; names with a number


class Person(NamedTuple):
    """A person as the provider describes one. Texts are empty if they are missing or unusable."""

    subject: str
    email: str
    has_verified_email: bool
    username: str
    groups: frozenset[str]

    @property
    def identity(self) -> tuple[str, str, str]:
        """The issuer, the subject, and a name for display."""
        return settings().oidc_issuer, self.subject, self.email or self.username or self.subject


def is_welcome(email: str, *, is_verified: bool) -> bool:
    """Return True if the setting allows a new account with this e-mail address."""
    allowed = settings().new_accounts
    return allowed == ("on",) or (is_verified and email.lower().rpartition("@")[2] in allowed)


def _usernames(wish: str) -> Iterator[str]:
    """Yield names for a new user, each for the case that those before it are taken."""
    ascii_text = unicodedata.normalize("NFKD", wish.partition("@")[0]).encode("ascii", "ignore").decode()
    name = re.sub("[^A-Za-z0-9_.-]+", "-", ascii_text)[:_MAX_NAME].strip("-")
    name = name if len(name) >= _MIN_NAME else f"user-{name}".strip("-")
    yield name
    yield from (f"{name}-{number}" for number in range(2, _NUMBERED))
    yield f"{name}-{secrets.token_hex(4)}"


def add(email: str, wish: str, connect: Callable[[int], object] = lambda _user_id: None) -> int:
    """Register a user without a password, with a name like `wish`, and call `connect` in the same
    transaction."""
    for username in _usernames(wish):
        members = load(ManagedUser.creates(), {"email": email, "username": username})
        try:
            with in_transaction():
                user_id = int(register(members)["id"])
                connect(user_id)
            return user_id
        except psycopg2.IntegrityError as error:
            violated = errors.from_constraint(error)
            if violated is None or violated.code != "username_taken":
                raise
    raise AppError("username_taken")


def connect(user_id: int, person: Person) -> None:
    if repository.connect(*person.identity, user_id=user_id) is None:
        raise AppError("identity_taken", name=settings().oidc_name)


def known(person: Person) -> int | None:
    """Return the user of a person who is connected, or None."""
    return repository.use(*person.identity)


def of_person(person: Person) -> int:
    """Return the user of a person. Of concurrent first sign-ins one adds the user, whom the others
    find."""
    provider = settings().oidc_name
    user_id = known(person)
    if user_id is None and person.has_verified_email and settings().oidc_match_email:
        user_id = repository.connect(*person.identity, email=person.email)
    if user_id is not None:
        return user_id
    if not is_welcome(person.email, is_verified=person.has_verified_email):
        raise AppError("account_none", name=provider)
    if not person.email:
        raise AppError("account_no_email", name=provider)
    try:
        return add(person.email, person.username or person.email, lambda user_id: connect(user_id, person))
    except (AppError, psycopg2.IntegrityError) as error:
        violated = errors.as_app_error(error)
        if violated is None or violated.code not in ("email_taken", "identity_taken"):
            raise
        if user_id := known(person):
            return user_id
        raise AppError("account_exists", name=provider, email=person.email) from None


def grant(user_id: int, groups: frozenset[str]) -> None:
    """Give a user what the groups give, and take what they no longer give. The last administrator
    remains one, and a suspended user does not become one."""
    grants = [right for _, right in settings().oidc_groups]
    rights = [right for group, right in settings().oidc_groups if group in groups]
    if "admin" in grants and users.owner(user_id)["admin"] != ("admin" in rights):
        refused = errors.refusal(
            lambda: users.update(user_id, by=None, admin="admin" in rights),
            "last_administrator", "administrator_suspended",
        )  # fmt: skip
        if refused:
            current_app.logger.warning("groups of user %s: %s", user_id, refused.message)
    names = [name.removeprefix("plan:") for name in grants if name != "admin"]
    if names:
        ids = {plan["name"]: plan["id"] for plan in plans.all_plans() if not plan["free"]}
        if missing := [name for name in names if name not in ids]:
            current_app.logger.error("%sOIDC_GROUPS: no premium plan is named %s", PREFIX, ", ".join(missing))
        plan_ids = [ids[name] for name in names if name in ids]
        chosen = next((ids[name] for name in names if name in ids and f"plan:{name}" in rights), None)
        repository.grant_plan(user_id, chosen, mapped=plan_ids)
