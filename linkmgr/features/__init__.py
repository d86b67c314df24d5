"""Features: capabilities besides the documented service, a folder each, whose `FEATURE` says what
it registers."""

from collections.abc import Iterable
from importlib import import_module

from linkmgr.core.feature import Feature
from linkmgr.core.settings import PREFIX, InvalidSetting

# In an order in which none needs a later one
ALL = (
    "statistics",
    "utm",
    "bulk",
    "exports",
    "imports",
    "conversions",
    "health",
    "reports",
    "missing_paths",
    "scoped_keys",
    "webhooks",
    "mail",
    "signin",
    "members",
    "activity",
    "public_statistics",
)


# Exports have the visits, and the worker of webhooks moves events to the activity.
NEEDS = {"exports": "statistics", "activity": "webhooks", "public_statistics": "statistics"}


def load(names: Iterable[str]) -> list[Feature]:
    """Import the features with these names, and no others. `all` stands for all of them, `none` for
    none, and `-name` leaves one out."""
    chosen = {*names}
    if unknown := {name.removeprefix("-") for name in chosen} - {"all", "none", *ALL}:
        raise InvalidSetting(
            f"{PREFIX}FEATURES must not contain '{min(unknown)}'. Possible names: {', '.join(ALL)}."
        )
    only_left_out = bool(chosen) and all(name.startswith("-") for name in chosen)
    kept = ALL if only_left_out or "all" in chosen else chosen
    on = {name for name in kept if f"-{name}" not in chosen}
    on -= {name for name, needed in NEEDS.items() if needed not in on}
    return [import_module(f"linkmgr.features.{name}").FEATURE for name in ALL if name in on]
