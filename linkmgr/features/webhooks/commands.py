import threading
from time import monotonic, sleep

import click

from linkmgr.cli.group import Group
from linkmgr.cli.users import find_id
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields.base import MAX_ID
from linkmgr.features.webhooks import repository as webhooks
from linkmgr.features.webhooks.worker import Dispatcher

_WAIT_SECONDS, _POLL_SECONDS = 20, 0.2

group = Group("webhooks", help="List and test webhooks.")


@group.command("list")
@click.argument("name")
def list_webhooks(name: str) -> None:
    """Print the webhooks of a user, one per line."""
    click.echo(f"{'id':>6}  {'name':<20}  {'state':<8}  {'events':<24}  url")
    for webhook in webhooks.index(find_id(name), limit=1000, number=1, after=None).rows:
        state = "active" if webhook["active"] else "off"
        events = " ".join(webhook["events"])
        click.echo(f"{webhook['id']:>6}  {webhook['name']:<20}  {state:<8}  {events:<24}  {webhook['url']}")


@group.command("test")
@click.argument("name")
@click.argument("webhook_id", type=click.IntRange(1, MAX_ID))
def test_webhook(name: str, webhook_id: int) -> None:
    """Send a test event to a webhook of a user and print the response."""
    user_id = find_id(name)
    try:
        if not webhooks.read(user_id, webhook_id)["url"]:
            raise click.ClickException("This webhook has no URL. Its events are only recorded.")
        previous = _newest(user_id, webhook_id)
        webhooks.test(user_id, webhook_id)
    except AppError as error:
        missing = f"{name} has no webhook with id {webhook_id}: see 'webhooks list'."
        raise click.ClickException(missing if error.code == "missing" else error.message) from error
    delivery = _delivered(user_id, webhook_id, behind=previous["id"] if previous else 0)
    if delivery is None:
        raise click.ClickException(
            "The test event is waiting behind others. See the deliveries of the webhook."
        )
    if delivery["state"] != "delivered":
        raise click.ClickException(f"The test event was not delivered. {_outcome(delivery)}")
    click.echo(f"The test event was delivered. {_outcome(delivery)}")


def _newest(user_id: int, webhook_id: int) -> Row | None:
    return next(iter(webhooks.deliveries(user_id, webhook_id, limit=1, number=1, after=None).rows), None)


def _delivered(user_id: int, webhook_id: int, *, behind: int) -> Row | None:
    """Return the next delivery after its first attempt, which a running service may make. Return
    None if there is none in time."""
    end = monotonic() + _WAIT_SECONDS
    while monotonic() < end:
        Dispatcher().run(threading.Event())
        delivery = _newest(user_id, webhook_id)
        if delivery and delivery["id"] > behind and delivery["milliseconds"] is not None:
            return delivery
        sleep(_POLL_SECONDS)
    return None


def _outcome(delivery: dict[str, object]) -> str:
    status = f"Status {delivery['status']}: " if delivery["status"] else ""
    return f"{status}{delivery['response']}"
