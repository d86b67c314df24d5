from linkmgr.core.errors import not_found
from linkmgr.features.statistics import counts
from linkmgr.features.statistics.query import BOTS
from linkmgr.features.statistics.results import Report, bounded
from linkmgr.features.statistics.selection import Owner

MINUTES = 30


def report(owner: Owner, bots: str) -> Report:
    """Return the clicks of each of the last minutes."""
    with bounded():
        rows = counts.live(owner, minutes=MINUTES, bots=BOTS[bots])
    if not rows:
        raise not_found("user")
    return Report(
        ["time", "clicks"], rows, {"clicks": sum(row["clicks"] for row in rows)}, {"bots": bots}, {}
    )
