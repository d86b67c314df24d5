"""/api/domains and /api/domain"""

from linkmgr.openapi.model import COUNTED
from linkmgr.openapi.usual import section
from linkmgr.qr import logos
from linkmgr.resources.domains import Domain

SECTION = section(
    Domain,
    "Branded domains",
    codes=("redirect_branded", *logos.ERRORS),
    added=(*COUNTED, "domain_taken", "domain_unproven"),
    refused=("domain_in_use",),
    deleted="A domain that links use cannot be deleted.",
)
