import sys
from pathlib import Path
from typing import BinaryIO

import click
from tqdm import tqdm

from linkmgr.cli.group import Group
from linkmgr.cli.users import find_id
from linkmgr.core.database.statements import Row
from linkmgr.core.database.tables import in_batches
from linkmgr.core.web.streams import FORMATS, encode
from linkmgr.features.exports.handlers import OF_LINKS
from linkmgr.repository import account
from linkmgr.schemas.links import LINKS

group = Group("links", help="Import and export links.")


@group.command("export")
@click.option("--user", "name", required=True, help="The owner of the links.")
@click.option("--format", "form", type=click.Choice(tuple(FORMATS)), default="csv", show_default=True)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Default: the standard output."
)
def export_links(*, name: str, form: str, output: Path | None) -> None:
    """Export the links of a user. A file given with --output is complete or not written at all."""
    user_id = find_id(name)
    if output is None:
        _write(user_id, form, sys.stdout.buffer)
        return
    partial = output.with_name(f"{output.name}.part")
    try:
        with partial.open("wb") as file:
            _write(user_id, form, file)
        partial.replace(output)
    except OSError as error:
        raise click.ClickException(f"{error.filename} cannot be written: {error.strerror}.") from error
    finally:
        partial.unlink(missing_ok=True)


def _write(user_id: int, form: str, file: BinaryIO) -> None:
    total = account.overview(user_id)["used"].get("links", 0)
    with tqdm(total=total, unit=" links", disable=None) as bar:

        def read(user_id: int, after: int) -> list[Row]:
            batch = LINKS.exported(user_id, after)
            bar.update(len(batch))
            return batch

        file.writelines(encode(form, OF_LINKS.columns, in_batches(read, user_id)))
    file.flush()
