"""Speaks to `cliq mcp` by the official Python SDK: lists the tools, and calls those that are named on standard input.

    python mcp_client.py CLIQ < calls.json        [{"tool": NAME, "arguments": {...}}, ...]

Prints {"tools": {NAME: input schema}, "results": [{"error": bool, "text": TEXT}]}.
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    calls = json.load(sys.stdin)
    server = StdioServerParameters(command=sys.argv[1], args=["mcp"], env=dict(os.environ), cwd=os.getcwd())
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = {tool.name: tool.model_dump(by_alias=True)["inputSchema"] for tool in (await session.list_tools()).tools}
        results = []
        for call in calls:
            result = await session.call_tool(call["tool"], call.get("arguments", {}))
            dumped = result.model_dump(by_alias=True)
            results.append({"error": bool(dumped.get("isError")), "text": dumped["content"][0]["text"]})
        print(json.dumps({"tools": tools, "results": results}))


asyncio.run(main())
