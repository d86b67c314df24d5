"""/api/domains and /api/domain"""

from linkmgr.api import domains
from linkmgr.openapi.model import COUNTED, PAGING, Member, Operation, Resource
from linkmgr.openapi.schemas import CREATED, ID, changed, done, listing, reading, record, url, url_or_empty
from linkmgr.outbound.domain_check import CHALLENGE_PATH
from linkmgr.outbound.fetch import DEADLINE, MAX_CONCURRENT

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
The API, `/healthz` and `/metrics` are always a 404 there.""",
    members={
        "domain": Member("https://go.example.com", "Scheme and host name, without a port or a path."),
        "redirectroot": Member("https://example.com/", "The target of visits to `/`."),
        "redirect404": Member("https://example.com/missing", "The target of visits to unknown paths."),
    },
    records={
        "Domain": record(
            id=ID,
            domain=url("https://go.example.com"),
            redirectroot=url_or_empty("https://example.com/"),
            redirect404=url_or_empty("https://example.com/missing"),
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
            codes=(*COUNTED, "domain_taken", "domain_unproven", "redirect_branded", "fetch_busy"),
        ),
        Operation(
            "PUT",
            "/api/domain/{domain_id}/update",
            "Change a branded domain",
            changed("Domain has been updated successfully.", "Domain"),
            domains.DomainChanges,
            {"redirect404": "https://example.com/missing"},
            codes=("redirect_branded",),
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
