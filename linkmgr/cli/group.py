from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from pathlib import Path
from typing import Any

import click
import psycopg2
from cryptography.fernet import InvalidToken
from flask import current_app
from flask.cli import AppGroup

from linkmgr.core.database import embedded, folders, migrations
from linkmgr.core.database.statements import SchemaTooOld
from linkmgr.core.settings import PREFIX, settings


def _postgres() -> AbstractContextManager[object]:
    """Run the private PostgreSQL server while a command runs, unless LINKMGR_DATABASE_URL names
    another one."""
    if settings().database_url:
        return nullcontext()
    folder = settings().folder / "postgres"
    if not folders.is_running(folder):
        click.echo(_describe_folder(folder), err=True)
    return embedded.server(folder)


def _describe_folder(folder: Path) -> str:
    """Name the data folder. A shell without the settings of the service would use another database
    unnoticed."""
    data_dir = folder.parent.resolve()
    if folders.exists(folder):
        text = f"Using the data folder {data_dir}, where no service is running."
    else:
        text = f"Creating a new private PostgreSQL in the data folder {data_dir}."
    return f"{text} If the service has its data elsewhere, set {PREFIX}DATA_DIR or {PREFIX}DATABASE_URL as it does."


def _message(error: Exception) -> str:
    match error:
        case SchemaTooOld():
            return migrations.describe()
        case psycopg2.OperationalError():
            return f"The database cannot be used: {str(error).splitlines()[0]}."
        case InvalidToken():
            return (
                "The API key was encrypted with another secret. Add that secret to "
                "LINKMGR_SECRET_KEY_FALLBACKS, or replace the key with --rotate."
            )
        case OSError(filename=str() | Path() as file, strerror=str() as reason):
            return f"{file} cannot be used: {reason}."
        case UnicodeError():
            return "An argument or the standard input is not UTF-8."
    # Use the messages of the API.
    with current_app.test_request_context("/api"):
        response: Any = current_app.handle_user_exception(error)
    return str(response[0]["message"])


class Group(AppGroup):
    """Commands that use the database and report errors in one sentence, without a traceback."""

    def command(  # type: ignore[override]
        self, *args: Any, **kwargs: Any
    ) -> Callable[[Callable[..., Any]], click.Command]:
        decorate = super().command(*args, **kwargs)

        def with_database(function: Callable[..., Any]) -> click.Command:
            @wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                with _postgres():
                    try:
                        return function(*args, **kwargs)
                    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
                        raise  # click ends quietly if the reader of the output has gone
                    except Exception as error:
                        raise click.ClickException(_message(error)) from error

            return decorate(wrapped)

        return with_database
