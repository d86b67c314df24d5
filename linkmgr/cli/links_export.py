"""flask --app app links export"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Never

import click
from tqdm import tqdm

from linkmgr.api import export as api
from linkmgr.cli.links import group
from linkmgr.cli.users import find_id
from linkmgr.db.statements import Row
from linkmgr.repository import account, export
from linkmgr.web.export import FORMATS, encode

__all__ = ["group"]


@group.command("export")
@click.option("--user", "name", required=True, help="The owner of the links.")
@click.option("--format", "form", type=click.Choice(tuple(FORMATS)), default="csv", show_default=True)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Default: the standard output.")
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
    """Write all links. The bar is shown on a terminal only."""
    total = account.overview(user_id)["used"].get("links", 0)
    with tqdm(total=total, unit=" links", disable=None) as bar:
        for chunk in encode(form, api.LINKS.columns, _batches(user_id, bar)):
            file.write(chunk)
    file.flush()


def _batches(user_id: int, bar: "tqdm[Never]") -> Iterator[list[Row]]:
    for batch in export.batches(api.LINKS.batch, user_id):
        yield batch
        bar.update(len(batch))
