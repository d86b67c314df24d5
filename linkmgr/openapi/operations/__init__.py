"""Every operation of the API.

The OpenAPI document, /api/docs, and the route list, access matrix and contract of the tests derive from these entries.
"""

from linkmgr.openapi import schemas
from linkmgr.openapi.operations import accounts, bulk, export, imports, keys, resources, stats, urls, webhooks

SECTIONS = (
    accounts.ACCOUNT,
    urls.SECTION,
    *resources.SECTIONS,
    *(module.SECTION for module in (bulk, export, imports, stats, keys, webhooks)),
    accounts.PLANS,
    accounts.USERS,
    accounts.DOCUMENT,
)
OPERATIONS = tuple(operation for section in SECTIONS for operation in section.operations)
RECORDS = schemas.RECORDS | {name: record for section in SECTIONS for name, record in section.records.items()}
