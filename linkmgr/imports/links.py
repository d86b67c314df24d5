"""Check a batch of imported links, and store it."""

from collections import Counter
from collections.abc import Container
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlsplit

import psycopg2

from linkmgr.db.statements import MAX_BIGINT, Row
from linkmgr.db.transaction import undoable
from linkmgr.errors import AppError, as_app_error
from linkmgr.fields.bodies import load
from linkmgr.fields.problems import invalid
from linkmgr.imports.rows import ImportRow
from linkmgr.repository import bulk, imported, urls
from linkmgr.resources.urls import Link
from linkmgr.settings import settings

MAX_ALIAS = 50
MAX_CHANNELS = 100  # of a row
MAX_TITLE = 255
_TRIES = 3  # for a free alias, while other transactions take some


class Sent(NamedTuple):
    """A row of the source that could be read and checked."""

    body: Row
    link: Row  # of bulk.add_links
    clicks: int | None
    moved_from: str = ""  # the host of the source, if the user does not have it
    is_cut: bool = False  # its title was too long

    def set_channels(self, ids: list[int]) -> None:
        if ids:
            self.body["channel"] = self.link["channel"] = ids

    @property
    def name(self) -> Row:
        return {"alias": self.link.get("custom") or self.link.get("alias", ""), "host": self.link.get("domain", "")}


class Outcome(NamedTuple):
    kind: str  # made, updated, skipped or failed
    id: int | None = None
    code: str = ""
    message: str = ""


def failure(error: Exception) -> Outcome:
    """Return the outcome of a row that was refused. Raise errors that are not about the row, such as busy ones."""
    app_error = as_app_error(error)
    if app_error and app_error.seconds is None and app_error.code != "key_unknown":
        return Outcome("failed", None, app_error.code, app_error.message)
    raise error


def check(row: ImportRow, hosts: Container[str]) -> Sent | Outcome:
    """Return the link of a row, or the reason why it cannot be stored.

    The domain of the source is kept if it is one of `hosts`, the branded domains of the user. Otherwise the link moves
    to our own host.
    """
    if row.problem:
        return Outcome("failed", None, "invalid", row.problem)
    if len(row.tags) > MAX_CHANNELS and len(row.channels) > MAX_CHANNELS:
        return failure(invalid(f"tags must have at most {MAX_CHANNELS} names"))
    body: Row = {name: value for name, value in row.record.items() if name != "domain"}
    if generated := body.pop("alias", ""):
        body["custom"] = generated
    host = row.foreign_host
    if host in hosts:
        body["domain"] = host
    title = str(body.get("metatitle", ""))
    if len(title) > MAX_TITLE:
        body["metatitle"] = title[:MAX_TITLE]
    try:
        link = Link.to_row(load(Link.creates(), body))
    except AppError as error:
        return failure(error)
    if generated:
        link["alias"] = link.pop("custom")
        del body["custom"]
    if row.created and row.created < datetime.now(UTC).isoformat(" "):
        link["created"] = f"{row.created}+00"
    moved_from = host if host and host not in hosts else ""
    return Sent(body, link, row.clicks, moved_from, len(title) > MAX_TITLE)


def store_checked(user_id: int, checked: list[Sent | Outcome], details: Row) -> list[Outcome]:
    """Store those links of a batch that are in order, in a transaction. Return the outcomes of all."""
    sent = [row for row in checked if isinstance(row, Sent)]
    stored = iter(store(user_id, sent, details) if sent else ())
    return [next(stored) if isinstance(row, Sent) else row for row in checked]


def store(user_id: int, sent: list[Sent], details: Row) -> list[Outcome]:
    last_id = imported.last_id()
    for row in sent:
        if row.clicks:
            row.link["imported_clicks"] = min(row.clicks, MAX_BIGINT)
    outcomes = _add(user_id, [row.link for row in sent], last_id)
    # Any given alias needs the plan's feature, also one that was generated elsewhere.
    conflicts = [
        n
        for n, outcome in enumerate(outcomes)
        if outcome.code == "alias_taken" or (outcome.code == "plan_feature" and "custom" not in sent[n].link)
    ]
    conflicts = _regenerate(user_id, sent, outcomes, conflicts, last_id)
    if conflicts:
        rows = [sent[n] for n in conflicts]
        match details["on_conflict"]:
            case "skip":
                resolved = _skip(user_id, rows, details["first_id"])
            case "rename":
                resolved = _rename(user_id, rows, last_id)
            case _:
                resolved = _update(user_id, rows)
        for n, outcome in zip(conflicts, resolved, strict=True):
            outcomes[n] = outcome
    for n, row in enumerate(sent):
        if row.moved_from and outcomes[n].code == "alias_taken":
            outcomes[n] = _clash(row)
    # Links that are updated get the clicks of the source. Those in our own export include what the link already has.
    sets_clicks = details["source"] not in ("linkmgr", "account")
    clicks = {
        outcome.id: min(row.clicks, MAX_BIGINT)
        for row, outcome in zip(sent, outcomes, strict=True)
        if sets_clicks and outcome.id and row.clicks is not None and outcome.kind == "updated"
    }
    if clicks:
        imported.count_clicks(user_id, clicks, subtract=False)
    return outcomes


def _add(user_id: int, links: list[Row], last_id: int) -> list[Outcome]:
    """Store links. A link of which only the URL is known may exist already, or be twice in the batch."""
    outcomes, made = [], set()
    for result in bulk.add_links(user_id, links):
        if "code" in result:
            outcomes.append(Outcome("failed", None, result["code"], result["message"]))
            continue
        is_new = result["id"] > last_id and result["id"] not in made
        made.add(result["id"])
        outcomes.append(Outcome("made" if is_new else "skipped", result["id"]))
    return outcomes


def _regenerate(
    user_id: int, sent: list[Sent], outcomes: list[Outcome], conflicts: list[int], last_id: int
) -> list[int]:
    """Generate other aliases for links whose generated alias another user has, or the plan denies. Return the other
    conflicts."""
    generated = [n for n in conflicts if "custom" not in sent[n].link]
    if not generated:
        return conflicts
    existing = imported.find_own(user_id, [sent[n].name for n in generated])
    foreign = [n for n, link in zip(generated, existing, strict=True) if link["id"] is None]
    links = [{name: value for name, value in sent[n].link.items() if name != "alias"} for n in foreign]
    for n, outcome in zip(foreign, _add(user_id, links, last_id), strict=True):
        outcomes[n] = outcome
    return [n for n in conflicts if n not in foreign]


def _clash(row: Sent) -> Outcome:
    alias = row.name["alias"]
    old, new = f"{row.moved_from}/{alias}", f"{urlsplit(settings().base_url).netloc}/{alias}"
    message = f"{old} would become {new}, which is already in use. Choose another alias, or add the domain."
    return Outcome("failed", None, "alias_taken", message)


def _taken() -> Outcome:
    return failure(AppError("alias_taken"))


def _skip(user_id: int, sent: list[Sent], first_id: int) -> list[Outcome]:
    """Skip links that the user has already. An alias of another user is a failure, and so is the one of an earlier row
    with another target: their domains differ in the source, but not here."""
    existing = imported.find_own(user_id, [row.name for row in sent])
    return [
        Outcome("skipped", link["id"])
        if link["id"] and (link["id"] <= first_id or link["url"] == row.link["url"])
        else _taken()
        for row, link in zip(sent, existing, strict=True)
    ]


def _rename(user_id: int, sent: list[Sent], last_id: int) -> list[Outcome]:
    """Add the smallest free number to each alias."""
    outcomes: dict[int, Outcome] = {}
    remaining = [*range(len(sent))]
    for _ in range(_TRIES):
        used: Counter[tuple[str, str]] = Counter()  # rows of this batch with the same alias
        names = []
        for n in remaining:
            alias, host = sent[n].name["alias"][: MAX_ALIAS - 4], sent[n].name["host"]
            names.append({"alias": alias, "host": host, "number": used[alias, host]})
            used[alias, host] += 1
        links = [
            sent[n].link | {"custom": f"{name['alias']}-{suffix}" if suffix else sent[n].name["alias"]}
            for n, name, suffix in zip(remaining, names, imported.free_suffixes(user_id, names), strict=True)
        ]
        outcomes |= dict(zip(remaining, _add(user_id, links, last_id), strict=True))
        remaining = [n for n in remaining if outcomes[n].code == "alias_taken"]
        if not remaining:
            break
    return [outcomes[n] for n in range(len(sent))]


def _update(user_id: int, sent: list[Sent]) -> list[Outcome]:
    """Write the members of each row to the user's link with its alias."""
    existing = imported.find_own(user_id, [row.name for row in sent])
    return [
        _change(user_id, link["id"], row) if link["id"] else _taken() for row, link in zip(sent, existing, strict=True)
    ]


def _change(user_id: int, link_id: int, row: Sent) -> Outcome:
    try:
        with undoable():
            changes = Link.to_changes(load(Link.updates(), row.body))
            if "password_hash" in row.link and "password" not in row.body:  # only a zip has the hash itself
                changes |= {"password_hash": row.link["password_hash"], "changed": True}
            urls.update(user_id, link_id, **changes)
    except (AppError, psycopg2.IntegrityError) as error:
        return failure(error)
    return Outcome("updated", link_id)
