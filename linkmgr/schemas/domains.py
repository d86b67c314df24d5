from typing import ClassVar

from marshmallow import ValidationError

from linkmgr.core.database import transaction
from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields import colors
from linkmgr.core.fields.base import Boolean, Color, Target, Text
from linkmgr.core.fields.member import JsonSchema, member, url_json
from linkmgr.core.fields.resource import Resource, Stored, Words, row_id, updated
from linkmgr.core.fields.urls import MAX_URL, normalize_domain
from linkmgr.core.outbound import domain_check
from linkmgr.core.settings import settings
from linkmgr.core.web import outbound_budget
from linkmgr.qr import logos
from linkmgr.repository import domains

MAX_NAME = 60


class DomainUrl(Text):
    """A host name with http:// or https://."""

    json: ClassVar[JsonSchema] = url_json(
        "A public host name that points to this service, with http:// or https://."
    ) | {"pattern": r"^https?://[^\s\\@:/?#]+/?$"}

    def clean(self, text: str) -> str:
        return normalize_domain(text)


class BrandColor(Color):
    """A color in which text on light pages is readable. A lighter one is derived for dark pages."""

    def clean(self, text: str) -> str:
        if text and (problem := colors.accent_problem(super().clean(text))):
            raise ValidationError(problem)
        return text


class Domain(Resource):
    id = row_id()
    domain = member(
        DomainUrl(required=True),
        "Scheme and host name, without a port or a path.",
        "https://go.example.com",
        label="Domain",
        fixed=True,
    )
    redirectroot = member(
        Target(allow_empty=True), "The target of visits to `/`.", "https://example.com/", label="Start page"
    )
    redirect404 = member(
        Target(allow_empty=True),
        "The target of visits to unknown paths.",
        "https://example.com/missing",
        label="Page for unknown URLs",
    )
    brandname = member(
        Text(MAX_NAME, allow_empty=True),
        "The name on the pages of the domain. Without it, they show its host name.",
        "Example",
        label="Name",
    )
    brandlogo = member(
        Text(MAX_URL, allow_empty=True),
        "The logo on the pages of the domain: a URL that is fetched once, or the name of a file in "
        "the folder `logos/` of the service. PNG or JPEG, at most 1 MiB and 4 megapixels. An "
        "update with the same `brandlogo` keeps the stored image.",
        "https://example.com/logo.png",
        label="Logo",
        synonyms="image picture thumbnail",
    )
    brandcolor = member(
        BrandColor(allow_empty=True),
        "The color of links and buttons on the pages of the domain. It needs a contrast of at "
        "least 4.5 to 1 on light pages. A lighter color is derived for dark pages.",
        "#14713d",
        label="Color",
    )
    forwardquery = member(
        Boolean(),
        "`forwardquery` of new links on the domain whose body does not have it.",
        False,
        label="New links forward the query of the short URL",
        default=False,
    )
    clickid = member(
        Boolean(),
        "Adds a click id to the targets of all links on the domain, as `clickid` of a link does.",
        False,
        label="Add click ids to the targets of links",
        default=False,
    )
    ignorecase = member(
        Boolean(),
        "Aliases of the domain are found without regard to case: `/Summer` leads to the link `summer`, and "
        "only one link can have either. It can only be changed while the domain has no links.",
        False,
        label="Upper and lower case of aliases are the same",
        default=False,
    )
    widealiases = member(
        Boolean(),
        "New aliases of the domain can have letters of any script, `.`, and parts that are separated by "
        "`/`, such as `docs/v1.0` or `\u00fcml\u00e4ut`.",
        False,
        label="Aliases with /, . and letters of any script",
        default=False,
    )
    updated = updated()


def create_domain(user_id: int, members: Row) -> Row:
    return add_checked_domain(user_id, members, is_checked=prove_domain(user_id, members))


def prove_domain(user_id: int, members: Row) -> bool:
    """Raise an error unless the user can add the domain and it points to this service. Return False
    if the check is off."""
    with transaction.lazily(lambda: None):  # not committed: the database decides before other hosts are asked
        domains.add(user_id, members | {"id": -user_id, "logo": b"", "is_checked": False})
    if settings().domain_check == "off":
        return False
    outbound_budget.spend(user_id)
    return domain_check.check(members["domain"])


def add_checked_domain(user_id: int, members: Row, *, is_checked: bool, image: bytes | None = None) -> Row:
    logo = image if image is not None else logos.load(members["brandlogo"], member="brandlogo")
    return domains.add(user_id, members | {"id": None, "logo": logo, "is_checked": is_checked})


def change_domain(user_id: int, domain_id: int, members: Row) -> Row:
    source, logo = members["brandlogo"], None
    if source is not None and source != domains.read(user_id, domain_id)["brandlogo"]:
        logo = logos.load(source, member="brandlogo")
    return domains.update(user_id, domain_id, members | {"logo": logo})


def check_domain(user_id: int, domain_id: int) -> str | None:
    """Check that the domain points to this service, and store the problem, or "". Return it, or
    None if checks are off."""
    problem = ""
    try:
        domain = domains.read(user_id, domain_id)["domain"]
        if settings().domain_check == "off":
            return None
        outbound_budget.spend(user_id)
        domain_check.check(domain)
    except AppError as error:
        if error.code != "domain_unproven":
            raise
        problem = error.message
    domains.store_check(user_id, domain_id, problem=problem)
    return problem


DOMAINS = Stored(
    Domain,
    Words("branded domain", path="domain", plural="domains", table="domains"),
    rows=domains,
    create=create_domain,
    change=change_domain,
)
