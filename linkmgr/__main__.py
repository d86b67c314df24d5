"""The command line: python -m linkmgr COMMAND ..."""

import click
from flask.cli import ScriptInfo

from linkmgr import cli, create_app

main = click.Group(
    commands=cli.GROUPS,
    help="""Administer linkmgr: users and their API keys, plans, the database, and stored visits.

    The commands read the settings (LINKMGR_...) of the environment, so run them with the settings
    of the service. They work whether the service is running or not.""",
)

if __name__ == "__main__":
    main(prog_name="python -m linkmgr", obj=ScriptInfo(create_app=create_app))
