from typing import Any

import click

from linkmgr.cli.group import Group
from linkmgr.cli.users import find_id
from linkmgr.core.database.statements import Row
from linkmgr.core.fields.base import MAX_ID
from linkmgr.core.fields.bodies import load
from linkmgr.core.fields.query import MAX_LIMIT
from linkmgr.core.fields.rotation import MAX_OVERLAP
from linkmgr.features.scoped_keys import repository as api_keys
from linkmgr.features.scoped_keys.schema import Key, create_key, rotate_secret

group = Group("keys", help="List, add, rotate and delete the API keys of a user.")
_KEY_ID = click.IntRange(1, MAX_ID)


def _limits(key: Row) -> str:
    named = {
        "domains": key["domains"],
        "from": key["allowed_ips"],
        "until": key["expires"] and [key["expires"]],
    }
    texts = [f"{name} {' '.join(map(str, values))}" for name, values in named.items() if values]
    return "; ".join([*(["own rows only"] if key["own_only"] else []), *texts])


@group.command("list")
@click.argument("user")
def list_keys(user: str) -> None:
    """Print the keys of a user, newest first, one per line."""
    user_id = find_id(user)
    click.echo(f"{'id':>6}  {'key':<12}  {'name':<20}  {'last used':<16}  scopes")
    for key in api_keys.index(user_id, limit=MAX_LIMIT, number=1, after=None).rows:
        used, limits = (key["last_used"] or "never")[:16], _limits(key)
        allowed = " ".join(key["scopes"]) + (f" ({limits})" if limits else "")
        click.echo(f"{key['id']:>6}  {key['prefix'] + '...':<12}  {key['name']:<20}  {used:<16}  {allowed}")
    default = api_keys.default(user_id)
    state = "everything" if default["active"] else "turned off"
    click.echo(f"{'':>6}  {default['prefix'] + '...':<12}  {default['name']:<20}  {'':<16}  {state}")


@group.command("add")
@click.argument("user")
@click.argument("name")
@click.option(
    "--scope",
    "names",
    multiple=True,
    required=True,
    help="A scope such as links:create. Repeat the option for more.",
)
@click.option(
    "--domain", "domains", type=_KEY_ID, multiple=True, help="Id of a branded domain to limit the key to."
)
@click.option("--own-only", is_flag=True, help="Limit the key to the rows that it creates.")
@click.option("--expires", help="The time in UTC when the key stops working, such as '2030-12-31 23:59:59'.")
@click.option(
    "--allow-ip", "allowed_ips", multiple=True, help="IP address or network that the key can be used from."
)
def add_key(user: str, name: str, names: tuple[str, ...], **limits: Any) -> None:
    """Add a key and print it. It is not shown again."""
    user_id = find_id(user)
    arrays = {member: list(limits.pop(member)) for member in ("domains", "allowed_ips")}
    members = load(Key.creates(), {"name": name, "scopes": list(names)} | limits | arrays)
    click.echo(create_key(user_id, members)["key"])


@group.command("rotate")
@click.argument("user")
@click.argument("key_id", type=_KEY_ID)
@click.option(
    "--overlap",
    type=click.IntRange(0, MAX_OVERLAP),
    default=0,
    help="Seconds for which the previous key still works.",
)
def rotate_key(user: str, key_id: int, overlap: int) -> None:
    """Replace a key and print the new one."""
    click.echo(rotate_secret(find_id(user), key_id, overlap=overlap)["key"])


@group.command("delete")
@click.argument("user")
@click.argument("key_id", type=_KEY_ID)
def delete_key(user: str, key_id: int) -> None:
    """Delete a key. It stops working at once."""
    api_keys.delete(find_id(user), key_id)
    click.echo(f"Key {key_id} of {user} has been deleted.")


@group.command("default")
@click.argument("user")
@click.argument("state", type=click.Choice(["on", "off"]))
def turn_default(user: str, state: str) -> None:
    """Turn the key that each user has on or off."""
    api_keys.set_default(find_id(user), active=state == "on")
    click.echo(f"The default key of {user} has been turned {state}.")
