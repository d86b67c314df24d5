"""Every operation of the API.

The OpenAPI document, /api/docs, and the route list, access matrix and contract of the tests derive from these entries.
"""

from linkmgr.api import account
from linkmgr.openapi.operations import accounts, resources, stats, transfer, urls, webhooks

SECTIONS = (
    account.SECTION,
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
