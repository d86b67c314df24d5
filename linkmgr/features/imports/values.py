"""Conversion of the columns of a source to an ImportRow."""

import re
from collections.abc import Mapping, Set
from typing import Any
from urllib.parse import unquote

import orjson

from linkmgr.features.imports import carried, cells, conditions, figures, states
from linkmgr.features.imports.cells import Cells
from linkmgr.features.imports.files.text import Entry
from linkmgr.features.imports.rows import LINK_MEMBERS, NESTED, ImportRow, Inactive, Unreadable
from linkmgr.features.imports.sources import ANY_SEPARATOR, Columns, Source, normalize

_SHORT_URL = re.compile(
    r"https?://([^/\s]++)/++(.*)|((?:[^/\s.]+\.)+(?!\d)[^/\s.:]{2,}(?::\d+)?)/++(.*)", re.IGNORECASE
)
_ROOT = re.compile(r"https?://([^/\s]+)/*", re.IGNORECASE)
_NEUTRALIZED = re.compile(r"'+[=+\-@\t\r]")  # what our CSV has in place of a formula
_HASH = re.compile(r"\$(?:2[abxy]?|argon2\w*|[1567HPy]|pbkdf2[\w-]*|s?crypt|bcrypt[\w-]*)\$.{10,}", re.DOTALL)
_ERROR = "error"  # the column that our CSV of failed rows adds to those of the source
_MAX_NAMES = 20  # other short URLs of a link


def tags_of(text: str, separators: str, *, may_be_json: bool) -> list[str]:
    """Return the names in a JSON array, also of objects with `name`, or in a text with one of the
    separators."""
    separator = next((mark for mark in separators if mark in text), separators[-1])
    array = _parse_array(text) if may_be_json and text.startswith("[") else None
    names = text.split(separator) if array is None else array
    texts = [name.get("name", "") if isinstance(name, dict) else name for name in names]
    return list(dict.fromkeys(name.strip() for name in texts if isinstance(name, str) and name.strip()))


def _parse_array(text: str) -> list[Any] | None:
    """Return an array of names, or None for other texts, such as the name "[Q1] Sales"."""
    try:
        names = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return names if not names or any(isinstance(name, str | dict) for name in names) else None


def split_short_url(text: str) -> tuple[str, str]:
    if match := _SHORT_URL.fullmatch(text):
        return match[1] or match[3], unquote((match[2] or match[4] or "").strip("/"))
    return "", text.strip("/")


def used_columns(source: Source | None, columns: Columns) -> set[str]:
    """Return the normalized columns that a converter reads."""
    used = {*states.WATCHED, *carried.DEVICES, _ERROR}.union(*columns.values())
    return used.union(source.short_urls, (source.card,), source.carried) if source else used


def judged_columns(source: Source | None, columns: Columns) -> set[str]:
    """Return the columns of which a converter knows what they say of a link."""
    return used_columns(source, columns).difference(states.STATUS).union(source.open if source else ())


def ignored_columns(
    source: Source | None, mapping: Mapping[str, str | None], columns: list[str]
) -> list[str]:
    if source and source.name == "linkmgr":
        return []
    used = used_columns(source, with_mapping(source, mapping))
    return [name for name in columns if normalize(name) not in used]


def asked_columns(source: Source | None, mapping: Mapping[str, str | None], columns: list[str]) -> list[str]:
    """Return the columns of which the user says that they are ignored, or whose values make rows
    fail."""
    if source and source.name == "linkmgr":
        return []
    return conditions.asked(columns, judged_columns(source, with_mapping(source, mapping)))


def with_mapping(source: Source | None, mapping: Mapping[str, str | None]) -> Columns:
    """Return the columns of a source with those that a mapping names instead, and without those
    that it ignores, whose value is None."""
    columns, ignored = dict(source.columns) if source else {}, ignored_names(mapping)
    for member, column in mapping.items():
        if column and normalize(column) not in columns.get(member, ()):
            columns[member] = (normalize(column),)
    return {member: tuple(name for name in names if name not in ignored) for member, names in columns.items()}


def ignored_names(mapping: Mapping[str, str | None]) -> set[str]:
    return {normalize(name) for name, column in mapping.items() if column is None}


class Converter:
    """Converts entries of one source. `columns` are the normalized columns of each member, the best
    first."""

    def __init__(
        self,
        source: Source | None,
        columns: Columns,
        target_column: str,
        *,
        is_csv: bool = False,
        ignored: Set[str] = frozenset(),
    ) -> None:
        self._columns, self._target_column, self._is_csv = columns, target_column, is_csv
        self._nested = {name for member in NESTED for name in columns.get(member, ())}
        self._of_text = {
            name for member in columns if member not in (*NESTED, "tags") for name in columns[member]
        }
        self._secret = set(columns.get("password", ()))
        self._separators = source.tag_separators if source else ANY_SEPARATOR
        self._is_own = source is not None and source.name == "linkmgr"
        self._has_aliases = source is not None
        self._card = source.card if source else ""
        self._root = source.root if source else ""
        self._short_urls = source.short_urls if source else ()
        self._ignored = ignored
        self._carried = {*carried.DEVICES, *(source.carried if source else ())} - ignored
        self._known = judged_columns(source, columns) | ignored

    def rows(self, number: int, entry: Entry) -> list[ImportRow]:
        """Return a link, and one for each other short URL that the source has for it. Their clicks
        are those of the first. The report of each names its own short URL only."""
        row = self.row(number, entry)
        if row.unreadable or not self._short_urls:
            return [row]
        own = {name: row.members.get(name) for name in ("domain", "custom")}
        others = [members for members in self._names(entry.values) if members != own][:_MAX_NAMES]
        if not others:
            return [row]
        first = row._replace(raw=self._named(row.raw, own)) if own["domain"] else row
        return [
            first,
            *(
                row._replace(members=row.members | members, clicks=None, raw=self._named(row.raw, members))
                for members in others
            ),
        ]

    def _named(self, raw: dict[str, str], members: Mapping[str, str | None]) -> dict[str, str]:
        short_url = f"https://{members['domain']}/{members['custom']}"
        return raw | {name: short_url for name in raw if raw[name] and normalize(name) in self._short_urls}

    def _names(self, values: Mapping[str, Any]) -> list[dict[str, str | None]]:
        cells = {normalize(name): value for name, value in values.items()}
        lists = [cell if isinstance(cell := cells.get(name), list) else [cell] for name in self._short_urls]
        texts = [text for texts in lists for text in texts]
        pairs = dict.fromkeys(split_short_url(text.strip()) for text in texts if isinstance(text, str))
        return [{"domain": host, "custom": alias} for host, alias in pairs if host and alias]

    def row(self, number: int, entry: Entry) -> ImportRow:
        row = ImportRow(number)
        try:
            values = cells.expand(entry.values, self._nested)
            # The numbers 0 and 1 of JSON say whether there is a password. As texts, they are one.
            marks = {name: bool(value) for name, value in values.items() if value in (0, 1)}
            values |= {name: mark for name, mark in marks.items() if normalize(name) in self._secret}
            texts = cells.columns(values, self._of_text)
            row = row._replace(raw=cells.report(texts, self._secret))
            if entry.problem:
                words = " ".join((*texts, *row.raw.values()))
                if cells.is_secret(words) or self._secret.intersection(map(normalize, texts)):
                    row = ImportRow(number)  # cells may be in other columns than theirs
                raise Unreadable(entry.problem)
            if any("\0" in text or "\\u0000" in text for text in row.raw.values()):
                raise Unreadable("contains a NUL character. Remove it.")
            return self._convert(row, Cells(texts, has_words_for_null=not self._is_own))
        except Unreadable as problem:
            raw = {name: text.replace("\0", "\ufffd") for name, text in row.raw.items()}
            return row._replace(unreadable=str(problem), raw=raw, code=problem.code)

    def _convert(self, row: ImportRow, values: Cells) -> ImportRow:
        texts = {member: self._value(member, values) for member in self._columns}
        members: dict[str, Any] = {member: text for member in LINK_MEMBERS if (text := texts.get(member))}
        clicks = self._clicks(texts.get("clicks", ""), values)
        if not members.get("url"):
            raise Unreadable(f"has no target. Fill in '{self._target_column}', or leave the row out.")
        may_be_json = not (self._is_own and self._is_csv) or _ERROR in values
        tags = tags_of(texts.get("tags", ""), self._separators, may_be_json=may_be_json)
        if sum(map(len, (*members.values(), *tags))) > cells.MAX_TEXT:
            raise Unreadable(f"has more than {cells.MAX_TEXT} characters for a link. Shorten them.")
        expiry = figures.time(members.get("expiry", ""), "an expiry", end_of_day=True)
        members |= {
            "starts": figures.time(members.get("starts", ""), "a start", end_of_day=False),
            "expiry": expiry,
            "maxclicks": figures.count(members.get("maxclicks", "")),
        }
        members |= {
            name: states.is_true(members[name])
            for name in ("forwardquery", "confirmclick", "clickid", "extrapath")
            if name in members
        }
        members = {member: value for member, value in members.items() if value is not None}
        if self._card and not states.is_true(values.text(self._card)):
            members = {member: text for member, text in members.items() if not member.startswith("meta")}
        others = carried.members_of(values, self._carried, members["url"])
        kept = {*self._columns.get("rules", ()), *self._ignored, *self._carried}
        states.check(values, kept, has_expiry=bool(expiry), has_rules="rules" in others)
        if not self._is_own:
            conditions.check(values, self._known)
        if self._root:
            self._check_root(values)
        self._split_alias(members)
        if self._is_own and "custom" in values and not values.word("custom") and "custom" in members:
            members["alias"] = members.pop("custom")  # generated, as our own exports say
        _check_password(members, has_password=states.has_password(values))
        for member in NESTED:
            if member in members:
                members[member] = _nested(member, members[member])
        return row._replace(
            members=_with_others(members, others),
            tags=[*dict.fromkeys([*tags, *carried.folders_of(values, self._carried)])],
            created=figures.time(texts.get("created", ""), "a creation date", end_of_day=False),
            clicks=clicks,
        )

    def _value(self, member: str, values: Cells) -> str:
        """Return the first value that is not empty, or "". Each link of a service has an alias,
        which may be a word for no value."""
        is_report = self._is_csv and _ERROR in values
        for name in self._columns[member]:
            text = values.text(name)
            if self._is_csv and (self._is_own or is_report) and _NEUTRALIZED.match(text):
                text = text[1:]
            column = values.name(name)
            if text == cells.REMOVED and (name in self._secret or cells.is_secret(name)):
                raise Unreadable(
                    f"has a '{column}' that this report does not repeat. Fill it in, or leave it empty."
                )
            if is_report and text.endswith(cells.CUT):
                raise Unreadable(f"has a '{column}' that was cut in this report. Copy it from your file.")
            is_empty = text in ("[]", "{}") and (not self._is_csv or member in NESTED)
            if text and not is_empty:
                return text
        words = (word for name in self._columns[member] if (word := values.word(name)))
        return next(words, "") if member == "custom" and self._has_aliases else ""

    def _clicks(self, text: str, values: Cells) -> int | None:
        """Return the clicks that the source counted. Our own exports have those of an earlier
        source apart."""
        clicks = figures.count(text)
        imported = figures.count(values.text("importedclicks")) if self._is_own else None
        return clicks if imported is None else (clicks or 0) + imported

    def _check_root(self, values: Cells) -> None:
        """Refuse the link at the root of a domain, which would get an alias."""
        names = filter(None, map(values.word, self._columns["custom"]))
        hosts = [self._root_host(name) for name in names]
        if hosts and None not in hosts:
            hosts += [self._value("domain", values)]
            host = next(filter(None, hosts), "its domain")
            raise Unreadable(
                f"is the start page of {host}, and no link. Set its target as `redirectroot` of "
                "that domain, and leave the row out."
            )

    def _root_host(self, name: str) -> str | None:
        """Return the host of the URL of a root, "" for its alias, and None for another name."""
        if root := _ROOT.fullmatch(name):
            return root[1]
        host, alias = split_short_url(name)
        return host if alias == self._root.strip("/") else None

    def _split_alias(self, members: dict[str, Any]) -> None:
        if host := split_short_url(members.get("domain", ""))[0]:
            members["domain"] = host
        if "custom" not in members:
            return
        host, members["custom"] = split_short_url(members["custom"])
        if host:
            members.setdefault("domain", host)
        if not members["custom"]:
            del members["custom"]


def _check_password(members: dict[str, Any], *, has_password: bool) -> None:
    """Refuse a link whose password is unknown, because everybody could open it."""
    password = members.pop("password", "")
    is_mark = password.lower() in ("", "true", "false")
    if not is_mark and not _HASH.fullmatch(password):
        members["password"] = password
    elif not is_mark or password.lower() == "true" or has_password:
        raise Inactive(
            "has a password, which the source keeps secret. Fill in 'password', or leave the row out."
        )


def _with_others(members: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Return the members, and others that the source has in another form: of arrays, all
    elements."""
    lists = {
        name: [*members[name], *others[name]]
        for name in ("devicetarget",)
        if name in members and name in others
    }
    return others | members | lists


def _nested(member: str, text: str) -> Any:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Unreadable(f"has a '{member}' that is not valid JSON. Correct it, or leave it empty.") from None
    if member == "geotarget" and isinstance(value, dict):  # as Dub has it
        return [{"location": country, "link": url} for country, url in value.items()]
    return value
