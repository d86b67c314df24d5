from uuid import uuid4

import click

from linkmgr.cli.group import Group
from linkmgr.core.settings import PREFIX, settings
from linkmgr.features.mail import messages, smtp

_NOBODY = {"id": 0, "username": "", "timezone": "UTC"}
group = Group("mail", help="Test the mail server.")


@group.command("test")
@click.argument("address")
def test_mail(address: str) -> None:
    """Send a message to an address at once, and print the response of the mail server."""
    server = settings().mail_url
    if server is None:
        raise click.ClickException(f"{PREFIX}MAIL_URL is not set.")
    try:
        recipient = messages.address(address)
    except ValueError as error:
        raise click.ClickException(f"{address!r} is not an e-mail address.") from error
    message = messages.compose("test", _NOBODY, {}, recipient=recipient, message_id=str(uuid4()))
    try:
        response = smtp.send(message, recipient.addr_spec)
    except (OSError, smtp.Refused) as error:  # also SMTPException
        raise click.ClickException(
            f"{server.host}:{server.port} did not take the message: {error}"
        ) from error
    click.echo(f"{server.host}:{server.port} took the message: {response}")
