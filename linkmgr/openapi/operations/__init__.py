"""Every operation of the API.

The OpenAPI document, /api/docs, and the route list, access matrix and contract of the tests derive from these entries.
"""

from linkmgr.openapi import schemas, usual
from linkmgr.openapi.operations import accounts, resources, stats, transfer, urls, webhooks

SECTIONS = (
    accounts.ACCOUNT,
    urls.SECTION,
    *resources.SECTIONS,
    urls.BULK,
    transfer.EXPORTS,
    transfer.IMPORTS,
    stats.SECTION,
    accounts.KEYS,
    webhooks.SECTION,
    accounts.PLANS,
    accounts.USERS,
    accounts.DOCUMENT,
)
KINDS = tuple(usual.KINDS)  # which the sections have registered
OPERATIONS = tuple(operation for section in SECTIONS for operation in section.operations)
RECORDS = schemas.RECORDS | {name: record for section in SECTIONS for name, record in section.records.items()}
