"""The verdict of an experiment, at which its owner may look at any time.

Two variants are compared by the statistic z of two proportions with pooled variance. Its product
with the square root of t, the visitors of a variant by HORIZON, is a Brownian motion if there is no
difference. It is compared with two boundaries, whose probabilities of being crossed at any time add
up to 5 %, however often one looks:

- The planned one, up to HORIZON visitors, at 4 %: z > (c + SLOPE (1 - t)) / sqrt(t). It asks little
  more of a result at the horizon than a test that looks only once. That a Brownian motion crosses a
  line is Doob's formula, as in D. Siegmund, "Sequential Analysis", Springer 1985, chapter III. To
  spend most of the error at the end follows O'Brien and Fleming (Biometrics 35, 1979), and Lan and
  DeMets (Biometrika 70, 1983).
- One that holds for ever, at 1 %, for large differences before the horizon and small ones after it:
  the mixture of H. Robbins, "Statistical methods related to the law of the iterated logarithm",
  Annals of Mathematical Statistics 41 (1970), which Johari, Koomen, Pekelis and Walsh use for
  experiments (Operations Research 70, 2022).

With more variants, all pairs share the errors (Bonferroni). A result that has a winner is stored by
the first look that finds it, and stays.
"""

from functools import lru_cache
from itertools import combinations
from math import erfc, exp, log, sqrt
from statistics import NormalDist
from typing import NamedTuple

HORIZON = 4000  # visitors of each variant
SLOPE, MIXTURE = 3, 0.1
PLANNED, ALWAYS = 0.04, 0.01  # errors
POWER = 0.8  # with which the difference is found that a verdict names
MIN_CONVERTED = 10  # in both variants, below which z is not normal
TOO_FEW, NO_DIFFERENCE, WINNER = "too_few", "no_difference", "winner"


class Arm(NamedTuple):
    name: str
    visitors: int
    converted: int  # of these visitors

    @property
    def rate(self) -> float:
        return self.converted / self.visitors if self.visitors else 0.0


class Verdict(NamedTuple):
    """`difference` is that of the rates of the `winner` and the second best with its interval from
    `low` to `high`, or the smallest one that is found after `missing` more visitors, or None."""

    state: str
    winner: str | None = None
    missing: int = 0
    difference: float | None = None
    low: float | None = None
    high: float | None = None


def _tail(x: float) -> float:
    return erfc(x / sqrt(2)) / 2


@lru_cache(maxsize=64)
def _end(error: float) -> float:
    """Return the c of the planned boundary that is crossed with a probability: by Doob's formula,
    bisected."""
    low, high = 1.0, 9.0
    for _ in range(40):
        c = (low + high) / 2
        crossed = 2 * (_tail(c) + exp(2 * SLOPE * (c + SLOPE)) * _tail(c + 2 * SLOPE))
        low, high = (c, high) if crossed > error else (low, c)
    return high


def boundary(t: float, pairs: int = 1) -> float:
    """Return the z beyond which a difference is found, at t times HORIZON visitors."""
    always = sqrt((1 + MIXTURE / t) * log((t + MIXTURE) / (MIXTURE * (ALWAYS / pairs) ** 2)))
    planned = (_end(PLANNED / pairs) + SLOPE * (1 - t)) / sqrt(t)
    return min(planned, always) if t <= 1 else always


def _time(first: Arm, second: Arm) -> float:
    """Return the visitors of a variant by HORIZON: those of equal ones that would tell as much."""
    product = first.visitors * second.visitors
    return 2 * product / (first.visitors + second.visitors) / HORIZON if product else 0.0


def _error(first: Arm, second: Arm) -> float:
    """Return the standard error of the difference of two rates that are equal."""
    pooled = (first.converted + second.converted) / (first.visitors + second.visitors)
    return sqrt(pooled * (1 - pooled) * (1 / first.visitors + 1 / second.visitors))


def _interval(best: Arm, other: Arm, pairs: int) -> tuple[float, float]:
    """Return the interval of a difference that holds at all looks together (Jennison and Turnbull,
    Journal of the Royal Statistical Society B 51, 1989)."""
    spread = sum(arm.rate * (1 - arm.rate) / arm.visitors for arm in (best, other))
    margin = boundary(_time(best, other), pairs) * sqrt(spread)
    difference = best.rate - other.rate
    return max(difference - margin, -1.0), min(difference + margin, 1.0)


def _is_better(best: Arm, other: Arm, pairs: int) -> bool:
    error = _error(best, other) if best.visitors and other.visitors else 0.0
    if best.converted + other.converted < MIN_CONVERTED or not error:
        return False
    return (best.rate - other.rate) / error > boundary(_time(best, other), pairs)


def find_winner(arms: list[Arm]) -> str | None:
    """Return the name of the variant that is better than each other one, or None."""
    best = max(arms, key=lambda arm: arm.rate)
    pairs = len(arms) * (len(arms) - 1) // 2
    return best.name if all(_is_better(best, other, pairs) for other in arms if other is not best) else None


def judge(arms: list[Arm]) -> Verdict:
    """Return the verdict on two or more variants."""
    best, second, *_ = sorted(arms, key=lambda arm: -arm.rate)
    pairs = len(arms) * (len(arms) - 1) // 2
    if winner := find_winner(arms):
        return Verdict(WINNER, winner, 0, best.rate - second.rate, *_interval(best, second, pairs))
    visitors = sum(arm.visitors for arm in arms)
    pooled = sum(arm.converted for arm in arms) / visitors if visitors else 0.0
    t = min(_time(*pair) for pair in combinations(arms, 2))
    detected = _end(PLANNED / pairs) + NormalDist().inv_cdf(POWER)
    difference = detected * sqrt(2 * pooled * (1 - pooled) / HORIZON) or None
    if t >= 1:
        return Verdict(NO_DIFFERENCE, None, 0, difference, *_interval(best, second, pairs))
    # Visitors keep coming in the shares that they have come in.
    missing = visitors * (1 - t) / t if t else HORIZON * len(arms)
    return Verdict(TOO_FEW, None, max(1, round(missing)), difference)
