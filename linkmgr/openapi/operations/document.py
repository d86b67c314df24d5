"""/api/openapi.json"""

from linkmgr.openapi.model import Access, Operation, Section

SECTION = Section(
    name="This document",
    description="The description of the API in the form of OpenAPI, which generators of clients read.",
    operations=(
        Operation(
            "GET", "/api/openapi.json", "Read this document", {"type": "object"}, access=Access.PUBLIC, tagged=True
        ),
    ),
)
