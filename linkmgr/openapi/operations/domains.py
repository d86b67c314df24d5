"""/api/domains and /api/domain"""

from linkmgr.api import domains
from linkmgr.openapi.model import COUNTED, PAGING, Member, Operation, Resource
from linkmgr.openapi.schemas import CREATED, ID, changed, done, listing, reading, record, text, url, url_or_empty
from linkmgr.outbound.domain_check import CHALLENGE_PATH
from linkmgr.outbound.fetch import DEADLINE, MAX_CONCURRENT
from linkmgr.qr import logos

RESOURCE = Resource(
    name="Branded domains",
    description=f"""\
Point the domain to the server of this service before you add it. The service then fetches
`http://<domain>{CHALLENGE_PATH}<token>` and compares the response with the one that only this service can compute. A
redirect to the same URL under `https` is followed. The IP address must be public, and the response must arrive within
{DEADLINE:g} seconds. A process of the service fetches at most {MAX_CONCURRENT} URLs at a time; beyond that, the
response is a 503.

A branded domain has its own aliases. `/` redirects to `redirectroot`, and unknown paths redirect to `redirect404`.
Sign-in, account pages and avatars exist only on the host of this service; on a branded domain they are unknown paths.
The API, `/healthz` and `/metrics` are always a 404 there.

The pages of a branded domain show nothing of the operator of this service. `brandname`, `brandlogo` and `brandcolor`
give them a name, a logo and a color of their own.""",
    members={
        "domain": Member("https://go.example.com", "Scheme and host name, without a port or a path."),
        "redirectroot": Member("https://example.com/", "The target of visits to `/`."),
        "redirect404": Member("https://example.com/missing", "The target of visits to unknown paths."),
        "brandname": Member("Example", "The name on the pages of the domain. Without it, they show its host name."),
        "brandlogo": Member(
            "https://example.com/logo.png",
            "The logo on the pages of the domain: a URL that is fetched once, or the name of a file in the folder "
            "`logos/` of the service. PNG or JPEG, at most 1 MiB and 4 megapixels. An update with the same `brandlogo` "
            "keeps the stored image.",
        ),
        "brandcolor": Member(
            "#14713d",
            "The color of links and buttons on the pages of the domain. It needs a contrast of at least 4.5 to 1 on "
            "light pages. A lighter color is derived for dark pages.",
        ),
    },
    records={
        "Domain": record(
            id=ID,
            domain=url("https://go.example.com"),
            redirectroot=url_or_empty("https://example.com/"),
            redirect404=url_or_empty("https://example.com/missing"),
            brandname=text("Example"),
            brandlogo=text("https://example.com/logo.png"),
            brandcolor=text("#14713d"),
        ),
    },
    operations=(
        Operation("GET", "/api/domains", "List branded domains", listing("domains", "Domain"), query=PAGING),
        Operation("GET", "/api/domain/{domain_id}", "Read a branded domain", reading("Domain"), tagged=True),
        Operation(
            "POST",
            "/api/domain/add",
            "Add a branded domain",
            CREATED,
            domains.NewDomain,
            {"domain": "https://go.example.com", "redirectroot": "https://example.com/"},
            codes=(*COUNTED, "domain_taken", "domain_unproven", "redirect_branded", *logos.ERRORS),
        ),
        Operation(
            "PUT",
            "/api/domain/{domain_id}/update",
            "Change a branded domain",
            changed("Domain has been updated successfully.", "Domain"),
            domains.DomainChanges,
            {"redirect404": "https://example.com/missing"},
            codes=("redirect_branded", *logos.ERRORS),
            tagged=True,
        ),
        Operation(
            "DELETE",
            "/api/domain/{domain_id}/delete",
            "Delete a branded domain",
            done("Domain has been deleted successfully."),
            codes=("domain_in_use",),
            description="A domain that links use cannot be deleted.",
        ),
    ),
)
