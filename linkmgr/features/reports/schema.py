"""Bodies of decisions about reports and of blocked hosts."""

from typing import Any

from marshmallow import ValidationError
from publicsuffixlist import PublicSuffixList

from linkmgr.core.fields.base import Choice, Text
from linkmgr.core.fields.bodies import New
from linkmgr.core.fields.member import member
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.urls import is_ipv4, is_own_host, parse_ip, split_ascii
from linkmgr.core.settings import settings
from linkmgr.features.reports import repository as reports

DECISIONS = ("dismiss", "link", "host")
_IPV4_DOTS = 3
# Domains below which others register names: co.uk, but not github.io, whose owner answers for it
_SUFFIXES = PublicSuffixList(only_icann=True)


class BlockedHost(Text):
    """A host name or IP address, or a URL with it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=True, **kwargs)

    def clean(self, text: str) -> str:
        if ":" in text and parse_ip(text):
            text = f"[{text}]"
        parts = split_ascii(text if "://" in text else f"http://{text}")
        name = parts.hostname or ""
        if not ("." in name or ":" in name) or (is_ipv4(name) and name.count(".") != _IPV4_DOTS):
            raise ValidationError("must be a host name such as example.com, or an IP address")
        if is_own_host(name) or f".{settings().host}".endswith(f".{name}"):
            raise ValidationError("must not be the host of this service or a domain above it")
        if ":" not in name and _SUFFIXES.is_public(name):
            raise ValidationError("must not be a public suffix such as co.uk")
        return f"[{name}]" if ":" in name else name


def decide_reports(link_id: int, decision: str, *, by: int) -> None:
    """Decide the reports of a link. The host of its target is blocked as if it was sent."""
    host = reports.target_host(link_id)
    if decision == "host":
        try:
            BlockedHost().clean(host)
        except ValidationError as error:
            raise invalid(f"The host of the target {error.messages[0]}", field="decision") from None
    reports.decide(link_id, decision, host=host, by=by)


class Decision(New):
    decision = member(
        Choice(DECISIONS, required=True),
        "`dismiss` deletes the open reports of the link, `link` also blocks it, and `host` blocks the host of its "
        "target with its subdomains.",
        "link",
    )


class HostToBlock(New):
    host = member(
        BlockedHost(), "A host, or a URL with it. Its subdomains are blocked too.", "evil.example", label="Host"
    )
