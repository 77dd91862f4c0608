import { hash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { type OperationMessage, limits as wireLimits } from '@muster/protocol/wire';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { MemoryLinks } from '../../test/memory-links.ts';
import { dialAsAgent, type TestAgent } from '../../test/test-agent.ts';
import { createInProcessBus } from '../bus/in-process.ts';
import { type Identity, loadIdentity } from '../identity/identity.ts';
import { createGateway, type Gateway } from './gateway.ts';
import type { GatewayLimits } from './limits.ts';

let dir: string;
let identity: Identity;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-contents-'));
  identity = await loadIdentity(dir);
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const bus = createInProcessBus((error) => {
  throw error;
});
let gateway: Gateway;
let port: number;
let links: MemoryLinks;
let clock: ManualClock;
const agents: TestAgent[] = [];
beforeEach(() => {
  links = new MemoryLinks();
  clock = new ManualClock();
});
afterEach(async () => {
  for (const agent of agents.splice(0)) agent.end();
  await gateway.close();
});

const { contentRequestBytes: most, contentWindowBytes: window } = wireLimits;
const content = randomBytes(5 * most + 7);
const sha256 = hash('sha256', content, 'hex');
const operationId = '01HZZZZZZZZZZZZZZZZZZZ0001';

async function start(limits: Partial<GatewayLimits> = {}): Promise<void> {
  const quiet = () => {};
  const log = { debug: quiet, info: quiet, warn: quiet, error: console.error };
  gateway = createGateway({ identity, links, bus, clock, log, random: () => 0.5, limits });
  port = await gateway.listen('127.0.0.1', 0);
}

/** Connects an agent whose operation references the contents. */
async function connected(version = 7, operation_id = operationId): Promise<TestAgent> {
  const agent = await dialAsAgent(port);
  agents.push(agent);
  await agent.join({ versions: [version] });
  links.queue(agent.key.nodeId, { operation_id } as OperationMessage);
  links.contents.set(operation_id, new Map([[sha256, content]]));
  return agent;
}

const request = (changes: object = {}) => ({
  ...{ type: 'content_request', request: 1, operation_id: operationId, sha256, from: 0, bytes: most },
  ...changes,
});
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}
const received = (agent: TestAgent, request: number, bytes: number) =>
  until(() => agent.contents.get(request)?.length === bytes);

test('sends the requested parts, in order', async () => {
  await start();
  const agent = await connected();
  agent.send(request());
  agent.send(request({ request: 2, from: 5 * most, bytes: 7 }));
  agent.send(request({ request: 3, from: most + 100, bytes: 10 }));
  await received(agent, 3, 10);
  expect(agent.contents.get(1)).toEqual(content.subarray(0, most));
  expect(agent.contents.get(2)).toEqual(content.subarray(5 * most));
  expect(agent.contents.get(3)).toEqual(content.subarray(most + 100, most + 110));
});

test('accepts the next request as soon as the agent has received its answer', async () => {
  await start();
  const agent = await connected();
  const pieces = (2 * (content.length - 7)) / most;
  // Keeps the whole window in use.
  let sent = 0;
  const send = () => agent.send(request({ request: ++sent, from: ((sent - 1) % 5) * most }));
  while (sent < window / most) send();
  agent.ws.on('message', () => {
    const complete = [...agent.contents.values()].filter(({ length }) => length === most).length;
    while (sent < pieces && sent < complete + window / most) send();
  });
  await received(agent, pieces, most);
});

test('refuses contents that no open operation of the agent references', async () => {
  await start();
  const agent = await connected();
  const other = await connected(7, '01HZZZZZZZZZZZZZZZZZZZ0002');
  const refused = async (by: TestAgent, changes: object) => {
    by.send(request(changes));
    return (await by.next('content_refused')).message;
  };
  expect(await refused(other, {})).toBe('no open operation of this agent references these bytes');
  expect(await refused(agent, { sha256: 'a'.repeat(64) })).toContain('references these bytes');
  expect(await refused(agent, { from: 5 * most, bytes: 8 })).toContain('references these bytes');
  expect(await refused(agent, { operation_id: '01HZZZZZZZZZZZZZZZZZZZ0009' })).toContain('references these bytes');
  expect(links.reads).toBe(0);
  // The operation ends.
  agent.send(request());
  await received(agent, 1, most);
  links.contents.delete(operationId);
  clock.advance(2_000);
  expect(await refused(agent, { request: 2 })).toContain('references these bytes');
});

test('refuses content that is no longer stored', async () => {
  await start();
  const agent = await connected();
  links.readContent = async () => null;
  agent.send(request());
  expect((await agent.next('content_refused')).message).toContain('apply again');
});

test('sends the contents of an operation at most twice over one link, even if contents of another operation are sent in between', async () => {
  await start();
  const agent = await connected();
  const other = '01HZZZZZZZZZZZZZZZZZZZ0002';
  links.queue(agent.key.nodeId, { operation_id: other } as OperationMessage);
  const small = Buffer.alloc(100);
  const hashOfSmall = hash('sha256', small, 'hex');
  for (const id of [operationId, other]) links.contents.set(id, new Map([[hashOfSmall, small]]));
  for (const [index, operation_id] of [operationId, other, operationId, other, operationId].entries())
    agent.send(request({ request: index + 1, operation_id, sha256: hashOfSmall, bytes: 100 }));
  expect(await agent.next('content_refused')).toMatchObject({
    request: 5,
    message: expect.stringContaining('too often'),
  });
});

test('closes the link of an agent that exceeds its window, or whose request crosses a part boundary', async () => {
  await start();
  for (const requests of [
    Array.from({ length: window / most + 1 }, (_, i) => request({ request: i + 1 })),
    Array.from({ length: wireLimits.contentRequests + 1 }, (_, i) => request({ request: i + 1, bytes: 1 })),
    [request({ from: most - 1, bytes: 2 })],
  ]) {
    const agent = await connected();
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    links.contentsOf = async () => gate.then(() => null);
    for (const each of requests) agent.send(each);
    expect((await agent.closed).reason).toBe('protocol_violation');
    release();
  }
});

test('refuses requests on a link of an earlier protocol version', async () => {
  await start();
  const agent = await connected(6);
  agent.send(request());
  expect((await agent.closed).reason).toBe('protocol_violation');
});

test('answers other messages while an agent does not read its content, and serves other agents', async () => {
  await start({ contentLinks: 1 });
  const agent = await connected();
  agent.send(request());
  await received(agent, 1, most);
  agent.socket.pause();
  const other = await connected(7, '01HZZZZZZZZZZZZZZZZZZZ0002');
  for (let number = 2; number <= 5; number++) agent.send(request({ request: number, from: 0 }));
  other.send(request({ operation_id: '01HZZZZZZZZZZZZZZZZZZZ0002' }));
  await received(other, 1, most);
  await other.settled();
  agent.socket.resume();
  await received(agent, 5, most);
});
