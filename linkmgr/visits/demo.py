"""Three months of believable visits for the demonstration data, the same at each installation."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import orjson

from linkmgr.core.database.statements import rows, run
from linkmgr.visits import store
from linkmgr.visits.counting import DIRECT, Visit, social
from linkmgr.visits.dimensions import UNKNOWN

_BATCH = 500  # visits of a statement, which a slow machine also stores before its timeout
DAYS = 91
_PER_WEEKDAY = (62, 60, 58, 61, 55, 38, 30)  # visits of today, from Monday; there were fewer before
_HOURS = (2, 1, 1, 1, 1, 2, 5, 9, 12, 13, 13, 14, 16, 14, 12, 11, 11, 12, 13, 15, 16, 13, 8, 4)
_COUNTRIES = {
    "Germany": 30, "United States": 22, "France": 11, "Austria": 9, "United Kingdom": 8, "Switzerland": 6, "Japan": 5,
    "Brazil": 4, "India": 3, "Poland": 1, UNKNOWN: 1,
}  # fmt: skip
_REFERRERS = {
    DIRECT: 42, "google.com": 20, "t.co": 9, "l.instagram.com": 9, "m.facebook.com": 8, "news.ycombinator.com": 6,
    "duckduckgo.com": 4, "bakers.example.org": 2,
}  # fmt: skip
_AGENTS = {
    ("Mobile Safari", "iOS", "phone"): 27, ("Chrome Mobile", "Android", "phone"): 25,
    ("Chrome", "Windows", "desktop"): 18, ("Firefox", "Windows", "desktop"): 8, ("Safari", "Mac OS X", "desktop"): 7,
    ("Firefox", "Linux", "desktop"): 5, ("Edge", "Windows", "desktop"): 5, ("Mobile Safari", "iOS", "tablet"): 5,
}  # fmt: skip
_LANGUAGES = {
    "German": 42, "English": 34, "French": 12, "Japanese": 5, "Portuguese": 4, "Polish": 2, UNKNOWN: 1,
}  # fmt: skip
_CAMPAIGNS = {
    (UNKNOWN, UNKNOWN, UNKNOWN): 70, ("newsletter", "email", "spring"): 15, ("instagram", "social", "spring"): 9,
    ("poster", "print", "opening"): 6,
}  # fmt: skip
_BOTS = {"": 94, "Googlebot": 3, "bingbot": 2, "GPTBot": 1}


def _pick(random: Random, weights: dict[Any, int]) -> Any:
    return random.choices(list(weights), list(weights.values()))[0]


def _visit(random: Random, user_id: int, weights: dict[tuple[int, str], int], midnight: datetime) -> Visit:
    (tracked_id, kind), country, bot = _pick(random, weights), _pick(random, _COUNTRIES), _pick(random, _BOTS)
    browser, system, device = (bot, UNKNOWN, UNKNOWN) if bot else _pick(random, _AGENTS)
    referrer = DIRECT if bot else _pick(random, _REFERRERS)
    source, medium, campaign = _pick(random, _CAMPAIGNS)
    at = midnight + timedelta(hours=_pick(random, dict(enumerate(_HOURS))), seconds=random.randrange(3600))
    visitor = f"{random.randrange(1000):032x}"
    return Visit(tracked_id, user_id, at.timestamp(), visitor, country, referrer, browser, system, social(referrer),
                 bot=bool(bot), device=device, language=_pick(random, _LANGUAGES), kind=kind, utm_source=source,
                 utm_medium=medium, utm_campaign=campaign)  # fmt: skip


def add(user_id: int) -> None:
    """Add visits to all links and QR codes of the user. QR codes of Wi-Fi networks get none,
    because phones connect without this service."""
    tracked = rows(
        """
        SELECT id, 'click' AS kind FROM links WHERE user_id = %(user_id)s
         UNION ALL
        SELECT id, 'scan' FROM qrs WHERE user_id = %(user_id)s AND type <> 'wifi'
         ORDER BY id
        """,
        user_id=user_id,
    )
    weights = {(row["id"], row["kind"]): 1000 // number for number, row in enumerate(tracked, 1)}
    random, now = Random(7), datetime.now(UTC)  # noqa: S311 - not for security
    made = [
        _visit(random, user_id, weights, midnight)
        for day in range(DAYS)
        for midnight in [now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=day)]
        for _ in range(_PER_WEEKDAY[midnight.weekday()] - day // 4)
    ]
    past = [visit for visit in made if visit.at < now.timestamp()]
    spool = f"demo-{user_id}"
    for start in range(0, len(past), _BATCH):
        batch = past[start : start + _BATCH]
        text = orjson.dumps(batch).decode()
        store.create_partitions_for(text)
        store.add(spool, start, start + len(batch), text)
    store.delete_spool(spool)
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp()
    # The clicks of the plan are those that were stored in a month, whenever they happened.
    run(
        """
        UPDATE visit_months SET total = %(visits)s
         WHERE user_id = %(user_id)s AND month = this_month() AND NOT (bot OR imported)
        """,
        user_id=user_id,
        visits=sum(not visit.bot and visit.at >= month for visit in past),
    )
