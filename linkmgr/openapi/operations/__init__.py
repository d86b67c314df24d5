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

RESOURCES = (
    account.RESOURCE,
    urls.RESOURCE,
    bio.RESOURCE,
    domains.RESOURCE,
    splash.RESOURCE,
    overlay.RESOURCE,
    pixels.RESOURCE,
    qr.RESOURCE,
    campaigns.RESOURCE,
    channels.RESOURCE,
    bulk.RESOURCE,
    export.RESOURCE,
    imports.RESOURCE,
    stats.RESOURCE,
    keys.RESOURCE,
    webhooks.RESOURCE,
    plans.RESOURCE,
    users.RESOURCE,
    document.RESOURCE,
)
OPERATIONS = tuple(operation for resource in RESOURCES for operation in resource.operations)
RECORDS = schemas.RECORDS | {name: record for resource in RESOURCES for name, record in resource.records.items()}
