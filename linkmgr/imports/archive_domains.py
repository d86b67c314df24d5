"""Check the domains of an exported account before the transaction of their batch, because other hosts may be slow."""

from typing import Any

from linkmgr.imports.archive import Line
from linkmgr.imports.links import Loader, failure
from linkmgr.repository import imported_links
from linkmgr.web.errors import AppError

Checks = dict[int, bool | AppError]  # by the number of the line; false if checks are off


def check(user_id: int, rows: list[Any], loader: Loader) -> Checks:
    """Check the domains of a batch that the user does not have yet. Rows of other sources have none."""
    lines = [row for row in rows if isinstance(row, Line) and row.kind == "domains" and not row.problem]
    own = imported_links.own_hosts(user_id, [_host(line) for line in lines]) if lines else set()
    return {line.number: AppError("domain_taken") if _host(line) in own else _check(line, loader) for line in lines}


def _host(line: Line) -> str:
    return str(line.record.get("domain")).partition("://")[2]


def _check(line: Line, loader: Loader) -> bool | AppError:
    try:
        return loader.check_domain(line.record)
    except AppError as error:
        failure(error)  # raises an error after which the batch is repeated
        return error
