"""The conversions of a link, by currency, and its experiments with their verdicts."""

import orjson

from linkmgr.core.database.statements import Row, rows, run_unsynced, timestamp
from linkmgr.core.fields import shapes
from linkmgr.core.fields.member import JsonSchema
from linkmgr.features.conversions import pages
from linkmgr.features.conversions.experiments import NO_DIFFERENCE, TOO_FEW, WINNER, Arm, judge
from linkmgr.repository import link_records

_SHARE: JsonSchema = {"type": ["number", "null"], "minimum": -1, "maximum": 1, "examples": [0.02]}
_VALUES = shapes.array_of(shapes.object_of(currency="EUR", value=shapes.AMOUNT))
RECORDS: dict[str, JsonSchema] = {
    "Experiment": shapes.object_of(
        number=shapes.number(1, 1),
        started=shapes.TIMESTAMP,
        ended=shapes.or_null(shapes.TIMESTAMP),
        variants=shapes.array_of(
            shapes.object_of(
                name="Blue button",
                url=shapes.url("https://example.com/blue"),
                weight=50,
                visits=120,
                visitors=100,
                conversions=26,
                converted=shapes.number(25) | {"description": "The visitors with conversions."},
                rate={"type": "number", "minimum": 0, "maximum": 1, "examples": [0.25]},
                values=_VALUES,
            )
        ),
        verdict=shapes.object_of(
            state=shapes.choice(TOO_FEW, NO_DIFFERENCE, WINNER),
            winner=shapes.or_null("Blue button"),
            missing=shapes.number(5000),
            difference=_SHARE,
            low=_SHARE,
            high=_SHARE,
            decided=shapes.or_null(shapes.TIMESTAMP),
        ),
    ),
}
LINK = shapes.object_of(
    image=shapes.own_url("c/17.signature.gif"),
    conversions=26,
    values=_VALUES,
    experiments=shapes.array_of(shapes.ref("Experiment")),
)


def of_link(link: Row, event: str | None = None) -> Row:
    """Return the `image` of a link that was read with its conversions, of one `event` if it is not
    None, its `conversions` and their `values`, and its `experiments`, the last one first."""
    counted = link["converted"] or []
    of_all = [row for row in counted if row["of_all"]]
    experiments = [
        _experiment(
            stored,
            link["counts"],
            [row for row in counted if row["number"] == stored["number"]],
            has_decision=event is None,
        )
        for stored in reversed(link["experiments"])
    ]
    if event is None:
        for experiment in experiments[:1]:
            _keep_decision(link, experiment)
    return {"image": pages.image_url(link["id"]), **_sums(of_all), "experiments": experiments}


def _sums(counted: list[Row]) -> Row:
    total = next((row["conversions"] for row in counted if row["currency"] is None), 0)
    of_currencies = [row for row in counted if row["currency"] is not None and row["value"]]
    values = [{name: row[name] for name in ("currency", "value")} for row in of_currencies]
    return {"conversions": total, "values": values}


def _experiment(stored: Row, counts: Row, counted: list[Row], *, has_decision: bool) -> Row:
    number, arms = str(stored["number"]), []
    variants: list[Row] = []
    for variant in stored["variants"]:
        name = variant["name"]
        own = [row for row in counted if row["variant"] == name]
        visitors = counts.get(number, {}).get(name, 0)
        # An account that was restored may have conversions of fewer visitors.
        converted = min(
            max((row["converted"] for row in own if row["currency"] is None), default=0), visitors
        )
        arms.append(Arm(name, visitors, converted))
        visits = counts.get(f"{number} visits", {}).get(name, 0)
        figures = {"visits": visits, "visitors": visitors, "converted": converted, "rate": arms[-1].rate}
        variants.append(variant | figures | _sums(own))
    decision = counts.get(f"{number} decided") if has_decision else None
    verdict = decision or judge(arms)._asdict() | {"decided": None}
    verdict["decided"] = timestamp(verdict["decided"])
    times = {name: timestamp(stored[name]) for name in ("started", "ended")}
    return {"number": stored["number"], **times, "variants": variants, "verdict": verdict}


def _keep_decision(link: Row, experiment: Row) -> None:
    """Store the first verdict that has a winner: looking again must not change it."""
    verdict = experiment["verdict"]
    if verdict["winner"] and not verdict["decided"] and not experiment["ended"]:
        decided = run_unsynced(
            """
            UPDATE totals
               SET experiments = jsonb_set(experiments, ARRAY[%(place)s::text],
                                           %(verdict)s::jsonb || jsonb_build_object('decided', now()))
             WHERE tracked_id = %(link)s AND NOT experiments ? %(place)s
            RETURNING experiments -> %(place)s AS verdict
            """,
            link=link["id"],
            place=f"{experiment['number']} decided",
            verdict=orjson.dumps(verdict).decode(),
        )
        if decided:
            verdict["decided"] = timestamp(decided["verdict"]["decided"])


_looked = [0]  # the id of the last conversion at whose experiment this process has looked


def look() -> None:
    """Look at the experiments of links with new conversions that have no winner, so that one is
    found at its time and not when its owner comes back."""
    [new] = rows(
        """
        SELECT max(c.id) AS last,
               array_agg(DISTINCT ARRAY[l.user_id, l.id])
                   FILTER (WHERE variants <> '[]' AND NOT coalesce(
                       t.experiments ? (l.experiments -> -1 ->> 'number' || ' decided'), false)) AS links
          FROM (SELECT id, tracked_id FROM conversions
                 WHERE id > CASE %(after)s::bigint WHEN 0 THEN (SELECT max(id) - 1000 FROM conversions)
                                           ELSE %(after)s::bigint END
                 ORDER BY id
                 LIMIT 1000) c
          LEFT JOIN links l ON l.id = c.tracked_id
          LEFT JOIN totals t ON t.tracked_id = l.id
        """,
        after=_looked[0],
    )
    _looked[0] = new["last"] or _looked[0]
    for user_id, link_id in new["links"] or ():
        of_link(link_records.read_named(user_id, link_id))
