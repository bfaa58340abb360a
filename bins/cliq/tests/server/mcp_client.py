"""An assistant with the official Python SDK: starts a run, follows it, loses the connection, finds the run again, answers its review."""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

URL, TOKEN, READER = sys.argv[1:4]


class Session:
    """A session with a token."""

    def __init__(self, token):
        self.token = token

    async def __aenter__(self):
        self.http = create_mcp_http_client(headers={"authorization": f"Bearer {self.token}"})
        await self.http.__aenter__()
        self.transport = streamable_http_client(URL + "/mcp", http_client=self.http)
        read, write = (await self.transport.__aenter__())[:2]
        self.session = ClientSession(read, write)
        await self.session.__aenter__()
        await self.session.initialize()
        return self.session

    async def __aexit__(self, *error):
        await self.session.__aexit__(*error)
        await self.transport.__aexit__(*error)
        await self.http.__aexit__(*error)


async def call(session, name, progress=None, **arguments):
    result = await session.call_tool(name, arguments, progress_callback=progress)
    text = result.content[0].text
    if getattr(result, "is_error", None) or getattr(result, "isError", None):
        raise RuntimeError(text)
    return json.loads(text)


async def refused(session, name, **arguments):
    try:
        await call(session, name, **arguments)
    except RuntimeError as error:
        return str(error)
    raise AssertionError(f"{name} was not refused")


async def main():
    async with Session(TOKEN) as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        team = tools["team_local_asks"]
        schema = getattr(team, "input_schema", None) or team.inputSchema
        assert schema["required"] == ["who"] and schema["properties"]["who"]["description"] == "Whom it is for", schema
        assert "Asks a person." in team.description
        started = await call(session, "team_local_asks", who="Ada", requirement="Greet.", title="A greeting")
        run = started["run_id"]
        assert "who" in await refused(session, "team_local_asks")
        seen = []

        async def progress(done, total, message):
            seen.append((done, total, message))

        waiting = await call(session, "run_wait", progress, run_id=run, seconds=60)
        assert waiting["state"] == "waiting", waiting["state"]
        assert seen and seen[-1][2].endswith("waiting") and seen[-1][1] == 3, seen
        assert "is not a state" in await refused(session, "run_list", state="lost")
        assert "there is no argument `colour`" in await refused(session, "run_status", run_id=run, colour="red")
        assert "there is no run" in await refused(session, "run_status", run_id="7")
        print("the run waits", flush=True)

    # Another connection, as after a restart of the assistant.
    async with Session(TOKEN) as session:
        found = (await call(session, "run_list", query="greeting"))["runs"]
        assert [row["id"] for row in found] == [run], found
        reviews = (await call(session, "review_list"))["reviews"]
        assert reviews[0]["waits_for"] == ["ann"], reviews
        assert await refused(session, "review_answer", review_id=reviews[0]["id"], decision="request_changes")
        await call(session, "review_answer", review_id=reviews[0]["id"], decision="approve", reason="Fine.")
        await call(session, "run_wait", run_id=run, seconds=60)
        result = await call(session, "run_result", run_id=run)
        assert result["state"] == "completed", result
        assert (await call(session, "run_file", run_id=run, path="greeting.txt"))["content"] == "Hello Ada\n"
        assert "entries" in await call(session, "run_file", run_id=run)
        assert (await refused(session, "run_file", run_id=run, path="../../x")).strip()
        assert "ended" in await refused(session, "run_steer", run_id=run, text="More.")
        long = await call(session, "team_local_long")
        await call(session, "run_steer", run_id=long["run_id"], text="Hurry.")
        # A client that goes away while it waits: the run goes on.
        waits = asyncio.create_task(call(session, "run_wait", run_id=long["run_id"]))
        await asyncio.sleep(0.5)
        waits.cancel()
        assert (await call(session, "run_status", run_id=long["run_id"]))["state"] in ("starting", "running")
        cancelled = await call(session, "run_cancel", run_id=long["run_id"])
        assert cancelled["run_id"] == long["run_id"]
        done = await call(session, "team_local_quick", wait=True)
        assert done["state"] == "completed", done
        assert (await call(session, "plan_status"))["plans"] == []
        assert (await call(session, "signal_list"))["signals"] == []

    async with Session(READER) as session:
        names = [tool.name for tool in (await session.list_tools()).tools]
        assert "run_status" in names and "run_cancel" not in names and not any(name.startswith("team_") for name in names), names
        assert "needs `run`" in await refused(session, "team_local_quick")
        assert "needs `run`" in await refused(session, "run_cancel", run_id=run)
        assert (await call(session, "run_status", run_id=run))["state"] == "completed"
    print("ALL DONE", flush=True)


asyncio.run(main())
