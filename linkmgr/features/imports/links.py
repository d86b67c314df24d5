import re
import secrets
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

import psycopg2

from linkmgr.core.database.statements import MAX_BIGINT, Row, undoable
from linkmgr.core.errors import AppError, as_app_error
from linkmgr.core.fields.aliases import MAX_ALIAS
from linkmgr.core.fields.bodies import load
from linkmgr.core.fields.problems import invalid
from linkmgr.core.settings import settings
from linkmgr.features.imports import stored_rows as imported
from linkmgr.features.imports.rows import ImportRow
from linkmgr.features.imports.sources import BY_NAME, mapping_of
from linkmgr.repository import links as stored_links
from linkmgr.schemas.links import Link, link_columns

MAX_CHANNELS = 100  # of a row
MAX_TITLE = 255
_BREAKS = re.compile(r"[\t\r\n]+")  # which a title must not have
_OWN_SOURCES = ("linkmgr", "account")  # whose clicks include ours
_TRIES = 30  # for a free number, which is one of the _SMALL numbers at first
_SMALL, _MAX_SUFFIX = 10, 999


class Outcome(NamedTuple):
    result: str  # made, updated, skipped or failed
    id: int | None = None
    code: str = ""
    message: str = ""


@dataclass
class Sent:
    body: Row = field(default_factory=dict)
    link: Row = field(default_factory=dict)  # of add_links
    clicks: int | None = None
    channels: list[str] = field(default_factory=list)  # names
    moved_from: str = ""  # the host of the source, if the user does not have it
    is_cut: bool = False  # its title was too long
    outcome: Outcome | None = None  # None until it is stored or refused

    @property
    def name(self) -> Row:
        return {"alias": self.link.get("alias", ""), "host": self.link.get("domain", "")}

    @property
    def is_generated(self) -> bool:
        return not self.link.get("custom")


def failure(error: Exception) -> Outcome:
    """Return the outcome of a row that was refused. Raise errors that are not about the row, such
    as busy ones."""
    app_error = as_app_error(error)
    if app_error and app_error.seconds is None and app_error.code != "key_unknown":
        return Outcome("failed", None, app_error.code, app_error.message)
    raise error


def skipped(row_id: int, reason: str = "You have this row already, which is kept.") -> Outcome:
    return Outcome("skipped", row_id, "import_skipped", reason)


def own_hosts(user_id: int, rows: list[ImportRow]) -> Container[str]:
    return imported.own_ids(user_id, "domains", "host", [*{row.host for row in rows}])


def check(
    row: ImportRow, hosts: Container[str], source: str = "", mapping: Mapping[str, str | None] | None = None
) -> Sent:
    """A link that cannot be stored has failed. The domain of the source is kept if it is one of
    `hosts`, the branded domains of the user. Otherwise the link moves to our own host."""
    if row.problem:
        return Sent(outcome=Outcome("failed", None, row.code, row.problem))
    if len(row.tags) > MAX_CHANNELS and len(row.channels) > MAX_CHANNELS:
        return Sent(outcome=failure(invalid(f"tags must have at most {MAX_CHANNELS} names")))
    body: Row = {
        "custom" if name == "alias" else name: value
        for name, value in row.members.items()
        if name != "domain"
    }
    if not body.get("channel"):  # an import adds links to channels, and removes them from none
        body.pop("channel", None)
    names = body.keys() & {"title", "metatitle"}
    titles = {name: _BREAKS.sub(" ", body[name]) for name in names if isinstance(body[name], str)}
    body |= {name: title[:MAX_TITLE] for name, title in titles.items()}
    host = row.foreign_host
    if host in hosts:
        body["domain"] = host
    try:
        link = link_columns(load(Link.creates(), body))
    except AppError as error:
        named = {member: column for member, column in (mapping or {}).items() if column}
        columns = mapping_of(BY_NAME.get(source), [*row.raw]) | named
        return Sent(outcome=failure(_with_columns(error, columns)))
    if "alias" in row.members and "custom" in link:
        link["custom"] = False
        del body["custom"]
    if row.created:
        link["created"] = row.created
    clicks = None if row.clicks is None else min(row.clicks, MAX_BIGINT)
    if clicks:
        link["imported_clicks"] = clicks
    return Sent(
        body,
        link,
        clicks,
        row.channels,
        "" if host in hosts else host,
        any(len(title) > MAX_TITLE for title in titles.values()),
    )


def _with_columns(error: AppError, columns: Mapping[str, str]) -> AppError:
    if error.code != "invalid" or not isinstance(error.errors, list):
        return error
    problems = []
    for entry in error.errors:
        field, problem = str(entry["field"]), str(entry["message"]).removesuffix(".")
        problems.append(
            f"'{columns[field]}' {problem.removeprefix(field).strip()}" if field in columns else problem
        )
    return AppError("invalid", problems="; ".join(problems))


def store(user_id: int, sent: list[Sent], details: Row) -> None:
    sent = [row for row in sent if not row.outcome]
    names = {name for row in sent for name in row.channels}
    channels = imported.channel_ids(user_id, [*names]) if names else {}
    for row in sent:
        row.link |= {"import_id": details["id"], "imported": "now"}
        if row.channels:
            ids = dict.fromkeys(channels[name] for name in row.channels)
            row.body["channel"] = row.link["channel"] = [*ids]
        if row.name["alias"]:
            row.link["source_host"] = row.moved_from or row.link.get("source_host")
            if details["source"] not in _OWN_SOURCES:
                row.link["source_clicks"] = row.clicks
    _add(user_id, sent, [row.link for row in sent])
    _resolve(user_id, [row for row in sent if _is_conflict(row)], details)


def _code(row: Sent) -> str:
    return row.outcome.code if row.outcome else ""


def _is_conflict(row: Sent) -> bool:
    """Return True if another alias may succeed. A plan without aliases also denies a generated
    one."""
    return _code(row) == "alias_taken" or (_code(row) == "plan_feature" and row.is_generated)


def _add(user_id: int, sent: list[Sent], links: list[Row]) -> None:
    """Store links. A link of which only the URL is known may exist already, or be twice in the
    batch."""
    for row, result in zip(sent, stored_links.add_links(user_id, links) if links else (), strict=True):
        if "code" in result:
            row.outcome = Outcome("failed", None, result["code"], result["message"])
            continue
        row.outcome = Outcome("made", result["id"]) if result["is_new"] else skipped(result["id"])


def _resolve(user_id: int, sent: list[Sent], details: Row) -> None:
    """Store or refuse links whose alias is in use. A generated one that is not the user's is
    generated again. A link that had another host is never changed, because it is another one at the
    source."""
    existing = imported.find_own(user_id, [row.name for row in sent]) if sent else []
    again, renamed = list[Sent](), list[Sent]()
    for row, link in zip(sent, existing, strict=True):
        if row.is_generated and link["id"] is None:
            again.append(row)
        elif (
            not row.name["host"]
            and (link["id"] or row.moved_from)
            and row.link.get("source_host") != link["source_host"]
        ):
            is_same = link["id"] and link["url"] == row.link["url"]
            row.outcome = _merged(row, link) if is_same else _clash(row, link["source_host"])
        elif details["on_conflict"] == "rename":
            if link["id"]:  # the copy of a link has no id of its own elsewhere
                row.link.pop("externalid", None)
            renamed.append(row)
        elif details["on_conflict"] == "update" and link["id"]:
            row.outcome = _change(user_id, link["id"], row, details["source"])
        # An alias of another user is a failure, and so is the one of an earlier row with another
        # target.
        elif link["id"] and (link["id"] <= details["first_id"] or link["url"] == row.link["url"]):
            row.outcome = skipped(link["id"])
        else:
            row.outcome = failure(AppError("alias_taken"))
    _add(user_id, again, [{name: row.link[name] for name in row.link if name != "alias"} for row in again])
    _rename(user_id, renamed)


def _merged(row: Sent, link: Row) -> Outcome:
    clicks = f" Its {row.clicks:,} clicks are not added." if row.clicks else ""
    own = urlsplit(settings().base_url).netloc
    first, second = (f"{host or own}/{row.name['alias']}" for host in (row.moved_from, link["source_host"]))
    return skipped(link["id"], f"{first} and {second} have the same target, and are one link here.{clicks}")


def _clash(row: Sent, other_host: str | None) -> Outcome:
    alias, own = row.name["alias"], urlsplit(settings().base_url).netloc
    in_use = f"is the link that was imported from {other_host}/{alias}" if other_host else "is already in use"
    message = f"{row.moved_from or own}/{alias} would become {own}/{alias}, which {in_use}."
    remedy = "Choose another alias, or add the domain."
    return Outcome("failed", None, "alias_taken", f"{message} {remedy}")


def _rename(user_id: int, sent: list[Sent]) -> None:
    """Add a number to each alias: the smallest free one, or any if the small ones are in use."""
    for number in range(2, _TRIES):
        links = []
        for row in sent:
            suffix = number if number < _SMALL else secrets.randbelow(_MAX_SUFFIX) + 1
            links.append(
                row.link | {"custom": True, "alias": f"{row.name['alias'][: MAX_ALIAS - 4]}-{suffix}"}
            )
        _add(user_id, sent, links)
        sent = [row for row in sent if _code(row) == "alias_taken"]


def _change(user_id: int, link_id: int, row: Sent, source: str) -> Outcome:
    """Write the members of a row to the user's link with its alias, and the clicks of the source.
    Those in our own exports include what the link already has."""
    try:
        with undoable():
            changes = link_columns(load(Link.updates(), row.body))
            if "password_hash" in row.link and "password" not in row.body:  # only a zip has the hash itself
                changes["password_hash"] = row.link["password_hash"]
            stored_links.update(user_id, link_id, changes)
            if row.clicks is not None and source not in _OWN_SOURCES:
                imported.count_clicks(user_id, link_id, row.clicks)
    except (AppError, psycopg2.IntegrityError) as error:
        return failure(error)
    return Outcome("updated", link_id)
