"""The rows that a model expects of each tenant."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.conftest import Client

Records = dict[int, dict[str, Any]]
Changes = dict[str, Any]


class Thing(NamedTuple):
    """A row that was created and may have been deleted since."""

    kind: str
    owner: str
    id: int


@dataclass
class Tenant:
    """The expected rows of a user, by id."""

    client: Client
    pixels: Records = field(default_factory=dict)
    campaigns: Records = field(default_factory=dict)
    channels: Records = field(default_factory=dict)
    qrs: Records = field(default_factory=dict)
    links: Records = field(default_factory=dict)  # with the campaigns that they are in
    binned: dict[int, tuple[Any, list[int]]] = field(default_factory=dict)  # links and codes; channels of links
    items: dict[int, list[tuple[str, int]]] = field(default_factory=dict)  # by channel, the last assigned first
    known: dict[tuple[str, int], Any] = field(default_factory=dict)  # the records according to the events
    after: str = "0"  # the position in the events

    def of(self, kind: str) -> Records:
        records: Records = getattr(self, kind)
        return records


def taken(records: Records, sent: Changes, member: str, but: int | None = None) -> bool:
    """Return True if another record has the member that is sent."""
    value = sent.get(member)
    return bool(value) and any(record.get(member) == value for record_id, record in records.items() if record_id != but)


def path_of(kind: str) -> str:
    """Return the first part of the path of a row."""
    return "url" if kind == "links" else kind.removesuffix("s")


def path_of_item(kind: str) -> str:
    return {"links": "links", "qrs": "qr"}[kind]


def newest_first(records: Records) -> list[dict[str, Any]]:
    return [{"id": record_id} | records[record_id] for record_id in sorted(records, reverse=True)]
