"""Bodies of decisions about reports and of blocked hosts."""

from functools import cache
from typing import Any

from marshmallow import ValidationError
from publicsuffixlist import PublicSuffixList

from linkmgr.core.fields.base import Choice, Text
from linkmgr.core.fields.bodies import New
from linkmgr.core.fields.member import member
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.urls import MAX_URL, is_ipv4, is_own_host, parse_ip, split_ascii
from linkmgr.core.settings import settings
from linkmgr.features.reports import repository as reports

DECISIONS = ("dismiss", "link", "host")
_IPV4_DOTS = 3


@cache  # the first call takes 0.1 s
def _suffixes() -> PublicSuffixList:
    """Return the domains below which others register names: co.uk, but not github.io, whose owner
    answers for it."""
    return PublicSuffixList(only_icann=True)


class BlockedHost(Text):
    """A host name or IP address, or a URL with it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(MAX_URL, **kwargs)

    def clean(self, text: str) -> str:
        if ":" in text and parse_ip(text):
            text = f"[{text}]"
        parts = split_ascii(text if "://" in text else f"http://{text}")
        name = parts.hostname or ""
        if not ("." in name or ":" in name) or (is_ipv4(name) and name.count(".") != _IPV4_DOTS):
            raise ValidationError("must be a host name such as example.com, or an IP address")
        if is_own_host(name) or f".{settings().host}".endswith(f".{name}"):
            raise ValidationError("must not be the host of this service or a domain above it")
        if ":" not in name and _suffixes().is_public(name):
            raise ValidationError("must not be a public suffix such as co.uk")
        return f"[{name}]" if ":" in name else name


def decide_reports(link_id: int, decision: str, host: str | None = None, *, by: int) -> None:
    """Decide the reports of a link. A host of its targets is blocked as if it was sent."""
    hosts = reports.hosts_of_targets(link_id)
    if decision == "host":
        if host is None and len(hosts) > 1:
            raise invalid(f"The targets have {len(hosts)} hosts. Send one as 'host'", field="host")
        host = host or hosts[0]
        try:
            BlockedHost().clean(host)
        except ValidationError as error:
            problem = f"The host of the target {error.messages[0]}"
            raise invalid(problem, field="decision") from None
        if not any(f".{name}".endswith(f".{host}") for name in hosts):
            raise invalid("The member 'host' must be one of the hosts of the targets", field="host")
    reports.decide(link_id, decision, host=host or hosts[0], by=by)


class Decision(New):
    decision = member(
        Choice(DECISIONS, required=True),
        "`dismiss` deletes the open reports of the link, `link` also blocks it, and `host` blocks "
        "a host of its targets with its subdomains.",
        "link",
    )
    host = member(
        BlockedHost(required=False),
        "The host that is blocked, or a domain above it: needed if the targets have several hosts.",
        "evil.example",
    )


class HostToBlock(New):
    host = member(
        BlockedHost(required=True),
        "A host, or a URL with it. Its subdomains are blocked too.",
        "evil.example",
        label="Host",
    )
