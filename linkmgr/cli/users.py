import sys

import click

from linkmgr.cli.group import Group
from linkmgr.core import keys
from linkmgr.core.errors import AppError
from linkmgr.core.fields.base import MAX_ID
from linkmgr.core.fields.bodies import load
from linkmgr.core.web import passwords, session_store
from linkmgr.repository import account, users
from linkmgr.schemas.account import Account, change_account
from linkmgr.schemas.users import User, register

group = Group(
    "users", help="Add, list, change and delete users; print API keys and sign-in links; set passwords."
)


def find_id(name: str) -> int:
    try:
        return users.find_id(name)
    except AppError as error:
        raise click.ClickException(
            f"There is no user named {name!r}. 'users list' prints all names."
        ) from error


@group.command("add")
@click.argument("name")
@click.argument("email")
@click.option("--admin", is_flag=True, help="Make the user an administrator.")
@click.option("--plan", type=click.IntRange(1, MAX_ID), help="Id of a premium plan. Default: the free plan.")
def add_user(name: str, email: str, admin: bool, plan: int | None) -> None:
    """Add a user and print the generated password."""
    password = keys.new_token()
    members = load(User.creates(), {"username": name, "email": email, "password": password, "planid": plan})
    try:
        register(members, admin=admin)
    except AppError as error:
        if error.code != "plan_not_premium":
            raise
        raise click.ClickException(f"There is no premium plan with id {plan}: see 'plans list'.") from error
    click.echo(f"{name} has been registered. Password: {password}")


@group.command("list")
def list_users() -> None:
    """Print all users, newest first, one per line."""
    click.echo(f"{'id':>6}  {'name':<20}  {'e-mail':<32}  {'status':<9}  {'plan':<12}  registered")
    for user in users.summaries():
        status = user["status"] if user["suspended"] == "no" else "suspended"
        click.echo(
            f"{user['id']:>6}  {user['username']:<20}  {user['email']:<32}  {status:<9}  "
            f"{user['plan']:<12}  {user['registered'][:10]}"
        )


@group.command("key")
@click.argument("name")
@click.option("--rotate", is_flag=True, help="Replace the key first. The old key stops working.")
def user_key(name: str, rotate: bool) -> None:
    """Print the API key of a user."""
    user_id = find_id(name)
    if rotate:
        account.replace_key(user_id, **keys.new_key(user_id))
    users.note_shown_key(user_id)
    click.echo(users.read(user_id)["apikey"])


@group.command("login")
@click.argument("name")
def login_link(name: str) -> None:
    """Print a URL that signs a user in without a password. It works once, within an hour."""
    click.echo(session_store.new_link(find_id(name)))


@group.command("password")
@click.argument("name")
@click.option("--password-stdin", "from_stdin", is_flag=True, help="Read the password from standard input.")
def set_password(name: str, from_stdin: bool) -> None:
    """Set the password of a user, who is signed out in all browsers."""
    user_id = find_id(name)
    if from_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        password = click.prompt(f"New password of {name}", hide_input=True, confirmation_prompt=True)
    changes = load(Account.updates(), {"password": password})
    change_account(user_id, password_hash=passwords.hashed(changes["password"]))
    click.echo(f"The password of {name} has been changed. All browsers of this user are signed out.")


@group.command("edit")
@click.argument("name")
@click.option(
    "--admin/--no-admin", default=None, help="Appoint an administrator, or take administration away."
)
@click.option(
    "--suspended",
    type=click.Choice(["no", "access", "all"]),
    help="Refuse the keys and sessions of the user, with 'all' turn off the links, bio pages and campaigns too.",
)
def edit_user(name: str, admin: bool | None, suspended: str | None) -> None:
    """Change what a user can do."""
    if admin is None and suspended is None:
        raise click.UsageError("Nothing to change: use at least one option.")
    users.update(find_id(name), by=None, admin=admin, suspended=suspended)
    click.echo(f"{name} has been changed.")


@group.command("delete")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete_user(name: str, yes: bool) -> None:
    """Delete a user and everything that the user owns."""
    user_id = find_id(name)
    if not yes:
        links = account.overview(user_id)["used"].get("links", 0)
        noun = "link" if links == 1 else "links"
        click.confirm(f"Delete {name}, {links:,} {noun} and everything else that this user owns?", abort=True)
    users.delete(user_id, by=None)
    click.echo(f"{name} has been deleted.")
