"""Use the tools of deploy/mcp.py, as a program with a language model does."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import mcp  # type: ignore[import-not-found]

base, key, deploy = sys.argv[1:]
PROGRAM = str(Path(sys.executable).with_name("fastmcp"))
SERVER = mcp.StdioServerParameters(
    command=PROGRAM,
    args=["run", f"{deploy}/mcp.py:server", "--no-banner"],
    env={"API_URL": base, "API_KEY": key},
)


async def main() -> None:
    async with mcp.Client(SERVER) as client:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            result = await client.call_tool(tool, arguments)
            answer: dict[str, Any] = result.structured_content or {"text": result.content[0].text}
            return answer

        tools = (await client.list_tools()).tools
        link = await call("shorten_link", url="https://example.com/1", custom="first")
        campaign = await call("create_campaign", name="Spring")
        await call("add_link_to_campaign", campaign_id=campaign["id"], link_id=link["id"])
        await call("update_link", link_id=link["id"], title="First")
        updated = await call("read_link", link_id=link["id"])
        found = await call("find_links", short=f"{base}/seeded")
        statistics = await call("read_statistics", ids=str(found["id"]), by=["time:day", "country"], period="7d")
        code = await call("create_qr_code", type="text", data="Hello")
        refused = await call("shorten_link", url="https://example.com/2", custom="first")
        await call("delete_link", link_id=link["id"])
        left = await call("find_links", limit=15)
    seen = {
        "tools": len(tools),
        "is_small": len(json.dumps([tool.model_dump(mode="json", exclude_none=True) for tool in tools])) < 30_000,
        "headers": [tool.name for tool in tools if "Idempotency-Key" in tool.input_schema["properties"]],
        "created": link["shorturl"],
        "updated": [updated["details"]["title"], updated["details"]["campaign"] == campaign["id"]],
        "clicks": statistics["data"]["totals"]["clicks"],
        "code": code["link"].startswith(f"{base}/qr/"),
        "refused": "alias_taken" in refused["text"],
        "left": [row["alias"] for row in left["data"]["urls"]],
    }
    print(json.dumps(seen))


asyncio.run(main())
