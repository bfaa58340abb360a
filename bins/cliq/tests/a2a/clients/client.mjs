// The official JavaScript SDK as a client: node client.mjs URL TOKEN BINDING VERSION
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';
import { Role, TaskState } from '@a2a-js/sdk';

const [url, token, binding, version] = process.argv.slice(2);
let lastEventId;
const fetchImpl = (address, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set('authorization', `Bearer ${token}`);
  if (lastEventId) headers.set('last-event-id', lastEventId);
  return fetch(address, { ...init, headers });
};
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

const received = [];
const receiver = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => (body += chunk));
  request.on('end', () => {
    received.push([request.headers['x-a2a-notification-token'], JSON.parse(body)]);
    response.writeHead(204).end();
  });
}).listen(0, '127.0.0.1');

// Discovery
const card = await new DefaultAgentCardResolver({ fetchImpl }).resolve(url);
assert(card.skills.some((skill) => skill.id === '@local/steps'));
card.supportedInterfaces = card.supportedInterfaces.filter((i) => i.protocolBinding === binding && i.protocolVersion === version);
assert.equal(card.supportedInterfaces.length, 1);
const legacyCompat = { enabled: version === '0.3' };
const transports = [new JsonRpcTransportFactory({ fetchImpl, legacyCompat }), new RestTransportFactory({ fetchImpl, legacyCompat })];
const client = await new ClientFactory({ transports }).createFromAgentCard(card);

const request = (team, configuration) => ({
  tenant: '', metadata: undefined, configuration,
  message: {
    messageId: randomUUID(), role: Role.ROLE_USER, contextId: '', taskId: '', extensions: [], referenceTaskIds: [], metadata: undefined,
    parts: [
      { content: { $case: 'text', value: 'Do it' }, metadata: undefined, filename: '', mediaType: '' },
      { content: { $case: 'data', value: { team } }, metadata: undefined, filename: '', mediaType: '' },
    ],
  },
});
const at_once = { acceptedOutputModes: [], taskPushNotificationConfig: undefined, historyLength: undefined, returnImmediately: true };
const start = async (team) => {
  const result = await client.sendMessage(request(team, at_once));
  return result.task ?? result.payload?.value ?? result;
};
const update = (event) => event.payload.value.metadata.eventId;
const stateOf = (event) => event.payload.$case === 'statusUpdate' && event.payload.value.status.state;

// Send
let task = await start('@local/steps');
for (let n = 0; task.status.state !== TaskState.TASK_STATE_COMPLETED; n++) {
  assert(n < 600, JSON.stringify(task));
  await sleep(50);
  task = await client.getTask({ tenant: '', id: task.id, historyLength: undefined });
}
assert.deepEqual(task.artifacts.map((artifact) => artifact.name), ['report.md', 'pipeline_result']);

// Stream
const events = [];
for await (const event of client.sendMessageStream(request('@local/steps'))) events.push(event);
assert.equal(events[0].payload.$case, 'task');
assert.equal(stateOf(events.at(-1)), TaskState.TASK_STATE_COMPLETED);
const numbers = events.slice(1).map(update);
assert.equal(new Set(numbers).size, numbers.length);

// Resubscribe: a client that drops goes on from the last update that it has.
task = await start('@local/steps');
const seen = [];
lastEventId = '0.0';
for (let over = false; !over; ) {
  let count = 0;
  for await (const event of client.resubscribeTask({ tenant: '', id: task.id })) {
    if (event.payload.$case === 'task') continue;
    seen.push((lastEventId = update(event)));
    over = stateOf(event) === TaskState.TASK_STATE_COMPLETED;
    if (++count === 3 || over) break;
  }
}
lastEventId = undefined;
assert.deepEqual(seen, numbers);

// Push notifications
const slow = await start('@local/slow');
const hook = `http://127.0.0.1:${receiver.address().port}/hook`;
const config = { tenant: '', id: 'mine', taskId: slow.id, url: hook, token: 'hush', authentication: undefined };
assert.equal((await client.createTaskPushNotificationConfig(config)).url, hook);
assert.equal((await client.getTaskPushNotificationConfig({ tenant: '', taskId: slow.id, id: 'mine' })).url, hook);
await client.createTaskPushNotificationConfig({ ...config, id: 'other' });
const listed = await client.listTaskPushNotificationConfig({ tenant: '', taskId: slow.id, pageSize: 0, pageToken: '' });
assert.deepEqual(listed.configs.map((c) => c.id).sort(), ['mine', 'other']);
await client.deleteTaskPushNotificationConfig({ tenant: '', taskId: slow.id, id: 'other' });

// Cancel
const cancelled = await client.cancelTask({ tenant: '', id: slow.id, metadata: undefined });
assert.equal(cancelled.status.state, TaskState.TASK_STATE_CANCELED);
await assert.rejects(client.cancelTask({ tenant: '', id: slow.id, metadata: undefined }), /cannot be cancelled/);
await assert.rejects(client.getTask({ tenant: '', id: 'no-such-task', historyLength: undefined }), /no such task/);
for (let n = 0; !JSON.stringify(received.at(-1) ?? '').toLowerCase().includes('canceled'); n++) {
  assert(n < 200, JSON.stringify(received));
  await sleep(50);
}
assert(received.every(([given]) => given === 'hush'));

// Conversation: a message to a task that works, a comment and a decision of a task that waits
const say = async (task, $case, value) => {
  const said = request('', at_once);
  Object.assign(said.message, { taskId: task.id, contextId: task.contextId });
  said.message.parts = [{ content: { $case, value }, metadata: undefined, filename: '', mediaType: '' }];
  const result = await client.sendMessage(said);
  return result.task ?? result.payload?.value ?? result;
};
const until = async (id, state) => {
  for (let n = 0; ; n++) {
    const task = await client.getTask({ tenant: '', id, historyLength: undefined });
    if (task.status.state === state) return task;
    assert(n < 600, JSON.stringify(task));
    await sleep(50);
  }
};
const steered = await start('@local/slow');
task = await say(steered, 'text', 'Use short words.');
assert.equal(task.id, steered.id);
assert.equal(task.history.at(-1).parts[0].content.value, 'Use short words.');
await client.cancelTask({ tenant: '', id: steered.id, metadata: undefined });
const asked = await until((await start('@local/ask')).id, TaskState.TASK_STATE_INPUT_REQUIRED);
assert.equal((await say(asked, 'text', 'Looks good so far.')).status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
await say(asked, 'data', { verdict: 'approve' });
await until(asked.id, TaskState.TASK_STATE_COMPLETED);

// List. 0.3 has no such method.
if (version === '1.0') {
  const page = await client.listTasks({ tenant: '', contextId: '', status: 0, pageSize: 2, pageToken: '', historyLength: undefined, statusTimestampAfter: undefined, includeArtifacts: undefined });
  assert(page.tasks.length === 2 && page.totalSize >= 4 && page.nextPageToken, JSON.stringify(page));
}
console.log('ok');
receiver.close();
process.exit(0);
