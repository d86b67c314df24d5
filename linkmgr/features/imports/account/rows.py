"""Store the lines of an exported account, with references between rows."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
import psycopg2
from psycopg2.errors import UniqueViolation

from linkmgr.core.database import jobs
from linkmgr.core.database.statements import Row, undoable
from linkmgr.core.database.tables import in_batches, try_lock
from linkmgr.core.errors import AppError, from_constraint
from linkmgr.core.fields import qr as qr_data
from linkmgr.core.fields.bodies import load
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.urls import MAX_URL
from linkmgr.core.web import passwords
from linkmgr.features.conversions import repository as conversions
from linkmgr.features.conversions.schema import restore_setup
from linkmgr.features.exports.account import RESOURCES
from linkmgr.features.imports import failed_rows as import_rows
from linkmgr.features.imports import links, visits
from linkmgr.features.imports import stored_rows as imported
from linkmgr.features.imports.account import experiments, reading
from linkmgr.features.imports.batches import Batch
from linkmgr.features.imports.figures import utc
from linkmgr.features.imports.links import Outcome, Sent, failure, skipped
from linkmgr.features.imports.rows import ImportRow
from linkmgr.features.public_statistics import schema as public_statistics
from linkmgr.qr import logos
from linkmgr.repository import bio, channels, qr
from linkmgr.repository.overlay import MAX_ANSWER
from linkmgr.schemas.bio import BioPage
from linkmgr.schemas.domains import Domain, add_checked_domain, prove_domain
from linkmgr.schemas.links import Link
from linkmgr.schemas.qr import QrCode, code_to_row

LOCKED_SECONDS = 0.5  # until the next try, while another import of the user stores a batch of an account
_LOCK = "\nimport"  # which no Idempotency-Key can be
# Members that refer to rows of other files. So does the type of a link.
_REFERENCES: dict[str, dict[str, tuple[str, ...]]] = {
    "answers": {"overlay": ("overlays",)},
    "links": {"campaign": ("campaigns",), "pixels": ("pixels",), "channel": ("channels",)},
    "qr": {"channel": ("channels",)},
    "logos": {"id": ("qr",)},
    "bio": {"channel": ("channels",)},
    "visits": {"target": ("qr", "links")},
    "conversions": {"link": ("links",)},
    "public": {"link": ("links",), "campaign": ("campaigns",)},
}
_TABLES = {file: stored.words.table for file, stored in RESOURCES.items()} | {"links": "links", "qr": "qrs"}
# Lines that are not repeated for rows that the user had before
_OF_MADE = ("answers", "logos", "visits", "conversions", "public")
# A row is reused if the user has one in which this member is the same; of other files, if all are.
_KEYS = {"domains": "domain", "campaigns": "name", "channels": "name", "qr": "code", "bio": "alias"}
_CODE = re.compile("(?!(?:ico|pixels|qr)$)[A-Za-z0-9_-]{1,64}")  # of URLs
_HOST = re.compile(r"[\w.:-]{1,255}")
_LINK = Link.creates()().fields.keys() - {"custom", "domain", "password"}


class Lines(Batch):
    def check(self) -> None:
        """Check a domain that the user does not have yet. Its host may be slow."""
        self._check: bool | AppError | None = False  # false if checks are off
        row = self.rows[0]
        if row.file != "domains" or row.unreadable:
            return
        try:
            if links.own_hosts(self.user_id, [row]):
                raise AppError("domain_taken")
            self._check = prove_domain(self.user_id, load(Domain.creates(), row.members))
        except (AppError, psycopg2.IntegrityError) as error:
            failure(error)  # raises an error after which the batch is repeated
            self._check = error if isinstance(error, AppError) else from_constraint(error)

    def report(self, row: ImportRow) -> dict[str, str]:
        return reading.report(row)

    def store(self) -> None:
        if not try_lock(self.user_id, _LOCK):  # so that no other import of an account makes the same row
            raise jobs.Later(LOCKED_SECONDS)
        file, good = self.rows[0].file, [row for row in self.rows if not row.unreadable]
        special: dict[str, Callable[[list[ImportRow]], None]] = {
            "links": self._links, "answers": self._answers, "visits": self._visits, "conversions": self._conversions,
            "logos": partial(self._each, imported.set_logo), "public": partial(self._each, public_statistics.restore),
            "settings": partial(self._each, restore_setup),
        }  # fmt: skip
        self.outcomes += [
            (row, Outcome("failed", None, "invalid", row.problem)) for row in self.rows if row.problem
        ]
        if good:
            self._refer(good)
            special.get(file, self._rows)(good)
        self.store_visits()

    def _refer(self, rows: list[ImportRow]) -> None:
        """Write the ids of the account in place of those of the source, or 0, so that a line that
        fails can be mended and sent again."""
        file = rows[0].file
        for member, targets in _REFERENCES.get(file, {}).items():
            sent = [row.members.get(member) for row in rows]
            lists = [value if isinstance(value, list) else [value] for value in sent]
            names = [name for names in lists for name in names]
            ids = {
                name: n
                for target in targets
                for name, n in self._ids(target, names, made=file in _OF_MADE).items()
            }
            for row, values in zip(rows, lists, strict=True):
                own = [ids[str(name)] for name in values if str(name) in ids]
                if member in row.members:
                    row.members[member] = own if member in ("pixels", "channel") else next(iter(own), 0)
        if file == "links":
            types = [str(row.members.get("type")) for row in rows]
            splash = self._ids("splash", types)
            overlays = self._ids("overlays", [name.removeprefix("overlay-") for name in types])
            for row in rows:
                if "type" in row.members:
                    row.members["type"] = _type(row.members["type"], splash, overlays)

    def _ids(self, file: str, names: list[Any], *, made: bool = False) -> dict[str, int]:
        texts = list({str(name) for name in names if isinstance(name, int | str)})
        if any(row.is_mended for row in self.rows):
            numbers = [int(text) for text in texts if re.fullmatch("[0-9]{1,18}", text)]
            return imported.own_ids(self.user_id, _TABLES[file], "id", numbers)
        return (
            import_rows.references(self.user_id, self.details["id"], file, texts, made=made) if texts else {}
        )

    # --- rows of most files

    def _rows(self, rows: list[ImportRow]) -> None:
        file = self.rows[0].file
        special = {"domains": self._create_domain, "qr": self._create_code, "bio": _create_bio}
        create = special.get(file) or RESOURCES[file].add
        members = (_KEYS[file],) if file in _KEYS else tuple(RESOURCES[file].resource.creates()().fields)
        keys = [tuple(str(row.members.get(member)) for member in members) for row in rows]
        existing = self._existing(file, members, keys)
        for row, key in zip(rows, keys, strict=True):
            outcome = skipped(existing[key]) if key in existing else self._add(row, create)
            if (
                file == "bio"
                and outcome.code in ("alias_taken", "plan_feature")
                and not row.members.get("custom")
            ):
                outcome = self._add(row, create, alias=None)
            if outcome.result == "made" and outcome.id:
                existing[key] = outcome.id
            self.outcomes.append((row, outcome))

    def _existing(
        self, file: str, members: tuple[str, ...], keys: list[tuple[str, ...]]
    ) -> dict[tuple[str, ...], int]:
        """Return the ids of the user's rows by these members: those with the key of a row, or of
        other files all."""
        if file in _KEYS:
            ids = imported.own_ids(self.user_id, _TABLES[file], _KEYS[file], [key for (key,) in keys])
            return {(key,): n for key, n in ids.items()}
        return {
            tuple(str(row[member]) for member in members): row["id"]
            for rows in in_batches(RESOURCES[file].exported, self.user_id)
            for row in rows
        }

    def _add(self, row: ImportRow, create: Callable[[int, Row], int], **members: Any) -> Outcome:
        record = {name: value for name, value in row.members.items() if name not in ("id", "date")} | members
        try:
            with undoable():
                row_id = create(self.user_id, record)
                if created := _time_of(row.members):
                    imported.set_created(self.user_id, _TABLES[row.file], row_id, created)
                for channel_id in record.get("channel", ()):
                    channels.assign(self.user_id, channel_id, row_id, type=row.file)
        except (AppError, psycopg2.IntegrityError) as error:
            return failure(error)
        return Outcome("made", row_id)

    def _create_domain(self, user_id: int, record: Row) -> int:
        """Add a domain with the image of its logo, instead of fetching it again."""
        if isinstance(self._check, AppError):
            raise self._check
        new = load(Domain.creates(), record)
        image = logos.decode(record["image"]) if record.get("image") else b""
        if not image:
            new["brandlogo"] = ""
        return int(add_checked_domain(user_id, new, is_checked=bool(self._check), image=image)["id"])

    def _create_code(self, user_id: int, record: Row) -> int:
        """Add a QR code, with a new code if no URL can have the one of the record, or if another
        user has it. The image of its logo follows."""
        new = load(QrCode.creates(), record | {"logo": None})
        source = record.get("logo")
        if isinstance(source, str) and len(source) > MAX_URL:
            raise invalid(f"logo must be at most {MAX_URL:,} characters")
        stored = code_to_row(new) | {"logo_source": source if isinstance(source, str) else ""}
        code = str(record.get("code") or "")
        if not _CODE.fullmatch(code):
            code = qr_data.new_code()
        try:
            with undoable():
                return int(qr.add(user_id, stored | {"code": code})["id"])
        except UniqueViolation:
            if imported.own_ids(user_id, "kept_qrs", "code", [code]):
                raise AppError("alias_taken", detail="code") from None
            return int(qr.add(user_id, stored | {"code": qr_data.new_code()})["id"])

    def _each(self, store: Callable[[int, Row], None], rows: list[ImportRow]) -> None:
        for row in rows:
            try:
                store(self.user_id, row.members)
            except AppError as error:
                self.outcomes.append((row, failure(error)))

    def _answers(self, rows: list[ImportRow]) -> None:
        answers: list[Row] = []
        for row in rows:
            overlay, answer = row.members.get("overlay"), row.members.get("answer")
            if not overlay or not isinstance(answer, dict):
                continue
            if len(orjson.dumps(answer)) > MAX_ANSWER:
                error = invalid(f"answer must be at most {MAX_ANSWER >> 10} KiB", "too_long")
                self.outcomes.append((row, failure(error)))
            else:
                answers.append({"overlay": overlay, "answer": answer, "date": _time_of(row.members)})
        if answers:
            imported.add_answers(self.user_id, answers)

    # --- links and visits

    def _links(self, rows: list[ImportRow]) -> None:
        hosts = links.own_hosts(self.user_id, rows)
        sent = [links.check(_to_link(row), hosts) for row in rows]
        for row, link in zip(rows, sent, strict=True):
            _add_stored(row.members, link)
        self.store_links(rows, sent)

    def _visits(self, rows: list[ImportRow]) -> None:
        for row in rows:
            tracked_id = row.members.get("target")
            if tracked_id and (visit := visits.restore(self.user_id, tracked_id, row.members)):
                self.visits.append(visit)

    def _conversions(self, rows: list[ImportRow]) -> None:
        restored = [visits.restore_conversion(row.members) for row in rows if row.members.get("link")]
        if some := [row for row in restored if row]:
            conversions.add(self.user_id, some, is_restored=True)


def _to_link(row: ImportRow) -> ImportRow:
    record = row.members
    link = {name: record[name] for name in record.keys() & _LINK}
    link |= {
        "domain": record.get("domain"),
        "custom" if record.get("custom") else "alias": record.get("alias"),
    }
    clicks = _count(record.get("clicks")) + _count(record.get("imported_clicks"))
    return ImportRow(row.number, link, created=_time_of(record), clicks=clicks or None)


def _add_stored(record: Row, sent: Sent) -> None:
    sent.body.pop("custom", None)
    sent.link |= {
        "url_only": record.get("plain") is True,
        "source_clicks": _count(record.get("source_clicks")) or None,
    }
    if history := experiments.restored(record.get("experiments"), sent.link.get("variants") or []):
        sent.link["experiments"] = history
    host = record.get("source_host")
    if isinstance(host, str) and _HOST.fullmatch(host):
        sent.link["source_host"] = host
    try:
        if record.get("password_hash"):
            sent.link["password_hash"] = passwords.imported_hash(record["password_hash"])
    except AppError as error:
        sent.outcome = failure(error)


def _create_bio(user_id: int, record: Row) -> int:
    return int(
        bio.add(user_id, load(BioPage.creates(), record) | {"custom": bool(record.get("custom"))})["id"]
    )


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int) and 0 <= value < 2**62 else 0


def _type(value: Any, splash: dict[str, int], overlays: dict[str, int]) -> Any:
    if re.fullmatch("[0-9]+", str(value), re.ASCII):
        return splash.get(str(value), "splash")
    if isinstance(value, str) and value.startswith("overlay-"):
        overlay_id = overlays.get(value.removeprefix("overlay-"))
        return f"overlay-{overlay_id}" if overlay_id else "direct"
    return value


def _time_of(record: Row) -> str | None:
    try:
        return utc(str(record.get("date")))
    except ValueError:
        return None
