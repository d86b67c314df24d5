"""An MCP server over the API: the operations that a language model needs, as tools. It runs where
the model's client runs and needs only fastmcp; see "Language models" in the README."""

import os
import sys
from typing import Any

import httpx2
from fastmcp import FastMCP

TAGS = "Account,Branded domains,Campaigns,Links,QR codes,Statistics"
TOOLS = {  # names by the ids of operations
    "account.get": "read_account",
    "campaigns.assign": "add_link_to_campaign",
    "campaigns.create": "create_campaign",
    "campaigns.list": "list_campaigns",
    "domains.list": "list_domains",
    "links.create": "shorten_link",
    "links.delete": "delete_link",
    "links.get": "read_link",
    "links.list": "find_links",
    "links.update": "update_link",
    "qr.create": "create_qr_code",
    "stats.query": "read_statistics",
}
_UNUSED = {  # more than half of the bytes; the service checks the values anyway
    "examples", "format", "maximum", "maxItems", "maxLength", "minimum", "minItems", "minLength", "minProperties",
    "pattern", "x-enum-varnames",
}  # fmt: skip
_HEADERS = [{"$ref": f"#/components/parameters/{name}"} for name in ("Idempotency-Key", "If-Match")]


def _without_unused(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_unused(item) for item in part if item not in _HEADERS]
    if isinstance(part, dict):
        is_schema = isinstance(part.get("type"), str | list)
        slim = {
            name: _without_unused(value)
            for name, value in part.items()
            if not (is_schema and name in _UNUSED)
        }
        # Null means not sent
        return slim | {"type": slim["type"][0]} if isinstance(slim.get("type"), list) else slim
    return part


def tools_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with the operations in TOOLS, without what a model does not use."""
    paths = {
        path: kept
        for path, methods in document["paths"].items()
        if (
            kept := {
                method: stated for method, stated in methods.items() if stated.get("operationId") in TOOLS
            }
        )
    }
    slim: dict[str, Any] = _without_unused(document | {"paths": paths})
    conditions = slim["components"]["schemas"]["Conditions"]["properties"]  # the errors say what each can be
    conditions |= {name: {"type": stated["type"]} for name, stated in conditions.items()}
    return slim


def server() -> FastMCP:
    """Return the server for the service at API_URL, with the rights of API_KEY."""
    url, key = os.environ.get("API_URL", "").rstrip("/"), os.environ.get("API_KEY", "")
    if not url or not key:
        sys.exit("Set API_URL to the URL of the service, and API_KEY to an API key.")
    response = httpx2.get(f"{url}/api/openapi.json", params={"tags": TAGS})
    response.raise_for_status()
    client = httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=30)
    document = tools_of(response.json())
    return FastMCP.from_openapi(
        document, client=client, name="linkmgr", mcp_names=TOOLS, validate_output=False
    )
