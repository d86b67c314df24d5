"""The command line: flask --app app users|plans|database|visits ..."""

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from pathlib import Path
from typing import Any

import click
import psycopg2
from cryptography.fernet import InvalidToken
from flask import Flask, current_app
from flask.cli import AppGroup

from linkmgr.api.users import NewUser
from linkmgr.db import backup, embedded, migrations
from linkmgr.db.statements import SchemaTooOld
from linkmgr.fields.base import MAX_ID, load
from linkmgr.fields.plan_limits import UNLIMITED, PlanLimits, PlanName
from linkmgr.repository import account as accounts
from linkmgr.repository import plans, purge, users
from linkmgr.settings import settings
from linkmgr.web import keys, passwords

MAX_PER_MINUTE = 1_000_000


def postgres() -> AbstractContextManager[object]:
    """The private server, for as long as a command runs; nothing where the database is elsewhere."""
    return nullcontext() if settings().database_url else embedded.server(settings().folder / "postgres")


def _sentence(error: Exception) -> str:
    match error:
        case SchemaTooOld():
            return migrations.describe()
        case psycopg2.OperationalError():
            return f"The database cannot be used: {str(error).splitlines()[0]}."
        case InvalidToken():
            return (
                "The API key was encrypted with another secret: name it in LINKMGR_SECRET_KEY_FALLBACKS, or --rotate."
            )
        case UnicodeError():
            return "An argument is not UTF-8."
    # A refusal has its sentence from the same handlers as the API's.
    with current_app.test_request_context("/api"):
        answer: Any = current_app.handle_user_exception(error)
    return str(answer[0]["message"])


class _Group(AppGroup):
    """Commands that have the database, and whose refusals are sentences rather than traces."""

    def command(  # type: ignore[override]
        self, *args: Any, **kwargs: Any
    ) -> Callable[[Callable[..., Any]], click.Command]:
        decorate = super().command(*args, **kwargs)

        def with_database(function: Callable[..., Any]) -> click.Command:
            @wraps(function)
            def wrapped(*values: Any, **named: Any) -> Any:
                with postgres():
                    try:
                        return function(*values, **named)
                    except (click.ClickException, click.exceptions.Exit):
                        raise
                    except Exception as error:
                        raise click.ClickException(_sentence(error)) from error

            return decorate(wrapped)

        return with_database


users_group = _Group("users", help="Users and their API keys.")
plans_group = _Group("plans", help="What users can be subscribed to.")
database_group = _Group("database", help="The database and its schema.")
visits_group = _Group("visits", help="What is kept of visits.")


@users_group.command("add")
@click.argument("name")
@click.argument("email")
@click.option("--admin", is_flag=True, help="Make the user an administrator.")
@click.option("--plan", type=int, help="The id of a premium plan.")
def add_user(name: str, email: str, admin: bool, plan: int | None) -> None:
    """Register a user and print the password that was made."""
    password = keys.new_token()
    new = load(NewUser, {"username": name, "email": email, "password": password, "planid": plan})
    new["password_hash"] = passwords.hashed(new.pop("password"))
    user_id = users.next_id()
    users.add(user_id, **keys.new_key(user_id), **new, admin=admin)
    click.echo(f"{name} has been registered. Password: {password}")


@users_group.command("key")
@click.argument("name")
@click.option("--rotate", is_flag=True, help="Replace the key first.")
def user_key(name: str, rotate: bool) -> None:
    """Print the API key of a user, and nothing else."""
    user_id = users.find_id(name)
    if rotate:
        accounts.replace_key(user_id, **keys.new_key(user_id))
    click.echo(users.read(user_id)["apikey"])


@plans_group.command("list")
def list_plans() -> None:
    """Print every plan, one JSON object a line."""
    for plan in plans.all_plans():
        click.echo(json.dumps(plan))


def _price(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,2})?", text):
        raise ValueError
    return float(text)


_price.__name__ = "price"  # as click's messages name it


def _plan_options(command: Callable[..., None]) -> Callable[..., None]:
    rate = click.IntRange(0, MAX_PER_MINUTE)
    for option in (
        click.option("--monthly", type=_price, help="The price of a month."),
        click.option("--yearly", type=_price, help="The price of a year."),
        click.option("--lifetime", type=_price, help="The price of no end."),
        click.option("--rate", type=rate, help="Its own requests per minute; 0 for none of its own."),
        click.option("--limits", default="{}", help="A JSON object with some or all members of the limits."),
    ):
        command = option(command)
    return command


def _limits(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise click.BadParameter("It must be a JSON object.", param_hint="--limits")
    return load(PlanLimits, given)


@plans_group.command("add")
@click.argument("name")
@click.option("--free", is_flag=True, help="A plan without prices and without expiry.")
@_plan_options
def add_plan(name: str, free: bool, limits: str, **numbers: float | None) -> None:
    """Add a plan; limits that are not given are unlimited."""
    given: dict[str, Any] = {member: value for member, value in numbers.items() if value}
    if free and given.keys() - {"rate"}:
        raise click.UsageError("A free plan has no prices.")
    plan = load(PlanName, {"name": name})
    plan_id = plans.add(**plan, free=free, limits=UNLIMITED | _limits(limits), **given)
    click.echo(f"{name} has been added as plan {plan_id}.")


@plans_group.command("edit")
@click.argument("plan_id", type=click.IntRange(1, MAX_ID))
@click.option("--name", help="Its new name.")
@_plan_options
def edit_plan(plan_id: int, name: str | None, limits: str, **numbers: Any) -> None:
    """Change what is given and nothing else."""
    plan = {} if name is None else load(PlanName, {"name": name})
    plans.edit(plan_id, limits=_limits(limits), **plan, **numbers)
    click.echo(f"Plan {plan_id} has been changed.")


@database_group.command("create")
def create_database() -> None:
    """Make the tables in an empty database."""
    if migrations.current_version() == 0:
        migrations.upgrade(create=True)
    migrations.require_current()
    click.echo(migrations.describe())


@database_group.command("upgrade")
def upgrade_database() -> None:
    """Bring an older database up to date."""
    migrations.upgrade(create=False)
    migrations.require_current()
    click.echo(migrations.describe())


@database_group.command("check")
def check_database() -> None:
    """Tell whether the database fits the program; exit 1 when it does not."""
    migrations.require_current()
    click.echo(migrations.describe())


@database_group.command("backup")
@click.argument("file", type=click.Path(path_type=Path))
def backup_database(file: Path) -> None:
    """Dump the database into a new file, while the service runs."""
    backup.dump(file)


@database_group.command("restore")
@click.argument("file", type=click.Path(path_type=Path, exists=True))
def restore_database(file: Path) -> None:
    """Fill an empty database from such a file, before the service starts."""
    backup.restore(file)
    migrations.require_current()
    click.echo(migrations.describe())


@visits_group.command("purge")
def purge_visits() -> None:
    """Delete the visits that are older than their owners' plans keep them."""
    purged = purge.purge()
    click.echo(f"{purged.visits} visits have been deleted, and {purged.months} months dropped.")


def init_app(app: Flask) -> None:
    for group in (users_group, plans_group, database_group, visits_group):
        app.cli.add_command(group)
