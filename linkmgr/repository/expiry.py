"""Expired rows, which each process deletes in the background: answers to an Idempotency-Key, events, failed rows of
imports, files that were not imported, and request counters."""

from time import monotonic

from linkmgr.repository import callers, idempotency, import_rows, imports, outbox

MAX_ROWS = 5000  # of a kind that one transaction deletes
_SECONDS = 600  # between two rounds of a process
_KINDS = (
    callers.delete_expired,
    idempotency.delete_expired,
    imports.delete_expired,
    import_rows.delete_expired,
    outbox.delete_expired,
)
_ended = [float("-inf")]  # the time at which this process last found nothing more


def delete() -> None:
    for delete_expired in _KINDS:
        while delete_expired(MAX_ROWS) == MAX_ROWS:
            pass


def delete_some() -> None:
    """Delete at most MAX_ROWS rows of each kind, unless there was nothing more a short time ago."""
    if monotonic() < _ended[0] + _SECONDS:
        return
    if max([delete_expired(MAX_ROWS) for delete_expired in _KINDS]) < MAX_ROWS:
        _ended[0] = monotonic()
