import click

from linkmgr.cli.group import Group
from linkmgr.cli.users import find_id
from linkmgr.features.signin import factors

group = Group("factors", help="Remove the passkeys and one-time codes of a user.")


@group.command("reset")
@click.argument("name")
def reset(name: str) -> None:
    """Remove the passkeys and one-time codes of a user who has lost them."""
    number = factors.delete(find_id(name))
    noun = "factor" if number == 1 else "factors"
    click.echo(f"{name} has lost {number} {noun}, and signs in without any.")
