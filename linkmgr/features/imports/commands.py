import stat
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import click
from tqdm import tqdm

from linkmgr.cli.group import Group
from linkmgr.cli.users import find_id
from linkmgr.core.database import jobs
from linkmgr.core.database.statements import Row
from linkmgr.core.web.uploads import Upload
from linkmgr.features.imports import bodies, job, requests, services
from linkmgr.features.imports import handlers as api
from linkmgr.features.imports import repository as imports

group = Group("links", help="Import and export links.")

_INTERRUPTED = 130  # exit status of a command that Ctrl-C ends
_COUNTS = ("made", "updated", "skipped", "failed")


def _run(user_id: int, import_id: int) -> None:
    with tqdm(total=100, unit="%", disable=None) as bar:
        done = False
        while not done:
            try:
                done = job.run_batch(user_id, import_id)
            except jobs.Later as later:
                time.sleep(later.seconds)
            progress = imports.read(user_id, import_id)
            bar.set_postfix_str(f"{progress['read']:,} rows stored", refresh=False)
            bar.update((progress["percent"] or 0) - bar.n)


def _report(record: Row) -> None:
    click.echo(
        f"{record['read']:,} rows read: " + ", ".join(f"{record[name]:,} {name}" for name in _COUNTS) + "."
    )
    if record["visits"]:
        click.echo(f"{record['visits']:,} visits stored.")


def _show(preview: Row) -> None:
    source = preview["source"] or "unknown"
    click.echo(
        f"Format: {preview['format']}. Source: {source}. Columns: {', '.join(preview['columns']) or 'none'}."
    )
    for row in preview["rows"]:
        link = row["link"]
        click.echo(
            f"{row['number']:>6}  {link.get('custom', ''):<20}  {row['problem'] or link.get('url', '')}"
        )
    for note in preview["notes"]:
        click.echo(note)


def _service(source: str, address: str | None) -> requests.Service:
    """Return the service to read. Its token comes from the terminal or the standard input, because
    other users of the host see arguments."""
    if source not in services.SERVICES:
        raise click.UsageError(f"With --address, name the service: --source {', '.join(services.SERVICES)}.")
    token = click.prompt("Token", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline().strip()
    members = {"source": source, "address": address, "token": token}
    return bodies.service({name: value for name, value in members.items() if value})


def _require_begun(user_id: int, import_id: int) -> None:
    state = imports.read(user_id, import_id)["state"]
    if state == "draft":
        raise click.ClickException(
            f"Import {import_id} has not started. Start it in the console, or import its file."
        )
    if state == "paused":
        imports.resume(user_id, import_id)


@group.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option("--user", "name", required=True, help="The user who gets the links.")
@click.option("--source", type=click.Choice(("auto", *requests.SOURCES)), default="auto", show_default=True)
@click.option("--address", help="Read this service instead of a file, and its token from the standard input.")
@click.option("--mapping", help='JSON object of members and columns, such as {"url": "Target"}.')
@click.option("--on-conflict", type=click.Choice(bodies.RULES), default=bodies.RULES[0], show_default=True)
@click.option("--dry-run", is_flag=True, help="Show what is recognized and the first rows. Store nothing.")
@click.option(
    "--resume", "import_id", type=click.IntRange(1), metavar="ID", help="Continue an import that stopped."
)
@click.option(
    "--errors", type=click.Path(path_type=Path, dir_okay=False), help="Write the failed rows to this CSV."
)
def import_links(
    *,
    file: Path | None,
    name: str,
    source: str,
    address: str | None,
    mapping: str | None,
    on_conflict: str,
    dry_run: bool,
    import_id: int | None,
    errors: Path | None,
) -> None:
    """Import links from FILE, or from the API of another service.

    Ctrl-C stops after the current batch, and the import can be resumed."""
    if [file, import_id, address].count(None) != 2:  # noqa: PLR2004
        raise click.UsageError("Name either a file, or a service with --address, or an import with --resume.")
    if file is not None and not stat.S_ISREG(file.stat().st_mode):
        raise click.UsageError("FILE must be a regular file: save the content of a pipe to one first.")
    user_id = find_id(name)
    if errors and not dry_run:
        errors.open("ab").close()  # fail before the import
    with ExitStack() as opened:
        origin: requests.File | requests.Service | None = None
        if file is not None:
            upload = Upload(opened.enter_context(file.open("rb")), file.stat().st_size, file.name)
            origin = bodies.recognize(upload, {"source": source, "mapping": mapping or "{}"})
        elif address is not None:
            origin = _service(source, address)
        if origin and dry_run:
            _show(requests.preview(user_id, origin, on_conflict))
            return
        if origin:
            import_id = requests.add(user_id, origin, on_conflict, with_job=False)
    assert import_id is not None
    _require_begun(user_id, import_id)
    try:
        _run(user_id, import_id)
    except KeyboardInterrupt:
        _report(imports.read(user_id, import_id))
        click.echo(
            f"Continue with: flask --app app links import --user {name} --resume {import_id}", err=True
        )
        sys.exit(_INTERRUPTED)
    record = imports.read(user_id, import_id)
    _report(record)
    if errors:
        with errors.open("wb") as output:
            output.writelines(api.error_lines(user_id, import_id))
    if record["state"] == "done" and record["message"]:
        click.echo(record["message"])
    if record["state"] != "done":
        raise click.ClickException(record["message"] or "The import was cancelled.")
