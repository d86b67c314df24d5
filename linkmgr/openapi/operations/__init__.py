"""Every operation of the API, one module per word after /api/.

The OpenAPI document, /api/docs, and the route list, access matrix and contract of the tests derive from these entries.
"""

from linkmgr.openapi import schemas
from linkmgr.openapi.operations import (
    account,
    bio,
    bulk,
    campaigns,
    channels,
    document,
    domains,
    export,
    imports,
    keys,
    overlay,
    pixels,
    plans,
    qr,
    splash,
    stats,
    urls,
    users,
    webhooks,
)

SECTIONS = (
    account.SECTION,
    urls.SECTION,
    bio.SECTION,
    domains.SECTION,
    splash.SECTION,
    overlay.SECTION,
    pixels.SECTION,
    qr.SECTION,
    campaigns.SECTION,
    channels.SECTION,
    bulk.SECTION,
    export.SECTION,
    imports.SECTION,
    stats.SECTION,
    keys.SECTION,
    webhooks.SECTION,
    plans.SECTION,
    users.SECTION,
    document.SECTION,
)
OPERATIONS = tuple(operation for section in SECTIONS for operation in section.operations)
RECORDS = schemas.RECORDS | {name: record for section in SECTIONS for name, record in section.records.items()}
