"""The visitor of a link, as its rules and targets see one: from a request, or as `try` describes
one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from linkmgr.core.fields.countries import LABELS, NAMES, code_of
from linkmgr.core.web import request as web_request
from linkmgr.visits import counting, geoip, targets
from linkmgr.visits.dimensions import UNKNOWN
from linkmgr.visits.geoip import Country, Location


@dataclass
class Visitor:
    """Functions yield the names that rules and targets may have, the most specific first. Those of
    targets are in lower case."""

    address: str = ""
    agent: str = ""
    languages: str = ""  # the header Accept-Language
    referrer: str = ""  # a URL
    query: str = ""  # of the short URL
    time: datetime = field(default_factory=lambda: datetime.now(UTC))
    clicks: Callable[[], int] = int  # of the link so far, counted only for rules that have them
    # The statements of `try` in place of an IP address and a user agent
    country: str = ""
    city: str = ""
    device: str = ""
    os: str = ""
    browser: str = ""
    names: dict[Any, set[str]] = field(default_factory=dict)  # in lower case, that conditions have compared

    @cached_property
    def visits(self) -> int:
        return self.clicks()

    @cached_property
    def location(self) -> Location:
        location = geoip.find_location(self.address) if self.address else Location()
        name = LABELS.get(self.country.lower(), NAMES.get(self.country.upper(), [""])[0])
        country = Country(name, code_of(name)) if name else location.country
        return Location(country, self.city or location.city)

    def countries(self) -> Iterator[str]:
        yield from filter(None, [self.location.country.name])
        yield from targets.country_names(self.location.country)

    def cities(self) -> Iterator[str]:
        yield from filter(None, [self.location.city])

    def devices(self) -> Iterator[str]:
        if not (self.device or self.os):
            yield from targets.device_names(self.agent)
            return
        device = self.device.lower()
        yield from filter(None, [device])
        yield from targets.described_names(device, {self.os.lower(): None} if self.os else {})

    def systems(self) -> Iterator[str]:
        label = self.os or counting.client(self.agent)["os"]
        yield from (label, *targets.system_names(label.lower())) if label != UNKNOWN else ()

    def browsers(self) -> Iterator[str]:
        label = self.browser or counting.client(self.agent)["browser"]
        yield from [label] if label != UNKNOWN else []

    def preferred_languages(self) -> Iterator[str]:
        return targets.language_names(self.languages)

    def referrers(self) -> Iterator[str]:
        """Yield the host, and those of which it is a subdomain."""
        labels = (counting.host_of(self.referrer) or "").split(".")
        yield from filter(None, (".".join(labels[number:]) for number in range(len(labels))))

    def parameters(self) -> Iterator[str]:
        for name, value in targets.pairs_of(self.query):
            yield from (f"{name}={value}", name)


def from_environ(environ: counting.Environ, clicks: Callable[[], int]) -> Visitor:
    return Visitor(
        web_request.address_of(environ),
        environ.get("HTTP_USER_AGENT", "")[: counting.MAX_AGENT],
        environ.get("HTTP_ACCEPT_LANGUAGE", ""),
        counting.sent_referrer(environ),
        environ["QUERY_STRING"],
        clicks=clicks,
    )
