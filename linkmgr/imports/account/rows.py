"""Store the lines of an exported account, with references between rows."""

import re
from collections.abc import Callable
from itertools import groupby
from typing import Any

import psycopg2
from argon2 import extract_parameters
from argon2.exceptions import InvalidHashError

from linkmgr.db.statements import Row
from linkmgr.db.transaction import undoable
from linkmgr.errors import AppError
from linkmgr.fields.times import parse_time
from linkmgr.imports import links
from linkmgr.imports.account import visits as account_visits
from linkmgr.imports.account.zip_file import Line
from linkmgr.imports.batch import Batch
from linkmgr.imports.links import Loader, Outcome, Sent, failure
from linkmgr.qr import logos
from linkmgr.repository import channels, export, import_rows, imported_links, imported_rows
from linkmgr.resources.campaigns import Campaign
from linkmgr.resources.channels import Channel
from linkmgr.resources.domains import Domain
from linkmgr.resources.overlay import Overlay
from linkmgr.resources.pixels import Pixel
from linkmgr.resources.splash import Splash
from linkmgr.web import passwords

# Rows that are reused if the user has the same one: the members that make them the same, and the user's rows.
_SAME: dict[str, tuple[tuple[str, ...], export.Batch]] = {
    "domains": (("domain",), Domain.batch),
    "campaigns": (("name",), Campaign.batch),
    "channels": (("name",), Channel.batch),
    "pixels": (tuple(Pixel.creates()().fields), Pixel.batch),
    "splash": (tuple(Splash.creates()().fields), Splash.batch),
    "overlays": (tuple(Overlay.creates()().fields), Overlay.batch),
}
_LINK = ("url", "custom", "domain", "expiry", "type", "geotarget", "devicetarget", "languagetarget", "parameters",
         "metatitle", "metadescription", "metaimage", "description", "pixels", "campaign", "channel", "deeplink",
         "status")  # fmt: skip
Checks = dict[int, bool | AppError]  # of domains, by the number of the line; false if checks are off


def check_domains(user_id: int, lines: list[Line], loader: Loader) -> Checks:
    """Check the domains of a batch that the user does not have yet. Other hosts may be slow, so this is done before the
    transaction of the batch."""
    lines = [line for line in lines if line.kind == "domains" and not line.problem]
    own = imported_links.own_hosts(user_id, [_host(line) for line in lines]) if lines else set()
    return {line.number: AppError("domain_taken") if _host(line) in own else _check(line, loader) for line in lines}


def _check(line: Line, loader: Loader) -> bool | AppError:
    try:
        return loader.check_domain(line.record)
    except AppError as error:
        failure(error)  # raises an error after which the batch is repeated
        return error


class Store:
    """The lines of a batch, in a transaction."""

    def __init__(self, user_id: int, import_id: int, rule: links.Rule, loader: Loader, checks: Checks) -> None:
        self.user_id, self.import_id, self.rule, self.loader = user_id, import_id, rule, loader
        self.checks = checks
        self.batch = Batch()
        self.is_mended = False

    def run(self, lines: list[Line]) -> Batch:
        self.is_mended = any(line.is_mended for line in lines)
        special: dict[str, Callable[[list[Line]], None]] = {
            "links": self._links,
            "qr": self._codes,
            "logos": self._logos,
            "bio": self._bio_pages,
            "answers": self._answers,
            "visits": self._visits,
        }
        for kind, group in groupby(lines, key=lambda line: line.kind):
            valid = []
            for line in group:
                if line.problem:
                    self.batch.count(line, Outcome("failed", None, "invalid", line.problem))
                else:
                    valid.append(line)
            if valid:
                special.get(kind, self._rows)(valid)
        return self.batch

    # --- references

    def ids(self, kind: str, names: list[Any], *, made: bool = False) -> dict[str, int]:
        """Return the ids of rows by their ids in the source. With `made`, only of those that this import made: visits
        and answers of others are not repeated."""
        texts = list({str(name) for name in names if isinstance(name, int | str)})
        if self.is_mended:
            numbers = [int(text) for text in texts if re.fullmatch("[0-9]{1,18}", text)]
            return imported_rows.own_ids(self.user_id, kind, numbers)
        return import_rows.references(self.user_id, self.import_id, kind, texts, made=made) if texts else {}

    def _keep(self, done: list[tuple[Line, Outcome]]) -> None:
        for line, outcome in done:
            self.batch.count(line, outcome)

    # --- rows of most kinds

    def _rows(self, lines: list[Line]) -> None:
        kind = lines[0].kind
        members, batches = _SAME[kind]
        existing = {
            tuple(str(row[member]) for member in members): row["id"]
            for rows in export.batches(batches, self.user_id)
            for row in rows
        }
        done = []
        for line in lines:
            key = tuple(str(line.record.get(member)) for member in members)
            outcome = Outcome("skipped", existing[key]) if key in existing else self._add(line)
            if outcome.kind == "made" and outcome.id:
                existing[key] = outcome.id
            done.append((line, outcome))
        self._keep(done)

    def _add(self, line: Line, **members: Any) -> Outcome:
        if line.kind == "domains":
            if isinstance(check := self.checks[line.number], AppError):
                return failure(check)
            members["is_checked"] = check
        record = {name: value for name, value in line.record.items() if name not in ("id", "date")} | members
        try:
            with undoable():
                row_id = self.loader.add[line.kind](self.user_id, record)
                if created := time_of(line.record.get("date")):
                    imported_rows.set_created(self.user_id, line.kind, row_id, created)
        except (AppError, psycopg2.IntegrityError) as error:
            return failure(error)
        return Outcome("made", row_id)

    def _assign(self, line: Line, outcome: Outcome, item: str, channel_ids: dict[str, int]) -> None:
        for channel in _list(line.record.get("channel")):
            if outcome.kind == "made" and outcome.id and str(channel) in channel_ids:
                channels.assign(self.user_id, channel_ids[str(channel)], outcome.id, type=item)

    def _codes(self, lines: list[Line]) -> None:
        channel_ids = self.ids("channels", [name for line in lines for name in _list(line.record.get("channel"))])
        done = []
        for line in lines:
            code = str(line.record.get("code"))
            existing = imported_rows.find_code(self.user_id, code) if re.fullmatch("[A-Za-z0-9]{1,50}", code) else None
            if existing and existing["is_own"]:
                outcome = Outcome("skipped", existing["id"])
            else:
                outcome = self._add(line, code=None if existing else code)
            self._assign(line, outcome, "qr", channel_ids)
            done.append((_with(line, outcome, channel=_found(line.record.get("channel"), channel_ids)), outcome))
        self._keep(done)

    def _logos(self, lines: list[Line]) -> None:
        ids = self.ids("qr", [line.record.get("id") for line in lines], made=True)
        for line in lines:
            if qr_id := ids.get(str(line.record.get("id"))):
                try:
                    image = logos.decode(line.record.get("image"))
                except AppError as error:
                    own = line._replace(record=line.record | {"id": qr_id})
                    self.batch.count(own, failure(error))
                else:
                    imported_rows.set_logo(self.user_id, qr_id, image)

    def _bio_pages(self, lines: list[Line]) -> None:
        channel_ids = self.ids("channels", [name for line in lines for name in _list(line.record.get("channel"))])
        done = []
        for line in lines:
            alias = str(line.record.get("alias"))
            own = imported_rows.find_bio(self.user_id, alias)
            outcome = Outcome("skipped", own) if own else self._add(line, alias=alias)
            if outcome.code in ("alias_taken", "plan_feature") and not line.record.get("custom"):
                outcome = self._add(line, alias=None)
            self._assign(line, outcome, "bio", channel_ids)
            done.append((_with(line, outcome, channel=_found(line.record.get("channel"), channel_ids)), outcome))
        self._keep(done)

    def _answers(self, lines: list[Line]) -> None:
        ids = self.ids("overlays", [line.record.get("overlay") for line in lines], made=True)
        answers = [
            {"overlay": overlay, "answer": line.record.get("answer"), "date": time_of(line.record.get("date"))}
            for line in lines
            if (overlay := ids.get(str(line.record.get("overlay")))) and isinstance(line.record.get("answer"), dict)
        ]
        if answers:
            imported_rows.add_answers(self.user_id, answers)

    # --- links and visits

    def _links(self, lines: list[Line]) -> None:
        names = {
            "campaigns": [line.record.get("campaign") for line in lines],
            "pixels": [name for line in lines for name in _list(line.record.get("pixels"))],
            "channels": [name for line in lines for name in _list(line.record.get("channel"))],
            "splash": [line.record.get("type") for line in lines],
            "overlays": [str(line.record.get("type")).removeprefix("overlay-") for line in lines],
        }
        ids = {kind: self.ids(kind, values) for kind, values in names.items()}
        hosts = imported_links.own_hosts(self.user_id, list({_host(line) for line in lines}))
        checked: list[tuple[Line, Sent]] = []
        done: list[tuple[Line, Outcome]] = []
        for line in lines:
            try:
                checked.append((line, self._link(line, ids, hosts)))
            except AppError as error:
                done.append((line, failure(error)))
        outcomes = links.store(self.user_id, [sent for _, sent in checked], self.rule, self.loader)
        done += [(line, outcome) for (line, _), outcome in zip(checked, outcomes, strict=True)]
        done = [(_with(line, outcome, **_references(line.record, ids)), outcome) for line, outcome in done]
        self._keep(done)

    def _link(self, line: Line, ids: dict[str, dict[str, int]], hosts: set[str]) -> Sent:
        record = line.record
        body = {name: record[name] for name in _LINK if name in record}
        body |= _references(record, ids)
        body |= {"domain": _host(line) if _host(line) in hosts else "", "custom": record.get("alias")}
        link = self.loader.prepare(body)
        if not record.get("custom"):
            link["alias"] = link.pop("custom", None)
        if record.get("password_hash"):
            link["password_hash"] = _password_hash(record["password_hash"])
        if created := time_of(record.get("date")):
            link["created"] = created
        link["plain"] = record.get("plain") is True
        clicks = _count(record.get("clicks")) + _count(record.get("imported_clicks"))
        moved_from = "" if _host(line) in hosts else _host(line)
        return Sent({name: value for name, value in body.items() if name != "custom"}, link, clicks or None, moved_from)

    def _visits(self, lines: list[Line]) -> None:
        targets = [line.record.get("target") for line in lines]
        ids = self.ids("qr", targets, made=True) | self.ids("links", targets, made=True)
        for line in lines:
            tracked_id = ids.get(str(line.record.get("target")))
            if tracked_id and (visit := account_visits.convert(self.user_id, tracked_id, line.record)):
                self.batch.visits.append(visit)


def _with(line: Line, outcome: Outcome, **members: Any) -> Line:
    """Return a line that failed with references to rows of the account, so that it can be mended and sent again."""
    if outcome.kind != "failed":
        return line
    return line._replace(record={name: members.get(name, value) for name, value in line.record.items()})


def _references(record: Row, ids: dict[str, dict[str, int]]) -> Row:
    """Return the members of a link that refer to rows, with the ids of the account."""
    return {
        "campaign": ids["campaigns"].get(str(record.get("campaign")), 0),
        "pixels": _found(record.get("pixels"), ids["pixels"]),
        "channel": _found(record.get("channel"), ids["channels"]),
        "type": _type(record.get("type"), ids),
    }


def _found(value: Any, ids: dict[str, int]) -> list[int]:
    return [ids[str(name)] for name in _list(value) if str(name) in ids]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int) and 0 <= value < 2**62 else 0


def _host(line: Line) -> str:
    return str(line.record.get("domain") or "").partition("://")[2]


def _type(value: Any, ids: dict[str, dict[str, int]]) -> Any:
    """Return the type of a link, with the id of its splash page or overlay."""
    if isinstance(value, int):
        return ids["splash"].get(str(value), "splash")
    if isinstance(value, str) and value.startswith("overlay-"):
        overlay_id = ids["overlays"].get(value.removeprefix("overlay-"))
        return f"overlay-{overlay_id}" if overlay_id else "direct"
    return value


def _password_hash(value: Any) -> str:
    """Return the hash, unless checking it would take much longer than checking our own."""
    try:
        parameters = extract_parameters(str(value))
    except InvalidHashError:
        raise AppError("invalid", problems="password_hash must be a hash of argon2id") from None
    costs = (parameters.memory_cost, parameters.time_cost, parameters.parallelism)
    if any(cost > limit for cost, limit in zip(costs, passwords.MAX_COSTS, strict=True)):
        raise AppError("invalid", problems="password_hash takes too long to check")
    return str(value)


def time_of(value: Any) -> str | None:
    """Return the time with its zone, or None if it is none."""
    try:
        return parse_time(str(value)).isoformat()
    except (ValueError, OverflowError):
        return None
