// A client by the official SDK, after its example: one prompt, and an answer to each permission request.
//
//     node client.mjs MODULES PROGRAM CWD OPTION [SESSION]
//
// MODULES is node_modules, OPTION the id of the option to select. With SESSION, the session is loaded first. Prints a JSON object.
import { spawn } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { Readable, Writable } from 'node:stream'

const [modules, program, cwd, option, session] = process.argv.slice(2)
const acp = await import(pathToFileURL(`${modules}/@agentclientprotocol/sdk/dist/v1/stable/acp.js`))
const agent = spawn(program, ['acp'], { cwd, stdio: ['pipe', 'pipe', 'inherit'] })
const seen = { updates: {}, permissions: [], text: '', tools: [] }
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout))
const client = acp
  .client({ name: 'test' })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    seen.permissions.push(params.toolCall.title)
    return { outcome: { outcome: 'selected', optionId: option } }
  })
  .onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
    seen.updates[update.sessionUpdate] = (seen.updates[update.sessionUpdate] ?? 0) + 1
    if (update.sessionUpdate === 'agent_message_chunk') seen.text += update.content.text
    if (update.sessionUpdate === 'tool_call') seen.tools.push(update.title)
  })
await client.connectWith(stream, async (context) => {
  const { agent: methods } = acp.methods
  seen.initialize = await context.request(methods.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: false, writeTextFile: false } },
  })
  const opened = session
    ? await context.request(methods.session.load, { sessionId: session, cwd, mcpServers: [] })
    : await context.request(methods.session.new, { cwd, mcpServers: [] })
  seen.session = session ?? opened.sessionId
  // The test reads it before the prompt ends.
  console.log(JSON.stringify({ session: seen.session }))
  const prompt = [{ type: 'text', text: session ? '/follow' : 'Build it.' }]
  seen.answer = await context.request(methods.session.prompt, { sessionId: seen.session, prompt })
})
console.log(JSON.stringify(seen))
agent.kill()
process.exit(0)
