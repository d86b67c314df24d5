"""The dimensions of statistics, listed once. Each is a column of `visits` in schema.sql, or one of
the rows that are visited.

Parameters, filters, roll-ups, lists of visits, tables and documents are made of DIMENSIONS.
"""

from collections.abc import Iterable
from typing import NamedTuple

from linkmgr.core.fields import languages
from linkmgr.core.fields.countries import LABELS, NAMES, code_of
from linkmgr.core.settings import settings

UNKNOWN = "Unknown"  # the label of a visit of which the label is not known
OTHER = "Other"  # the sum of the labels beyond the limit of a link or QR code
CLICK, SCAN = "click", "scan"
MAX_LABEL = 100
_CODE_LENGTH = 2  # of a country and most languages
_SUMS = {UNKNOWN.lower(), OTHER.lower()}
_COUNTRIES = {*NAMES, *(name for names in NAMES.values() for name in names)}  # some databases have only codes


class AnyText:
    """Labels that visitors' browsers can invent, so that their number needs a limit."""

    is_bounded = False

    def expected(self, _value: str) -> str:
        return "a label"

    def meant(self, value: str) -> list[str]:
        """Return the labels, in lower case, that a value of a filter means, or none if there is no
        such label."""
        return [value.lower()]

    def restored(self, text: str) -> str:
        return text

    def displayed(self, label: str) -> str:
        return label or UNKNOWN


class OneOf(AnyText):
    is_bounded = True

    def __init__(self, labels: Iterable[str]) -> None:
        self._labels = dict.fromkeys(labels)

    def expected(self, _value: str) -> str:
        return f"from the list {', '.join((*self._labels, UNKNOWN.lower()))}"

    def meant(self, value: str) -> list[str]:
        return [value.lower()] if value.lower() in {*self._labels, UNKNOWN.lower()} else []

    def restored(self, text: str) -> str:
        return text if text in self._labels else UNKNOWN


class Languages(OneOf):
    """English names of languages. A filter also takes their ISO codes."""

    def __init__(self) -> None:
        super().__init__(languages.LABELS.values())

    def expected(self, value: str) -> str:
        return f"names such as German, or codes such as de; {value} is not a {_form(value)}"

    def meant(self, value: str) -> list[str]:
        label = value.lower()
        if label in languages.LABELS:
            return [languages.LABELS[label].lower()]
        if label in languages.NAMES:
            return [languages.NAMES[label][0].lower()]
        return [label] if label in _SUMS else []


class Countries(AnyText):
    """English names of countries. A filter also takes their ISO codes. A database of the
    installation may have any names."""

    def expected(self, value: str) -> str:
        return f"names such as Germany, or ISO 3166 codes such as DE; {value} is not a {_form(value)}"

    def meant(self, value: str) -> list[str]:
        label = value.lower()
        if _form(value) == "code":
            return [name.lower() for name in NAMES.get("GB" if label == "uk" else value.upper(), ())]
        return [label] if label in _SUMS | LABELS.keys() or settings().geoip_database else []

    def restored(self, text: str) -> str:
        return text if text in _COUNTRIES else LABELS.get(text.lower(), UNKNOWN)

    def displayed(self, label: str) -> str:
        code = code_of(label)
        return f"{label} ({code})" if code else super().displayed(label)


def _form(value: str) -> str:
    return "code" if len(value) == _CODE_LENGTH else "name"


class Dimension(NamedTuple):
    name: str  # of the column, the parameter and the member
    title: str  # the heading of its table
    example: str  # of a label
    filter: str  # an example of a filter
    labels: AnyText = AnyText()
    top: str = ""  # its member in the statistics of a link or a QR code
    noun: str = ""  # in a sentence, if it is not the name
    least: int = 0  # known labels; with fewer a page leaves out its table


DIMENSIONS = (
    Dimension("country", "Countries", "Germany", "DE,-US", Countries(), top="topCountries"),
    Dimension("city", "Cities", "Berlin", "Berlin", least=1),
    Dimension("referrer", "Referrers", "t.co", "t.co,news.example.com", top="topReferrers"),
    Dimension("browser", "Browsers", "Mobile Safari", "-Chrome", top="topBrowsers"),
    Dimension("os", "Systems", "iOS", "iOS,Android", top="topOs", noun="operating system"),
    Dimension("device", "Devices", "phone", "phone", OneOf(("phone", "tablet", "desktop"))),
    Dimension("language", "Languages", "German", "de", Languages()),
    Dimension("utm_source", "UTM sources", "newsletter", "newsletter,-ads", noun="UTM source", least=1),
    Dimension("utm_medium", "UTM media", "email", "email", noun="UTM medium", least=1),
    Dimension("utm_campaign", "UTM campaigns", "summer", "summer", noun="UTM campaign", least=1),
    Dimension("variant", "Variants", "B", "A,-B", least=1),
    Dimension("kind", "Clicks and scans", SCAN, SCAN, OneOf((CLICK, SCAN)), least=2),
    Dimension("rule", "Rules", "2", "1,2", least=1),
)
BY_NAME = {dimension.name: dimension for dimension in DIMENSIONS}
TITLES = {dimension.name: dimension.title for dimension in DIMENSIONS}
NOUNS = "{} and {}".format(
    ", ".join(dimension.noun or dimension.name for dimension in DIMENSIONS[:-1]), DIMENSIONS[-1].name
)
TOPS = {dimension.top: dimension.name for dimension in DIMENSIONS if dimension.top}
# Dimensions of links and QR codes, with the headings of their tables. They are found when
# statistics are counted: each but the first is a branch of `tracked_labels` in schema.sql.
TARGET, CAMPAIGN, CHANNEL, DOMAIN = "target", "campaign", "channel", "domain"
OF_ROWS = {TARGET: "Links and QR codes", CAMPAIGN: "Campaigns", CHANNEL: "Channels", DOMAIN: "Domains"}
NO_LABEL = "-"  # that of a link or QR code without one
