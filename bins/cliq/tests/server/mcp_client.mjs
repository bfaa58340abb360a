// An assistant with the official TypeScript SDK.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import assert from "node:assert/strict";

const require = createRequire(process.env.NODE_MODULES + "/");
const load = (path) => import(pathToFileURL(require.resolve(path)).href);
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
const [, , url, token] = process.argv;

const connect = async (bearer) => {
  const client = new Client({ name: "test", version: "1" });
  const requestInit = bearer ? { headers: { authorization: `Bearer ${bearer}` } } : {};
  await client.connect(new StreamableHTTPClientTransport(new URL(url + "/mcp"), { requestInit }));
  return client;
};
await assert.rejects(connect(undefined));
await assert.rejects(connect("cliq_000000000000_" + "0".repeat(64)));
const client = await connect(token);
const { tools } = await client.listTools();
assert.ok(tools.some((tool) => tool.name === "team_local_quick" && tool.inputSchema.type === "object"));
assert.equal(tools.find((tool) => tool.name === "run_status").annotations.readOnlyHint, true);
const progress = [];
const done = await client.callTool({ name: "team_local_quick", arguments: { title: "From TypeScript", wait: true } }, undefined, { onprogress: (event) => progress.push(event) });
assert.equal(done.isError ?? false, false, done.content[0].text);
assert.equal(done.structuredContent.state, "completed");
assert.ok(progress.length > 0);
const unknown = await client.callTool({ name: "team_local_none", arguments: {} });
assert.equal(unknown.isError, true);
await client.close();
console.log("ALL DONE");
process.exit(0);
