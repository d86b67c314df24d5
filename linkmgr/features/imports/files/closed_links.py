"""Links that plugins of YOURLS have closed: tables and options of passwords, ends and the like in
an SQL dump."""

from collections.abc import Set
from typing import Any

from linkmgr.features.imports.conditions import kind_of
from linkmgr.features.imports.files.text import Entry
from linkmgr.features.imports.rows import ImportRow, Inactive, ReadError
from linkmgr.features.imports.sources import normalize

_OPTIONS = {"option_name", "option_value"}
_ALIASES = ("keyword", "shorturl", "short_url", "slug")  # columns of the links that a table is about
_OPEN_KINDS = ("", "open", "state")  # of names such as `active_plugins`
_MAX_BYTES = 16 << 20  # of the options and aliases of a dump


def is_noted(name: str, columns: list[str]) -> bool:
    """Return True for the table of options, and for one that says of links that they are closed."""
    names = {*columns}
    if names >= _OPTIONS:
        return True
    is_of_links = not names.isdisjoint(_ALIASES) and not names & {"url", "click_time"}
    return is_of_links and any(kind_of(text) not in _OPEN_KINDS for text in (name, *columns))


class ClosedLinks:
    def __init__(self, ignored: Set[str]) -> None:
        """`ignored` are normalized names of tables and options that close no link."""
        self._ignored = ignored
        self._tables: dict[str, str] = {}  # by alias
        self._options: dict[str, str] = {}
        self._size = 0

    def note(self, entry: Entry | None, number: int) -> None:
        """Note an entry of such a table, behind a number of links."""
        if entry is None or entry.problem:
            return
        values = {name: str(value or "") for name, value in entry.values.items()}
        is_option = values.keys() >= _OPTIONS
        name = values["option_name"] if is_option else entry.table
        if normalize(name) in self._ignored or (kind_of(name) in _OPEN_KINDS and is_option):
            return
        text = (
            values["option_value"] if is_option else next(values[name] for name in _ALIASES if name in values)
        )
        if number and text:
            raise ReadError(
                f"'{name[:50]}' says that links before it may be closed, and they may be open now. "
                "Import a file in which it comes first."
            )
        self._size += len(name) + len(text)
        if self._size > _MAX_BYTES:
            raise ReadError(f"'{name[:50]}' is too long. Import a file without it.")
        if is_option:
            self._options[name] = text
        else:
            self._tables[text] = name

    def check(self, row: ImportRow) -> ImportRow:
        alias = str(row.members.get("custom", ""))
        name = self._tables.get(alias) or self._option_of(alias)
        if not name or row.unreadable:
            return row
        problem = (
            f"is in '{name[:50]}' of a plugin, which says that the link may be closed. Leave the "
            f"row out, or ignore '{name[:50]}'."
        )
        return row._replace(members={}, unreadable=problem, code=Inactive.code)

    def _option_of(self, alias: str) -> Any:
        return next((name for name, text in self._options.items() if f'"{alias}"' in text), None)
