"""/api/domains and /api/domain"""

from linkmgr.api import domains
from linkmgr.openapi.model import COUNTED, PAGING, Member, Operation, Resource
from linkmgr.openapi.schemas import CREATED, ID, done, listing, reading, record, url, url_or_empty

RESOURCE = Resource(
    name="Branded domains",
    description="""\
Point the domain to the server of this service before you add it. The service fetches a challenge from port 80 of the
domain, or from the same path under `https` if port 80 redirects there.""",
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
        Operation("GET", "/api/domain/{domain_id}", "Read a branded domain", reading("Domain")),
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
            done("Domain has been updated successfully."),
            domains.DomainChanges,
            {"redirect404": "https://example.com/missing"},
            codes=("redirect_branded",),
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
