"""Six tasks with the tools of deploy/mcp, as a program with a language model does them. It starts the server as users
do, or uses the one at a URL."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx2
import mcp
from mcp.client.streamable_http import streamable_http_client

base, key, package, url = sys.argv[1:]
COMMAND = str(Path(sys.executable).with_name("uvx"))
STDIO = mcp.StdioServerParameters(
    command=COMMAND, args=["--from", package, "linkmgr-mcp"], env=os.environ | {"API_URL": base, "API_KEY": key}
)


async def main() -> None:
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"})
    server = streamable_http_client(url, http_client=http) if url else STDIO
    async with mcp.Client(server) as client:

        async def text(tool: str, **arguments: Any) -> str:
            result = await client.call_tool(tool, arguments)
            assert result.structured_content is None
            return f"{'refused: ' if result.is_error else ''}{result.content[0].text}"

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            answer: dict[str, Any] = json.loads(await text(tool, **arguments))
            return answer

        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        seen: dict[str, Any] = {
            "tools": len(tools),
            "size": len(json.dumps([tool.model_dump(mode="json", exclude_none=True) for tool in tools.values()])),
            "undescribed": [name for name, tool in tools.items() if len(tool.description.split()) < 15],
            "untitled": [name for name, tool in tools.items() if not tool.title],
            "reads": sorted(name for name, tool in tools.items() if tool.annotations.read_only_hint),
            "destroys": sorted(name for name, tool in tools.items() if tool.annotations.destructive_hint),
            "paths": [name for name, tool in tools.items() if "/api/url" in tool.description.replace("/api/urls/", "")],
        }
        # A link in a campaign
        campaign = (await call("create_campaign", name="Spring"))["record"]["id"]
        seen["unknown"] = await text("shorten_link", url="https://example.com/1", alias="first")
        link = await call("shorten_link", url="https://example.com/1", custom="first", campaign=campaign)
        seen["created"] = [link["record"]["shorturl"], link["record"]["campaign"] == campaign, sorted(link)]
        # Another target for a short URL
        found = await call("find_links", short=f"{base}/first")
        await call("update_link", link_id=found["record"]["id"], url="https://example.com/2", title="Second")
        seen["updated"] = (await call("read_link", link_id=found["record"]["id"]))["record"]["url"]
        # The links with the most clicks last month
        most = await call("read_statistics", by=["target"], period="last_month", limit=3)
        seen["most"] = [[row["target_name"], row["shorturl"], row["clicks"]] for row in most["data"]["rows"]]
        # A link that was deleted by mistake
        await call("delete_link", link_id=found["record"]["id"])
        seen["left"] = [row["alias"] for row in (await call("find_links", limit=15))["data"]["urls"]]
        [binned] = (await call("find_links", bin="1"))["data"]["urls"]
        seen["restored"] = (await call("restore_link", link_id=binned["id"]))["record"]["shorturl"]
        seen["final"] = await text("delete_link", link_id=found["record"]["id"], bin="0")
        # An answer that is too long
        seen["long"] = await text("read_statistics", by=["time:day", "target"], period="12mo")
        seen["shorter"] = len(await text("read_statistics", by=["time:month"], period="12mo")) < 20_000
        rules = [{"when": {"query": [f"a{n}=1"]}, "url": f"https://example.com/{n}{'x' * 1000}"} for n in range(20)]
        changed = await call("update_link", link_id=found["record"]["id"], rules=rules)
        seen["left out"] = [changed["record"]["rules"][-29:], changed["record"]["alias"]]
        # A QR code of a link
        code = await call("create_qr_code", type="link", data=f"{base}/first")
        seen["code"] = code["record"]["link"].startswith(f"{base}/qr/")
        seen["taken"] = await text("shorten_link", url="https://example.com/3", custom="first")
        seen["missing"] = await text("read_link")
    print(json.dumps(seen))


asyncio.run(main())
