"""An MCP server over the API: the operations that a language model needs, as tools.

It runs where the model's client runs, or beside the service, and needs only the package `mcp`; see
"Language models" in the README. The tools are made of the OpenAPI document of the service.
"""

import argparse
import asyncio
import json
import os
import re
import sys
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx2
import uvicorn
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

Json = dict[str, Any]
SECTIONS = "Account,Branded domains,Campaigns,Links,QR codes,Statistics"
NAMES = {  # of tools, by the ids of operations
    "account.get": "read_account",
    "campaigns.assign": "add_link_to_campaign",
    "campaigns.create": "create_campaign",
    "campaigns.list": "list_campaigns",
    "domains.list": "list_domains",
    "links.create": "shorten_link",
    "links.delete": "delete_link",
    "links.get": "read_link",
    "links.list": "find_links",
    "links.restore": "restore_link",
    "links.update": "update_link",
    "qr.create": "create_qr_code",
    "stats.query": "read_statistics",
}
ALWAYS = {
    "links.delete": {"bin": "1"},
    "stats.query": {"names": "1"},
}  # parameters that the model does not choose
MAX_ANSWER = 20_000  # characters
_LESS = {"limit": "a smaller `limit`", "period": "a shorter `period`", "by": "fewer names in `by`"}
_UNUSED = {  # most of the bytes; the service checks the values anyway
    "examples", "format", "maximum", "maxItems", "maxLength", "minimum", "minItems", "minLength", "minProperties",
    "pattern", "title", "x-enum-varnames",
}  # fmt: skip
_HEADERS = {"Prefer": "handling=strict"}  # unknown arguments are errors that name the one that was meant


class Tool(NamedTuple):
    method: str
    path: str
    query: set[str]
    fixed: Json
    listed: types.Tool


class Document:
    """The OpenAPI document, of which tools are made."""

    def __init__(self, document: Json) -> None:
        self.document = document
        conditions = document["components"]["schemas"]["Conditions"]["properties"]
        for stated in conditions.values():
            stated.pop("description", None)  # the errors say what each can be
        self.operations = [
            (method.upper(), path, stated)
            for path, methods in document["paths"].items()
            for method, stated in methods.items()
            if stated["operationId"] in NAMES
        ]
        self.names = {
            f"{method} {path}": NAMES[stated["operationId"]] for method, path, stated in self.operations
        }

    def prose(self, text: str) -> str:
        """Return a text that names tools in place of their operations."""

        def named(match: re.Match[str]) -> str:
            method, path, query = match.groups()
            name = self.names.get(f"{method} {path}")
            return f"`{name}`{f' with `{query}`' if query else ''}" if name else match[0]

        return re.sub(r"`(GET|POST|PUT|DELETE)\s+(/api[^\s`?]+)\??([^\s`]*)`", named, text)

    def slim(self, part: Any) -> Any:
        """Return a schema without references, and without what a model does not use."""
        if isinstance(part, list):
            return [self.slim(item) for item in part]
        if not isinstance(part, dict):
            return part
        if part.get("anyOf"):  # an object, or null, which means not sent
            part = part["anyOf"][0] | {name: value for name, value in part.items() if name != "anyOf"}
        part = self.resolve(part)
        if isinstance(part.get("type"), str | list):
            part = {name: value for name, value in part.items() if name not in _UNUSED}
            if isinstance(part["type"], list):  # null means not sent
                part |= {"type": part["type"][0]}
            if "enum" in part:
                part |= {"enum": [value for value in part["enum"] if value is not None]}
        slim = {name: self.slim(value) for name, value in part.items()}
        if isinstance(slim.get("description"), str):
            slim["description"] = self.prose(slim["description"])
        return slim

    def resolve(self, part: Json) -> Json:
        if not isinstance(part.get("$ref"), str):
            return part
        _, _, section, name = part["$ref"].split("/")
        resolved: Json = self.document["components"][section][name]
        return resolved | {key: value for key, value in part.items() if key != "$ref"}

    def tool(self, method: str, path: str, stated: Json) -> Tool:
        parameters = {
            parameter["name"]: parameter
            for parameter in map(self.resolve, stated.get("parameters", []))
            if parameter["in"] != "header"
        }
        always = ALWAYS.get(stated["operationId"], {})
        fixed = [
            f"`{name}={value}` is always sent. {parameters.pop(name)['description']}"
            for name, value in always.items()
        ]
        content = stated.get("requestBody", {}).get("content", {}).get("application/json", {})
        body = self.slim(content.get("schema", {}))
        properties = {
            name: self.slim(parameter["schema"] | {"description": parameter["description"]})
            for name, parameter in parameters.items()
        } | body.get("properties", {})
        needed = [name for name, parameter in parameters.items() if parameter.get("required")]
        schema = {
            "type": "object",
            "properties": properties,
            "required": needed + body.get("required", []),
            "additionalProperties": False,
        }
        text = "\n\n".join([f"{stated['summary']}.", *filter(None, [stated.get("description")]), *fixed])
        hints = types.ToolAnnotations(
            read_only_hint=method == "GET",
            destructive_hint=method in ("PUT", "DELETE"),
            idempotent_hint=method != "POST",
            open_world_hint=False,
        )
        listed = types.Tool(
            name=NAMES[stated["operationId"]],
            title=stated["summary"],
            description=self.prose(text),
            input_schema=schema,
            annotations=hints,
        )
        query = {name for name, parameter in parameters.items() if parameter["in"] == "query"}
        return Tool(method, path, query, always, listed)

    def tools(self) -> dict[str, Tool]:
        tools = [self.tool(*operation) for operation in self.operations]
        return {tool.listed.name: tool for tool in tools}


# --- requests and answers


def request_of(tool: Tool, arguments: Json) -> Json:
    """Return the arguments of a request. Unknown members go where the service refuses them."""
    sent = {name: value for name, value in arguments.items() if value is not None}
    in_path = re.findall("{(.+?)}", tool.path)
    if missing := [name for name in in_path if name not in sent]:
        raise ValueError(f"'{missing[0]}' is needed.")
    if other := [name for name, value in tool.fixed.items() if str(sent.pop(name, value)) != value]:
        raise ValueError(f"'{other[0]}' cannot be chosen: it is always {tool.fixed[other[0]]}.")
    url = tool.path.format(**{name: quote(str(sent.pop(name)), safe="") for name in in_path})
    has_body = bool(tool.listed.input_schema["properties"].keys() - tool.query - {*in_path})
    query = {name: sent.pop(name) for name in list(sent) if name in tool.query or not has_body}
    texts = {
        name: ",".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in (query | tool.fixed).items()
    }
    return {"method": tool.method, "url": url, "params": texts} | ({"json": sent} if has_body else {})


def _text(answer: Json) -> str:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def once(answer: Json) -> Json:
    """Return an answer with its record once. The API repeats it under other names."""
    record = answer.get("record")
    if record is None:
        return answer
    kept = {
        name: value
        for name, value in answer.items()
        if name == "record" or (value != record and (name not in record or value != record[name]))
    }
    if isinstance(data := kept.get("data"), dict) and "urls" in data:  # the record is found by its short URL
        kept["data"] = {name: value for name, value in data.items() if name != "urls"}
    return kept


def fitting(tool: Tool, answer: Json) -> str:
    """Return the text of an answer, or raise a ValueError that says how to ask for less.

    A record loses its longest members instead, because the change that it shows is already made.
    """
    text, record = _text(answer), dict(answer.get("record", {}))
    while len(text) > MAX_ANSWER and record:
        longest = max(record, key=lambda name: len(_text(record[name])))
        record[longest] = f"{len(_text(record[longest])):,} characters are left out here."
        text = _text(answer | {"record": record})
    if len(text) > MAX_ANSWER:
        less = " or ".join(
            hint for name, hint in _LESS.items() if name in tool.listed.input_schema["properties"]
        )
        raise ValueError(
            f"The answer has {len(text):,} characters, and at most {MAX_ANSWER:,} are shown. Ask for less: send {less}."
        )
    return text


async def call(client: httpx2.AsyncClient, tool: Tool, arguments: Json, authorization: str) -> str:
    """Return the answer as text, or raise a ValueError with a sentence for the model."""
    headers = _HEADERS | {"Authorization": authorization}
    try:
        response = await client.request(**request_of(tool, arguments), headers=headers)
        answer = response.json()
    except (httpx2.HTTPError, json.JSONDecodeError):
        raise ValueError("The service does not respond. Whether a change was made is not known.") from None
    if answer.get("error"):
        wait = response.headers.get("Retry-After")
        answer = {name: answer[name] for name in ("code", "message") if name in answer}
        raise ValueError(_text(answer | ({"retry_after_seconds": int(wait)} if wait else {})))
    return fitting(tool, once(answer))


def server(url: str, key: str) -> Server[Any]:
    """Return the server for a service. Without a key, each request over HTTP brings its own."""
    response = httpx2.get(f"{url}/api/openapi.json", params={"tags": SECTIONS}, timeout=30)
    response.raise_for_status()
    document = response.json()
    tools = Document(document).tools()
    client = httpx2.AsyncClient(base_url=url, timeout=30)

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.listed for tool in tools.values()])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        authorization = f"Bearer {key}" if key else context.request.headers.get("Authorization", "")
        try:
            if params.name not in tools:
                raise ValueError(f"There is no tool '{params.name}'.")
            text, is_error = (
                await call(client, tools[params.name], params.arguments or {}, authorization),
                False,
            )
        except ValueError as error:
            text, is_error = str(error), True
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)

    version, about = (
        document["info"]["version"],
        f"Short links and their statistics at {url}. A single row is in `record`.",
    )
    return Server(
        "linkmgr", version=version, instructions=about, on_list_tools=list_tools, on_call_tool=call_tool
    )


async def _serve_stdio(served: Server[Any]) -> None:
    async with stdio_server() as (received, sent):
        await served.run(received, sent, served.create_initialization_options())


def main() -> None:
    parser = argparse.ArgumentParser(description="Tools of a linkmgr service for language models.")
    parser.add_argument(
        "--http",
        metavar="PORT",
        type=int,
        help="serve http://127.0.0.1:PORT/mcp instead of stdio; clients send their API key as bearer token",
    )
    port = parser.parse_args().http
    url, key = os.environ.get("API_URL", "").rstrip("/"), os.environ.get("API_KEY", "")
    if not url or not (key or port):
        sys.exit("Set API_URL to the URL of the service, and API_KEY to an API key.")
    try:
        served = server(url, "" if port else key)
    except (httpx2.HTTPError, json.JSONDecodeError) as error:
        sys.exit(f"{url}/api/openapi.json cannot be read: {error}")
    if not port:
        asyncio.run(_serve_stdio(served))
        return
    # Each request has its key, so that a page of another host name gains nothing.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = served.streamable_http_app(json_response=True, stateless_http=True, transport_security=security)
    uvicorn.run(app, port=port, log_level="warning")


if __name__ == "__main__":
    main()
