"""The commands of python -m linkmgr and of flask --app app."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from flask import Flask

from linkmgr.cli import users
from linkmgr.cli.group import Group
from linkmgr.core.database import backup, migrations
from linkmgr.core.database.statements import Row
from linkmgr.core.fields.aliases import own_words, reserved_words
from linkmgr.core.fields.base import MAX_ID
from linkmgr.core.fields.bodies import load
from linkmgr.core.settings import settings
from linkmgr.core.web.host import foreign_routes
from linkmgr.repository import plans, purge, taken_names
from linkmgr.schemas.plans import Plan, PlanLimits, change_plan, create_plan, price_problem

plans_group = Group("plans", help="List, add and change plans.")
database_group = Group("database", help="Create, upgrade, check, back up and restore the database.")
visits_group = Group("visits", help="Delete visits that have reached their retention period.")
GROUPS = (users.group, plans_group, database_group, visits_group)


@plans_group.command("list")
def list_plans() -> None:
    """Print all plans, one JSON object per line."""
    for stored in plans.all_plans():
        plan = {name: stored[name] for name in Plan.shown()}
        click.echo(json.dumps(plan))


def _plan_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--monthly", metavar="PRICE", help="Price per month."),
        click.option("--yearly", metavar="PRICE", help="Price per year."),
        click.option("--lifetime", metavar="PRICE", help="Price of a subscription without an end."),
        click.option("--rate", help="Requests per minute. 0: the default of LINKMGR_RATE_LIMIT."),
        click.option(
            "--limits", default="{}", help="JSON object with some or all members of the plan's limits."
        ),
    ):
        command = option(command)
    return command


def _members(limits: str, options: Row) -> Row:
    try:
        parsed = json.loads(limits)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise click.BadParameter("It must be a JSON object.", param_hint="--limits")
    return load(Plan.updates(), options) | load(PlanLimits, parsed)


@plans_group.command("add")
@click.argument("name")
@click.option("--free", is_flag=True, help="The plan has no prices and its subscriptions do not expire.")
@_plan_options
def add_plan(free: bool, limits: str, **options: str | None) -> None:
    """Add a plan. Limits that --limits does not set are unlimited."""
    plan = _members(limits, options) | {"free": free}
    if problem := price_problem(plan):
        raise click.UsageError(problem)
    click.echo(f"{plan['name']} has been added as plan {create_plan(plan)['id']}.")


@plans_group.command("edit")
@click.argument("plan_id", type=click.IntRange(1, MAX_ID))
@click.option("--name", help="New name.")
@_plan_options
def edit_plan(plan_id: int, limits: str, **options: str | None) -> None:
    """Change the given properties of a plan."""
    changes = _members(limits, options)
    if all(value is None for value in changes.values()):
        raise click.UsageError("Nothing to change: use at least one option.")
    if problem := price_problem(changes | {"free": plans.read(plan_id)["free"]}):
        raise click.UsageError(problem)
    change_plan(plan_id, changes)
    click.echo(f"Plan {plan_id} has been changed.")


@database_group.command("create")
def create_database() -> None:
    """Create the tables in an empty database."""
    if migrations.current_version() == 0:
        migrations.upgrade(create=True)
    migrations.require_current()
    click.echo(migrations.describe())


@database_group.command("upgrade")
def upgrade_database() -> None:
    """Upgrade the database to the schema of this program."""
    migrations.upgrade(create=False)
    migrations.require_current()
    click.echo(migrations.describe())


@database_group.command("check")
def check_database() -> None:
    """Print the schema version, and links that a page hides. Exit with 1 if the database is empty
    or needs an upgrade."""
    migrations.require_current()
    click.echo(migrations.describe())
    foreign = reserved_words(foreign_routes())
    for link in taken_names.hidden_links(sorted(own_words()), sorted(foreign)):
        path = f"{link['host'] or ''}/{link['alias']}"
        click.echo(
            f"The link {path} of {link['username']} leads to a page of the service. Give it another alias."
        )


@database_group.command("backup")
@click.argument("file", type=click.Path(path_type=Path))
def backup_database(file: Path) -> None:
    """Dump the database to a new file. The service may be running."""
    backup.dump(file)
    (settings().folder / backup.LAST).touch()
    click.echo(f"The database has been dumped to {file.resolve()} ({file.stat().st_size:,} bytes).")


@database_group.command("restore")
@click.argument("file", type=click.Path(path_type=Path))
def restore_database(file: Path) -> None:
    """Restore a dump into an empty database. Do this before you start the service."""
    backup.restore(file)
    migrations.require_current()
    click.echo(migrations.describe())


@visits_group.command("purge")
def purge_visits() -> None:
    """Delete expired visits, events, request counters and responses stored for Idempotency-Key, and
    reduce old statistics. Run this every day."""
    purged = purge.purge()
    (settings().folder / purge.LAST).touch()
    click.echo(f"{purged.visits} visits deleted, {purged.months} monthly partitions dropped.")


def init_app(app: Flask, groups: Iterable[click.Group]) -> None:
    """Add groups of commands. Those of the same name become one."""
    for group in groups:
        name, others = str(group.name), app.cli.commands.get(str(group.name))
        both = {**(others.commands if isinstance(others, click.Group) else {}), **group.commands}
        app.cli.add_command(Group(name, both, help=group.help))
