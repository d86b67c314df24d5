"""flask --app app webhooks ..."""

import threading

import click

from linkmgr.cli.group import Group
from linkmgr.events.worker import Dispatcher
from linkmgr.fields.base import MAX_ID
from linkmgr.repository import users, webhooks
from linkmgr.web.errors import AppError

group = Group("webhooks", help="List and test webhooks.")


@group.command("list")
@click.argument("name")
def list_webhooks(name: str) -> None:
    """Print the webhooks of a user, one per line."""
    click.echo(f"{'id':>6}  {'name':<20}  {'state':<8}  {'events':<24}  url")
    for webhook in webhooks.index(_user_id(name), limit=1000, number=1, after=None).rows:
        state = "active" if webhook["active"] else "off"
        events = " ".join(webhook["events"])
        click.echo(f"{webhook['id']:>6}  {webhook['name']:<20}  {state:<8}  {events:<24}  {webhook['url']}")


@group.command("test")
@click.argument("name")
@click.argument("webhook_id", type=click.IntRange(1, MAX_ID))
def test_webhook(name: str, webhook_id: int) -> None:
    """Send a test event to a webhook of a user and print the response."""
    user_id = _user_id(name)
    try:
        webhooks.test(user_id, webhook_id)
    except AppError as error:
        raise click.ClickException(f"{name} has no webhook with id {webhook_id}: see 'webhooks list'.") from error
    Dispatcher().run(threading.Event())
    deliveries = webhooks.deliveries(user_id, webhook_id, limit=1, number=1, after=None).rows
    if not deliveries or deliveries[0]["type"] != "webhook.test":
        raise click.ClickException("The webhook has no URL, or is turned off.")
    [delivery] = deliveries
    if delivery["state"] != "delivered":
        raise click.ClickException(f"The test event was not delivered. {_outcome(delivery)}")
    click.echo(f"The test event was delivered. {_outcome(delivery)}")


def _outcome(delivery: dict[str, object]) -> str:
    status = f"Status {delivery['status']}: " if delivery["status"] else ""
    return f"{status}{delivery['response']}"


def _user_id(name: str) -> int:
    try:
        return users.find_id(name)
    except AppError as error:
        raise click.ClickException(f"There is no user named {name!r}. 'users list' prints all names.") from error
