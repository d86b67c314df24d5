from linkmgr.errors import not_found
from linkmgr.fields.stats import BOTS
from linkmgr.repository import stats_counts
from linkmgr.repository.stats_scope import Owner
from linkmgr.visits.stats import Report, bounded

MINUTES = 30


def report(owner: Owner, bots: str) -> Report:
    """Return the clicks of each of the last minutes."""
    with bounded():
        rows = stats_counts.live(owner, minutes=MINUTES, bots=BOTS[bots])
    if not rows:
        raise not_found("user")
    return Report(["time", "clicks"], rows, {"clicks": sum(row["clicks"] for row in rows)}, {"bots": bots}, {})
