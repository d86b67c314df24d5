"""/api/openapi.json"""

from linkmgr.openapi.model import Access, Operation, Resource

RESOURCE = Resource(
    name="This document",
    operations=(
        Operation(
            "GET", "/api/openapi.json", "Read this document", {"type": "object"}, access=Access.PUBLIC, tagged=True
        ),
    ),
)
