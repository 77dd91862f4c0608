import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { closeReason, type OperationMessage, type Report, limits as wireLimits } from '@muster/protocol/wire';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { watchTurns } from '../../test/longest-turn.ts';
import { MemoryLinks } from '../../test/memory-links.ts';
import { sampleAt } from '../../test/samples.ts';
import { type AgentKey, dialAsAgent, newAgentKey, type TestAgent } from '../../test/test-agent.ts';
import type { Bus } from '../bus/bus.ts';
import { createInProcessBus } from '../bus/in-process.ts';
import { networkOf } from '../client-network.ts';
import { type Identity, loadIdentity } from '../identity/identity.ts';
import { createGateway, type Gateway, type GatewayOptions } from './gateway.ts';
import type { GatewayLimits } from './limits.ts';

let dir: string;
let identity: Identity;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-gateway-'));
  identity = await loadIdentity(dir);
});
afterAll(() => rm(dir, { recursive: true, force: true }));

let gateway: Gateway;
let port: number;
let links: MemoryLinks;
let bus: Bus;
let clock: ManualClock;
let logged: { level: string; fields: Record<string, unknown>; message: string }[];
const agents: TestAgent[] = [];

async function start(
  limits: Partial<GatewayLimits> = {},
  more: Pick<GatewayOptions, 'metricsInterval' | 'addresses'> = {},
): Promise<void> {
  const write = (level: string) => (fields: object, message: string) =>
    void logged.push({ level, fields: fields as Record<string, unknown>, message });
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  gateway = createGateway({
    identity,
    links,
    bus,
    clock,
    log,
    random: () => 0.5,
    limits,
    ...more,
  });
  port = await gateway.listen('127.0.0.1', 0);
}

async function dial(key?: AgentKey, host?: string): Promise<TestAgent> {
  const agent = await dialAsAgent(port, key, host);
  agents.push(agent);
  return agent;
}

const refusalLogged = () => logged.find((entry) => entry.message === 'refused an agent')?.fields;

/**
 * Resolves when `condition` returns true. Does not advance the clock, so only I/O that is already in progress can
 * fulfill it.
 */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

let operations = 0;
function operation(): OperationMessage {
  return {
    type: 'operation',
    operation_id: `01HZZZZZZZZZZZZZZZZZZZ${String(++operations).padStart(4, '0')}`,
    kind: 'apply',
    modules: ['m'],
    resources: [],
    keep_modules: [],
    snapshot_operation_id: null,
  };
}

const accepted = (id: string): Report => ({ type: 'accepted', operation_id: id });
const finished = (id: string, error: string | null = null): Report => ({
  type: 'finished',
  operation_id: id,
  status: 'succeeded',
  summary: { total: 0, unchanged: 0, changed: 0, removed: 0, failed: 0, skipped: 0 },
  error,
  started_at: 1,
  finished_at: 2,
});

beforeEach(() => {
  links = new MemoryLinks();
  bus = createInProcessBus((error) => {
    throw error;
  });
  clock = new ManualClock();
  logged = [];
});
afterEach(async () => {
  for (const agent of agents.splice(0)) agent.end();
  await gateway.close();
  await bus.close();
});

describe('agent admission', () => {
  test('welcomes an agent that proves possession of its key, once it is recorded', async () => {
    await start();
    let commit = () => {};
    links.gate = new Promise((resolve) => {
      commit = resolve;
    });
    const agent = await dial();
    agent.send(await agent.hello());
    await agent.settled();
    expect(gateway.presence.isConnected(agent.key.nodeId)).toBe(false);
    commit();
    expect(await agent.next('welcome')).toMatchObject({ version: 1, status: 'approved', acknowledged: 0 });
    expect(gateway.presence.isConnected(agent.key.nodeId)).toBe(true);
    expect(gateway.presence.count).toBe(1);
    expect(gateway.presence.lastContactAt(agent.key.nodeId)).toBe(clock.now() / 1000);
    agent.send({ type: 'bye', reason: 'stopped' });
    await agent.closed;
    await until(() => !gateway.presence.isConnected(agent.key.nodeId));
    expect(links.calls).toContain('closed: bye: stopped');
  });

  test('records the complete reason of a `bye`, even if it does not fit into a close frame', async () => {
    await start();
    for (const reason of ['x'.repeat(256), '😀'.repeat(128), 'a\ud83d'.repeat(128)]) {
      const agent = await dial();
      await agent.join();
      agent.send({ type: 'bye', reason });
      expect(await agent.closed).toEqual({ code: 1000, reason: 'bye' });
      await until(() => !gateway.presence.isConnected(agent.key.nodeId));
      expect(links.calls).toContain(`closed: bye: ${reason}`);
    }
    await (await dial()).join();
  });

  test('closes only the link whose message causes an internal error', async () => {
    await start();
    const [agent, other] = [await dial(), await dial()];
    await agent.join();
    await other.join();
    links.driftHinted = () => {
      throw new TypeError('a bug');
    };
    agent.send({ type: 'drift_hint', keys: ['path:/x'] });
    await agent.closed;
    await until(() => !gateway.presence.isConnected(agent.key.nodeId));
    expect(logged.find(({ level }) => level === 'error')).toMatchObject({
      message: expect.stringContaining('bug: failed to handle'),
      fields: { node_id: agent.key.nodeId, err: new TypeError('a bug') },
    });
    await other.settled();
    expect(gateway.presence.isConnected(other.key.nodeId)).toBe(true);
  });

  test('truncates the reason in a close frame between two characters', () => {
    for (const [reason, expected] of [
      ['short', 'short'],
      ['x'.repeat(200), 'x'.repeat(123)],
      ['é'.repeat(200), 'é'.repeat(61)],
      ['😀'.repeat(200), '😀'.repeat(30)],
    ] as const)
      expect(closeReason(reason)).toBe(expected);
  });

  test('accepts only TLS 1.3', async () => {
    await start();
    const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, maxVersion: 'TLSv1.2' });
    await expect(
      new Promise((resolve, reject) => {
        socket.on('secureConnect', resolve);
        socket.on('error', reject);
      }),
    ).rejects.toThrow(/alert|version/i);
  });

  test('does not resume TLS sessions, because a resumed session does not prove the orchestrator key', async () => {
    await start();
    const sessions: Buffer[] = [];
    const connect = (session?: Buffer) => {
      const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ...(session && { session }) });
      socket.on('error', () => {});
      socket.on('session', (ticket) => sessions.push(ticket));
      return new Promise<typeof socket>((resolve) => {
        socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
        // Session tickets, if any, would arrive before this data.
        socket.once('data', () => resolve(socket));
      });
    };
    const first = await connect();
    // OpenSSL sends session tickets despite `SSL_OP_NO_TICKET`, but they must be unusable.
    const second = await connect(sessions[0] ?? first.getSession());
    expect(second.isSessionReused()).toBe(false);
    first.destroy();
    second.destroy();
  });

  test('refuses a hello that was recorded on another connection', async () => {
    await start();
    const key = await newAgentKey();
    const first = await dial(key);
    const recorded = await first.hello();
    first.send(recorded);
    await first.next('welcome');
    const second = await dial(key);
    second.send(recorded);
    expect(await second.next('refused')).toMatchObject({ code: 'signature_invalid' });
    expect(await second.closed).toMatchObject({ code: 1008, reason: 'signature_invalid' });
    expect(refusalLogged()).toMatchObject({ code: 'signature_invalid', node_id: null, remote_ip: '127.0.0.1' });
    expect(links.refusals).toMatchObject([{ refusal: { code: 'signature_invalid' }, node_id: null }]);
    // The refusal does not affect the first link.
    expect(gateway.presence.isConnected(key.nodeId)).toBe(true);
  });

  test('refuses a hello that a man-in-the-middle relays unchanged after terminating TLS', async () => {
    await start();
    const relay = createTlsServer({ key: identity.privateKeyPem, cert: identity.certificatePem }, (inner) => {
      // Worst case: the relay has the real orchestrator key.
      const outer = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false });
      inner.pipe(outer).pipe(inner);
      inner.on('error', () => outer.destroy());
      outer.on('error', () => inner.destroy());
    });
    await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
    try {
      const agent = await dialAsAgent((relay.address() as AddressInfo).port);
      agents.push(agent);
      agent.send(await agent.hello());
      expect(await agent.next('refused')).toMatchObject({ code: 'signature_invalid' });
      expect(refusalLogged()).toMatchObject({ code: 'signature_invalid' });
      expect(links.calls).toEqual([]);
    } finally {
      relay.close();
    }
  });

  test('refuses a modified version list, and sends the supported versions to a newer agent', async () => {
    await start();
    const downgraded = await dial();
    downgraded.send({ ...(await downgraded.hello({}, [2, 1])), versions: [1] });
    expect(await downgraded.next('refused')).toMatchObject({ code: 'signature_invalid' });
    const newer = await dial();
    newer.send(await newer.hello({}, [9, 8]));
    const refusal = await newer.next('refused');
    expect(refusal.code).toBe('version_unsupported');
    expect(refusal.message).toContain(
      'this orchestrator supports protocol versions 7, 6, 5, 4, 3, 2, 1, agent test supports 9, 8',
    );
  });

  test('refuses small-order keys and non-canonical keys', async () => {
    await start();
    const identityPoint = `01${'00'.repeat(31)}`;
    const notReduced = `f0${'ff'.repeat(30)}7f`;
    for (const public_key of [identityPoint, notReduced]) {
      const agent = await dial();
      agent.send({ ...(await agent.hello()), public_key, signature: `${public_key}${'00'.repeat(32)}` });
      expect(await agent.next('refused')).toMatchObject({
        code: 'signature_invalid',
        message: 'the public key is of small order or not canonical',
      });
    }
  });

  test('refuses messages before the hello and before the welcome', async () => {
    await start();
    const early = await dial();
    early.send({ type: 'report', seq: 1, reports: [accepted(operation().operation_id)] });
    expect(await early.next('refused')).toMatchObject({
      code: 'protocol_violation',
      message: 'report before the hello',
    });
    links.gate = new Promise(() => {});
    const hasty = await dial();
    hasty.send(await hasty.hello());
    hasty.send({ type: 'attributes', attributes: {} });
    expect(await hasty.next('refused')).toMatchObject({ message: 'attributes received before the welcome' });
    expect(links.calls).not.toContain('attributes');
  });

  test('checks the signature in a hello before its other fields', async () => {
    await start();
    const agent = await dial();
    const good = await agent.hello();
    const signature = `${good.signature.startsWith('0') ? '1' : '0'}${good.signature.slice(1)}`;
    agent.send({ ...good, signature, attributes: { '': 1 }, more: true });
    expect(await agent.next('refused')).toMatchObject({ code: 'signature_invalid' });
    const signed = await dial();
    signed.send({ ...(await signed.hello()), attributes: { '': 1 } });
    expect(await signed.next('refused')).toMatchObject({
      code: 'protocol_violation',
      message: 'a message does not match its schema: attributes: must have keys of 1 to 128 characters',
    });
  });

  test('refuses an agent with an unknown version without repeating its agent_version', async () => {
    await start();
    const agent = await dial();
    agent.send(await agent.hello({ versions: [999], agent_version: '\u009b31m' }));
    const { code, message } = await agent.next('refused');
    expect(code).toBe('version_unsupported');
    expect(message).not.toContain('\u009b');
  });

  test('refuses an agent_version that is not a version', async () => {
    await start();
    for (const agent_version of ['', 'a b', '1\u009b', '1\u202e', 'x'.repeat(65)]) {
      const agent = await dial();
      agent.send(await agent.hello({ agent_version }));
      expect((await agent.next('refused')).message).toContain('agent_version');
    }
    await (await dial()).join({ agent_version: '0.1.0-rc.1+build.7' });
  });

  test('refuses an agent without a hello after ten seconds, and drops a client that does not upgrade', async () => {
    await start();
    const mute = await dial();
    const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false });
    socket.on('error', () => {});
    await new Promise((resolve) => socket.once('secureConnect', resolve));
    await mute.settled();
    clock.advance(9_000);
    await mute.settled();
    expect(mute.count('refused')).toBe(0);
    clock.advance(1_500);
    expect(await mute.next('refused')).toMatchObject({ code: 'hello_timeout', message: 'no hello within 10 s' });
    await new Promise((resolve) => socket.once('close', resolve));
    expect(refusalLogged()).toMatchObject({ code: 'hello_timeout' });
  });

  test('accepts a hello and an upgrade that arrived while the process was stopped for a minute', async () => {
    await start();
    const agent = await dial();
    const hello = await agent.hello();
    const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false });
    socket.on('error', () => {});
    await new Promise((resolve) => socket.once('secureConnect', resolve));
    await agent.settled();
    // Stops the process in the event-loop turn in which the hello is sent.
    agent.send(hello);
    const upgraded = new WebSocket('ws://muster/', { createConnection: () => socket });
    const opened = new Promise((resolve, reject) => {
      upgraded.once('open', resolve);
      upgraded.once('error', reject);
    });
    clock.stall(60_000);
    await agent.next('welcome');
    await opened;
    upgraded.terminate();
    // The limits still apply to an agent without a hello.
    const mute = await dial();
    await mute.settled();
    clock.stall(60_000);
    clock.advance(10_000);
    expect(await mute.next('refused')).toMatchObject({ code: 'hello_timeout' });
  });

  test('refuses a rejected or removed agent for ten minutes', async () => {
    await start();
    const key = await newAgentKey();
    const first = await dial(key);
    await first.join();
    links.row(key.nodeId).standing.status = 'rejected';
    bus.publish({ type: 'agent_changed', node_id: key.nodeId });
    expect(await first.next('refused')).toMatchObject({ code: 'rejected', retry_after_secs: 600 });
    await first.closed;
    const second = await dial(key);
    second.send(await second.hello());
    expect(await second.next('refused')).toMatchObject({ code: 'rejected', retry_after_secs: 600 });
    links.rows.delete(key.nodeId);
    const third = await dial(key);
    await third.join();
    links.rows.delete(key.nodeId);
    bus.publish({ type: 'agent_removed', node_id: key.nodeId });
    expect(await third.next('refused')).toMatchObject({ code: 'removed', retry_after_secs: 600 });
  });

  test('limits an agent’s admission rate without delaying other agents', async () => {
    await start({ admissionBurst: 3, admissionsPerSecond: 0.5 });
    const key = await newAgentKey();
    for (let at = 0; at < 3; at++) {
      const agent = await dial(key);
      await agent.join();
      agent.end();
      await agent.closed;
    }
    const admissions = () => links.calls.filter((call) => call.startsWith('admit ')).length;
    expect(admissions()).toBe(3);
    const early = await dial(key);
    early.send(await early.hello());
    expect(await early.next('refused')).toMatchObject({ code: 'rate_exceeded', retry_after_secs: 2 });
    expect(admissions()).toBe(3);
    await (await dial()).join();
    clock.advance(2_000);
    await (await dial(key)).join();
  });

  test('does not count connections with a copied key toward the agent’s admission rate', async () => {
    await start({ admissionBurst: 3, admissionsPerSecond: 0.001 });
    const key = await newAgentKey();
    const agent = await dial(key);
    await agent.join();
    for (let at = 0; at < 5; at++) {
      const copy = await dial(key);
      copy.send(await copy.hello());
      expect(await copy.next('refused')).toMatchObject({ code: 'cloned' });
    }
    agent.end();
    await agent.closed;
    await (await dial(key)).join();
  });

  test('requests that an agent reconnect in five seconds if the agent cannot be recorded', async () => {
    await start();
    links.failing = true;
    const agent = await dial();
    agent.send(await agent.hello());
    expect(await agent.next('refused')).toMatchObject({ code: 'unavailable', retry_after_secs: 5 });
    // The failure is not reported as a refused agent.
    expect(links.refusals).toEqual([]);
  });
});

describe('link limits', () => {
  test('disconnects an agent that sends a frame that is too large, not JSON, binary, or outside the schema', async () => {
    await start();
    const large = await dial();
    await large.join();
    large.ws.send('x'.repeat(33 * 1024));
    expect((await large.closed).code).toBe(1009);
    await until(() => refusalLogged() !== undefined);
    expect(refusalLogged()).toMatchObject({
      code: 'protocol_violation',
      reason: 'a frame exceeds 32768 bytes',
      node_id: large.key.nodeId,
    });
    const faults: [string | Buffer, string][] = [
      ['{', 'a frame is not JSON'],
      [Buffer.from('x'), 'unexpected binary frame'],
      ['{"type":"sudo"}', 'a message does not match its schema: type: Invalid discriminator'],
      ['{"type":"bye","reason":"","more":1}', 'Unrecognized key'],
    ];
    for (const [frame, message] of faults) {
      const agent = await dial();
      await agent.join();
      agent.ws.send(frame);
      const refusal = await agent.next('refused');
      expect(refusal.code).toBe('protocol_violation');
      expect(refusal.message).toContain(message);
      await agent.closed;
    }
  });

  test('accepts only one hello per link', async () => {
    await start();
    const agent = await dial();
    const hello = await agent.hello();
    agent.send(hello);
    await agent.next('welcome');
    agent.send(hello);
    expect((await agent.next('refused')).message).toBe('the hello was sent twice');
  });

  test('disconnects an agent that exceeds the message rate, pings included', async () => {
    await start({ agentMessagesPerSecond: 10, agentMessageBurst: 20 });
    const agent = await dial();
    await agent.join();
    for (let i = 0; i < 18; i++) agent.send({ type: 'drift_hint', keys: ['path:/x'] });
    await agent.settled();
    clock.advance(1000);
    for (let i = 0; i < 9; i++) agent.send({ type: 'drift_hint', keys: ['path:/x'] });
    await agent.settled();
    for (let i = 0; i < 30; i++) agent.ws.ping();
    expect(await agent.next('refused')).toMatchObject({ code: 'rate_exceeded' });
    expect((await agent.closed).code).toBe(1008);
  });

  test('slows down an agent that reports faster than the message rate instead of disconnecting it', async () => {
    await start({ agentMessagesPerSecond: 10, agentMessageBurst: 20 });
    const agent = await dial();
    await agent.join();
    const { operation_id } = operation();
    links.owners.set(operation_id, agent.key.nodeId);
    const began = clock.monotonic();
    let acknowledged = 0;
    /** Advances the clock until the orchestrator sends the message. */
    const answered = async (type: 'ack' | 'credit') => {
      const answer = agent.next(type);
      let isThere = false;
      void answer.then(() => {
        isThere = true;
      });
      while (!isThere) {
        clock.advance(100);
        await new Promise((resolve) => setImmediate(resolve));
      }
      return answer;
    };
    for (let seq = 1; seq <= 60; ) {
      // 20 reports always fit into the window.
      for (let some = 0; some < 20 && seq <= 60; some++, seq++)
        agent.send({ type: 'report', seq, reports: [accepted(operation_id)] });
      while (acknowledged < seq - 1) {
        const ack = (await answered('ack')) as { seq: number };
        acknowledged = ack.seq;
      }
    }
    expect(acknowledged).toBe(60);
    // Each chunk is a frame, so the message rate also delays credit for chunks.
    const text = JSON.stringify([finished(operation_id, 'x'.repeat(60))]);
    const parts = text.length;
    for (let part = 0; part < parts; part++) {
      agent.send({ type: 'report_part', seq: 61, part, parts, text: text[part]! });
      if (part < parts - 1) await answered('credit');
    }
    while (acknowledged < 61) acknowledged = ((await answered('ack')) as { seq: number }).seq;
    expect(clock.monotonic() - began).toBeGreaterThanOrEqual(((60 + parts - 20) / 10) * 1000);
    for (let i = 0; i < 15; i++) agent.send({ type: 'drift_hint', keys: ['path:/x'] });
    await agent.settled();
    expect(agent.count('refused')).toBe(0);
    expect(gateway.presence.isConnected(agent.key.nodeId)).toBe(true);
  });

  test('handles a burst of drift hints, and then only the newest hint of each interval', async () => {
    await start({ driftHintBurst: 3, driftHintIntervalMs: 60_000 });
    const agent = await dial();
    await agent.join();
    const hints = () => links.calls.filter((call) => call.startsWith('drift '));
    for (let i = 0; i < 6; i++) {
      agent.send({ type: 'drift_hint', keys: [`path:/${i}`] });
      await agent.settled();
    }
    expect(hints()).toEqual(['drift path:/0', 'drift path:/1', 'drift path:/2']);
    clock.advance(60_000);
    await until(() => hints().length === 4);
    expect(hints()[3]).toBe('drift path:/5');
  });

  test('sends an agent its work only once it is approved', async () => {
    links.newStatus = 'pending';
    await start();
    const agent = await dial();
    expect((await agent.join()).status).toBe('pending');
    const { nodeId } = agent.key;
    const queued = operation();
    links.queue(nodeId, queued);
    // The gateway must not send an operation to an unapproved agent, even if the domain returns one.
    links.nextOperation = async () => ({ operation: queued, more: false });
    bus.publish({ type: 'work', node_id: nodeId });
    clock.advance(10_000);
    await agent.settled();
    await until(() => links.calls.includes('agentsWithWork'));
    await agent.settled();
    expect(agent.count('operation')).toBe(0);
    links.row(nodeId).standing = { status: 'approved', name: 'web', tags: { a: 'b' } };
    bus.publish({ type: 'agent_changed', node_id: nodeId });
    expect(await agent.next('status')).toEqual({ type: 'status', status: 'approved', name: 'web', tags: { a: 'b' } });
    expect(await agent.next('operation')).toEqual(queued);
  });

  test('disconnects an agent that reports on another agent’s operation', async () => {
    await start();
    const owner = await dial();
    await owner.join();
    const theirs = operation();
    links.queue(owner.key.nodeId, theirs);
    const thief = await dial();
    await thief.join();
    thief.send({ type: 'report', seq: 1, reports: [finished(theirs.operation_id)] });
    expect((await thief.next('refused')).message).toContain("another agent's");
    expect((await thief.closed).code).toBe(1008);
    expect(refusalLogged()).toMatchObject({ code: 'protocol_violation', node_id: thief.key.nodeId });
    expect(links.row(owner.key.nodeId).reports).toEqual([]);
    expect(thief.count('ack')).toBe(0);
  });

  test('limits log lines and audit events for repeated refusals, and logs the number of omitted refusals', async () => {
    await start({ refusalBurst: 2, refusalsPerSecond: 1 });
    for (let i = 0; i < 5; i++) {
      const agent = await dial();
      agent.send({ type: 'bye', reason: '' });
      await agent.closed;
    }
    expect(links.refusals).toHaveLength(2);
    clock.advance(1000);
    const agent = await dial();
    agent.send({ type: 'bye', reason: '' });
    await agent.closed;
    expect(logged.filter((entry) => entry.message === 'refused an agent').at(-1)?.fields).toMatchObject({
      unlogged: 3,
    });
  });
});

describe('live program output', () => {
  const piece = (text: string) => ({
    type: 'output_progress',
    operation_id: '01HZZZZZZZZZZZZZZZZZZZ0001',
    resource: 'site/deploy',
    stdout: { from: 0, to: text.length, text },
    stderr: null,
  });

  test('forwards and acknowledges live output, except from an unapproved agent', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    agent.send(piece('one'));
    await agent.next('output_taken');
    expect(links.shown).toMatchObject([{ resource: 'site/deploy', stdout: { text: 'one' } }]);
    links.newStatus = 'pending';
    const stranger = await dial();
    await stranger.join();
    stranger.send(piece('spam'));
    await stranger.next('output_taken');
    expect(links.shown).toHaveLength(1);
  });

  test('disconnects an agent whose live output is unsolicited, too frequent, or beyond the window', async () => {
    await start();
    const large = await dial();
    await large.join();
    large.send(piece('x'.repeat(4_000)));
    expect(await large.next('refused')).toMatchObject({ code: 'protocol_violation' });

    const often = await dial();
    await often.join();
    for (let i = 0; i < 5; i++) {
      often.send(piece('x'));
      await often.next('output_taken');
    }
    often.send(piece('x'));
    expect(await often.next('refused')).toMatchObject({ code: 'rate_exceeded' });

    const early = await dial();
    await early.join();
    let open = () => {};
    const closed = () =>
      new Promise<void>((resolve) => {
        open = resolve;
      });
    links.gate = closed();
    early.send(piece('x'));
    early.send(piece('x'));
    expect(await early.next('refused')).toMatchObject({ code: 'rate_exceeded' });

    open();
    const crowded = await dial();
    await crowded.join();
    const queued = operation();
    links.owners.set(queued.operation_id, crowded.key.nodeId);
    links.gate = closed();
    crowded.send({ type: 'report', seq: 1, reports: [finished(queued.operation_id, 'x'.repeat(7_000))] });
    crowded.send(piece('x'.repeat(2_000)));
    expect(await crowded.next('refused')).toMatchObject({ code: 'protocol_violation' });
    open();
  });
});

describe('operations', () => {
  test('dispatches each operation after the end of the previous operation is committed', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    const [first, second] = [operation(), operation()];
    links.queue(agent.key.nodeId, first);
    links.queue(agent.key.nodeId, second);
    bus.publish({ type: 'work', node_id: agent.key.nodeId });
    expect(await agent.next('operation')).toEqual(first);
    agent.send({ type: 'report', seq: 1, reports: [accepted(first.operation_id)] });
    expect(await agent.next('ack')).toEqual({ type: 'ack', seq: 1 });
    bus.publish({ type: 'work', node_id: agent.key.nodeId });
    await agent.settled();
    await agent.settled();
    expect(agent.count('operation')).toBe(0);
    agent.send({ type: 'report', seq: 2, reports: [finished(first.operation_id)] });
    expect(await agent.next('operation')).toEqual(second);
  });

  test('sends operations and cancellations after a sweep when every hint was lost', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    await agent.settled();
    const queued = operation();
    links.queue(agent.key.nodeId, queued);
    links.row(agent.key.nodeId).cancellations.push(queued.operation_id);
    clock.advance(10_000);
    expect(await agent.next('operation')).toEqual(queued);
    expect(await agent.next('cancel')).toEqual({ type: 'cancel', operation_id: queued.operation_id });
    // An operation that was not accepted is sent again after 30 s.
    clock.advance(20_000);
    await agent.settled();
    expect(agent.count('operation')).toBe(0);
    clock.advance(20_000);
    expect(await agent.next('operation')).toEqual(queued);
    agent.send({ type: 'report', seq: 1, reports: [accepted(queued.operation_id)] });
    await agent.next('ack');
    // The gateway must not send an accepted operation again, even if the domain returns it.
    links.nextOperation = async () => ({ operation: queued, more: false });
    clock.advance(40_000);
    await agent.settled();
    await agent.settled();
    expect(agent.count('operation')).toBe(0);
  });

  test('dispatches the next operation when the previous operation expires without a report', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    const [first, second] = [operation(), operation()];
    links.queue(agent.key.nodeId, first);
    bus.publish({ type: 'work', node_id: agent.key.nodeId });
    await agent.next('operation');
    links.row(agent.key.nodeId).queue = [second];
    const { operation_id } = first;
    bus.publish({ type: 'operation_ended', run_id: null, operation_id, node_id: agent.key.nodeId, status: 'expired' });
    expect(await agent.next('operation')).toEqual(second);
  });

  test('sends a cancellation immediately, and repeats it when the agent reconnects', async () => {
    await start();
    const key = await newAgentKey();
    const agent = await dial(key);
    await agent.join();
    const { operation_id } = operation();
    bus.publish({ type: 'cancel', node_id: key.nodeId, operation_id });
    expect(await agent.next('cancel')).toEqual({ type: 'cancel', operation_id });
    agent.end();
    await until(() => !gateway.presence.isConnected(key.nodeId));
    links.row(key.nodeId).cancellations.push(operation_id);
    const again = await dial(key);
    await again.join();
    expect(await again.next('cancel')).toEqual({ type: 'cancel', operation_id });
  });

  test('sends an agent its status if the status changed during admission', async () => {
    links.newStatus = 'pending';
    await start();
    const agent = await dial();
    const admit = links.admit.bind(links);
    links.admit = async (hello, from) => {
      const admission = await admit(hello, from);
      links.row(agent.key.nodeId).standing = { status: 'approved', name: 'web', tags: {} };
      bus.publish({ type: 'agent_changed', node_id: agent.key.nodeId });
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
      return admission;
    };
    expect((await agent.join()).status).toBe('pending');
    expect((await agent.next('status')).status).toBe('approved');
  });
});

describe('reports', () => {
  test('acknowledges reports once they are committed, and commits together all reports that arrive during a commit', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    const { operation_id } = operation();
    links.owners.set(operation_id, agent.key.nodeId);
    let commit = () => {};
    links.gate = new Promise((resolve) => {
      commit = resolve;
    });
    for (const seq of [1, 3, 4]) agent.send({ type: 'report', seq, reports: [accepted(operation_id)] });
    await agent.settled();
    expect(agent.count('ack')).toBe(0);
    commit();
    expect(await agent.next('ack')).toEqual({ type: 'ack', seq: 1 });
    expect(await agent.next('ack')).toEqual({ type: 'ack', seq: 4 });
    expect(links.calls.filter((call) => call.startsWith('reported'))).toEqual(['reported 1 × 1', 'reported 4 × 2']);
    agent.send({ type: 'report', seq: 4, reports: [accepted(operation_id)] });
    expect((await agent.next('refused')).message).toBe('report 4 does not follow report 4');
  });

  test('does not acknowledge reports that cannot be committed', async () => {
    await start();
    const key = await newAgentKey();
    const agent = await dial(key);
    await agent.join();
    const { operation_id } = operation();
    links.owners.set(operation_id, key.nodeId);
    links.failing = true;
    agent.send({ type: 'report', seq: 1, reports: [accepted(operation_id)] });
    expect(await agent.next('refused')).toMatchObject({ code: 'unavailable', retry_after_secs: 5 });
    expect(agent.count('ack')).toBe(0);
    links.failing = false;
    const again = await dial(key);
    expect((await again.join()).acknowledged).toBe(0);
    again.send({ type: 'report', seq: 1, reports: [accepted(operation_id)] });
    expect(await again.next('ack')).toEqual({ type: 'ack', seq: 1 });
  });

  test('limits an agent’s reports to its 8 KiB window', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    let commit = () => {};
    links.gate = new Promise((resolve) => {
      commit = resolve;
    });
    const { operation_id } = operation();
    for (const seq of [1, 2, 3])
      agent.send({ type: 'report', seq, reports: [finished(operation_id, 'x'.repeat(2_900))] });
    expect(await agent.next('refused')).toMatchObject({
      code: 'protocol_violation',
      message: 'more than 8192 bytes of unacknowledged reports',
    });
    commit();
  });

  /** Splits one report into `report_part` messages. */
  function pieces(seq: number, reports: Report[], length = 3_000): object[] {
    const text = JSON.stringify(reports);
    const parts = Math.ceil(text.length / length);
    return Array.from({ length: parts }, (_, part) => ({
      type: 'report_part',
      seq,
      part,
      parts,
      text: text.slice(part * length, (part + 1) * length),
    }));
  }

  /**
   * Returns four results with 100 kB of output each, which exceed the window many times. Chunks are split at quotes and
   * wide characters.
   */
  const large = (operation_id: string): Report[] =>
    Array.from({ length: 4 }, () => ({
      type: 'output',
      operation_id,
      resource: 'm/s',
      stdout: '"\\ é 😀 '.repeat(12_000),
      stderr: '',
      exit_code: 0,
      truncated: false,
    }));

  test('commits a large report completely or not at all, even after a disconnect', async () => {
    await start();
    const key = await newAgentKey();
    const agent = await dial(key);
    await agent.join();
    const { operation_id } = operation();
    links.owners.set(operation_id, key.nodeId);
    const reports = large(operation_id);
    const frames = pieces(1, reports);
    for (const frame of frames.slice(0, 60)) {
      agent.send(frame);
      await agent.next('credit');
    }
    agent.end();
    await until(() => !gateway.presence.isConnected(key.nodeId));
    expect(links.row(key.nodeId).reports).toEqual([]);

    const again = await dial(key);
    expect((await again.join()).acknowledged).toBe(0);
    for (const [part, frame] of frames.entries()) {
      again.send(frame);
      if (part < frames.length - 1) expect(await again.next('credit')).toEqual({ type: 'credit', seq: 1, part });
    }
    expect(await again.next('ack')).toEqual({ type: 'ack', seq: 1 });
    expect(links.row(key.nodeId).reports).toEqual(reports);
    // A report of almost 8 KiB shows that the whole window is available.
    again.send({ type: 'report', seq: 2, reports: [finished(operation_id, 'x'.repeat(7_800))] });
    expect(await again.next('ack')).toEqual({ type: 'ack', seq: 2 });
  });

  test('refuses report chunks that are out of order, inconsistent, invalid, or stalled', async () => {
    await start();
    const { operation_id } = operation();
    const [first, second, third] = pieces(1, large(operation_id)) as { part: number; parts: number; text: string }[];
    const faults: [object[], string][] = [
      [[first!, third!], 'piece 2 of'],
      [[first!, { ...second!, parts: 7 }], 'piece 1 of 7'],
      [[first!, { type: 'report', seq: 2, reports: [accepted(operation_id)] }], 'between the pieces of another'],
      [
        [
          { ...first!, parts: 2, text: '[' },
          { ...second!, parts: 2, text: '{' },
        ],
        'are not valid JSON',
      ],
      [
        [
          { ...first!, parts: 2, text: '[' },
          { ...second!, parts: 2, text: ']' },
        ],
        'does not match its schema',
      ],
    ];
    for (const [frames, message] of faults) {
      const agent = await dial();
      await agent.join();
      for (const frame of frames) agent.send(frame);
      expect((await agent.next('refused')).message).toContain(message);
    }
    const idle = await dial();
    await idle.join();
    idle.send(first!);
    await idle.next('credit');
    clock.advance(30_000);
    await idle.settled();
    clock.advance(30_000);
    expect((await idle.next('refused')).message).toContain('stalled at piece 1 of');
  });

  test('refuses report chunks whose total length exceeds the maximum report length', async () => {
    await start({ reportLength: 10_000 });
    const agent = await dial();
    await agent.join();
    const frames = pieces(1, large(operation().operation_id));
    for (let i = 0; i < 3; i++) {
      agent.send(frames[i]!);
      await agent.next('credit');
    }
    agent.send(frames[3]!);
    expect((await agent.next('refused')).message).toBe('a report exceeds 10000 characters');
  });

  test('gives no credit beyond the shared reassembly budget, except for the oldest report', async () => {
    await start({ reassemblyLength: 5_000 });
    const { operation_id } = operation();
    const frames = pieces(1, large(operation_id));
    const [first, second] = [await dial(), await dial()];
    await first.join();
    await second.join();
    first.send(frames[0]!);
    await first.next('credit');
    second.send(frames[0]!);
    await second.settled();
    expect(second.count('credit')).toBe(0);
    for (const frame of frames.slice(1, 4)) {
      first.send(frame);
      await first.next('credit');
    }
    // A report that waits for budget does not count as stalled.
    for (let i = 0; i < 3; i++) {
      first.send(frames[4 + i * 2]!);
      first.send(frames[5 + i * 2]!);
      await first.settled();
      clock.advance(10_000);
      await second.settled();
    }
    expect(second.count('credit')).toBe(0);
    first.end();
    await second.next('credit');
  });

  test('counts received report chunks toward the budget, but not announced chunks', async () => {
    await start({ reassemblyLength: 100_000 });
    for (let i = 0; i < 8; i++) {
      const agent = await dial();
      await agent.join();
      agent.send({ type: 'report_part', seq: 1, part: 0, parts: 4_096, text: 'x' });
      await agent.next('credit');
    }
    const honest = await dial();
    await honest.join();
    for (const frame of pieces(1, large(operation().operation_id)).slice(0, 10)) {
      honest.send(frame);
      await honest.next('credit');
    }
  });

  test('refuses reports that arrive too slowly or exceed the deadline', async () => {
    const frames = pieces(1, large(operation().operation_id));
    await start({ reportDeadlineMs: 90_000 });
    /**
     * Sends `pieceCount` chunks, one every half minute.
     * @returns the number of half minutes until the refusal, and the reason
     */
    async function send(pieceCount: number): Promise<[number, string]> {
      const agent = await dial();
      await agent.join();
      for (let visit = 1, sent = 0; ; visit++) {
        for (let i = 0; i < pieceCount; i++) {
          agent.send(frames[sent++]!);
          await agent.next('credit');
        }
        clock.advance(30_000);
        expect(visit).toBeLessThan(5);
        const refused = logged.findLast((entry) => entry.message === 'refused an agent');
        if (refused?.fields.node_id === agent.key.nodeId) return [visit, String(refused.fields.reason)];
      }
    }
    expect(await send(5)).toEqual([2, 'report 1 arrived at less than 512 characters per second']);
    expect(await send(6)).toEqual([3, 'report 1 was not complete after 90 s']);
  });

  test('ignores an unapproved agent’s reports, and makes the agent reconnect and resend the reports once it is approved', async () => {
    links.newStatus = 'pending';
    await start();
    const agent = await dial();
    await agent.join();
    const { nodeId } = agent.key;
    const { operation_id } = operation();
    links.owners.set(operation_id, nodeId);
    agent.send(pieces(1, large(operation_id))[0]!);
    agent.send({ type: 'report', seq: 2, reports: [accepted(operation_id)] });
    await agent.settled();
    expect(agent.count('credit') + agent.count('ack') + agent.count('refused')).toBe(0);
    expect(links.calls.filter((call) => call.startsWith('reported'))).toEqual([]);
    links.row(nodeId).standing = { status: 'approved', name: 'web', tags: {} };
    bus.publish({ type: 'agent_changed', node_id: nodeId });
    expect(await agent.next('drain')).toEqual({ type: 'drain', retry_after_secs: 0 });
    expect((await agent.closed).code).toBe(1012);
    const again = await dial(agent.key);
    expect((await again.join()).acknowledged).toBe(0);
    again.send({ type: 'report', seq: 2, reports: [accepted(operation_id)] });
    expect(await again.next('ack')).toEqual({ type: 'ack', seq: 2 });
    // Ignored reports count toward the window.
    links.newStatus = 'pending';
    const pushy = await dial();
    await pushy.join();
    for (let i = 0; i < 3; i++) pushy.send(pieces(1, large(operation_id))[0]!);
    expect((await pushy.next('refused')).message).toContain('more than 8192 bytes of unacknowledged reports');
  });
});

describe('attributes and hints', () => {
  test('commits the newest attributes at most every five seconds', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    for (const n of ['1', '2', '3']) agent.send({ type: 'attributes', attributes: { n } });
    await agent.settled();
    expect(links.row(agent.key.nodeId).attributes).toEqual({ n: '1' });
    clock.advance(30_000);
    await until(() => links.row(agent.key.nodeId).attributes.n === '3');
    expect(links.calls.filter((call) => call === 'attributes')).toHaveLength(2);
  });

  test('commits pending attributes after five seconds, before the next ping', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    for (const n of ['1', '2']) agent.send({ type: 'attributes', attributes: { n } });
    await agent.settled();
    await clock.advance(4_900);
    await agent.settled();
    expect(links.row(agent.key.nodeId).attributes).toEqual({ n: '1' });
    await clock.advance(200);
    await until(() => links.row(agent.key.nodeId).attributes.n === '2');
  });

  test('logs an agent’s clock skew once, and a changed skew at most once per attribute commit', async () => {
    links.newStatus = 'pending';
    await start();
    const agent = await dial();
    await agent.join();
    const loggedSkews = () =>
      logged.flatMap(({ message, fields }) => (/clock of this agent/.test(message) ? [fields.clock_skew_secs] : []));
    const off = async (hours: number) => {
      agent.send({ type: 'attributes', attributes: {}, clock_ms: clock.now() + hours * 3_600_000 });
      await agent.settled();
    };
    for (const hours of [1, 2, 3]) await off(hours);
    expect(loggedSkews()).toEqual([3_600]);
    expect(gateway.presence.clockAheadSecs(agent.key.nodeId)).toBe(10_800);
    await clock.advance(5_000);
    expect(loggedSkews()).toEqual([3_600, 10_800]);
    await clock.advance(10_000);
    await off(3);
    await clock.advance(10_000);
    await off(0);
    await clock.advance(10_000);
    await off(1);
    expect(loggedSkews()).toEqual([3_600, 10_800, 3_600]);
  });

  test('forwards drift hints from approved agents', async () => {
    links.newStatus = 'pending';
    await start();
    const agent = await dial();
    await agent.join();
    agent.send({ type: 'drift_hint', keys: ['path:/a'] });
    await agent.settled();
    expect(links.calls).not.toContain('drift path:/a');
    links.row(agent.key.nodeId).standing = { status: 'approved', name: 'n', tags: {} };
    bus.publish({ type: 'agent_changed', node_id: agent.key.nodeId });
    await agent.next('status');
    agent.send({ type: 'drift_hint', keys: ['path:/a'] });
    await agent.settled();
    expect(links.calls).toContain('drift path:/a');
  });
});

describe('samples', () => {
  const sample = (collected_at: number) => sampleAt(collected_at, { cpu_usage: 12.5, uptime: 60 });
  const metrics = (...times: number[]) => ({ type: 'metrics', samples: times.map(sample) });

  test('accepts samples from approved agents, and acknowledges them after the commit', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    const { promise, resolve: open } = Promise.withResolvers<void>();
    links.gate = promise;
    agent.send(metrics(20, 30, 10));
    await agent.settled();
    expect(agent.count('metrics_stored')).toBe(0);
    open();
    expect(await agent.next('metrics_stored')).toEqual({ type: 'metrics_stored', collected_at: 30 });
    expect(links.samples).toEqual([{ node_id: agent.key.nodeId, samples: [sample(20), sample(30), sample(10)] }]);
    agent.send(metrics(40));
    expect(await agent.next('metrics_stored')).toMatchObject({ collected_at: 40 });
  });

  test('ignores samples from pending agents', async () => {
    links.newStatus = 'pending';
    await start();
    const agent = await dial();
    await agent.join();
    agent.send(metrics(10));
    agent.send(metrics(20));
    await agent.settled();
    expect(links.samples).toEqual([]);
    expect(agent.count('metrics_stored')).toBe(0);
  });

  test('refuses samples that cannot be stored, and logs only the first failure', async () => {
    await start();
    const agent = await dial();
    await agent.join({ versions: [3] });
    const old = await dial();
    await old.join({ versions: [2] });
    links.failing = true;
    for (let time = 0; time < 3; time++) {
      agent.send(metrics(10));
      expect(await agent.next('metrics_refused')).toEqual({ type: 'metrics_refused', retry_after_secs: 30 });
    }
    // Agents before protocol version 3 do not understand the refusal, and resend samples that are not acknowledged.
    old.send(metrics(10));
    await old.settled();
    for (const one of [agent, old]) expect(one.count('metrics_stored')).toBe(0);
    expect(old.count('metrics_refused')).toBe(0);
    expect(logged.filter(({ message }) => message.startsWith('failed to store samples'))).toHaveLength(1);
    links.failing = false;
    agent.send(metrics(10));
    await agent.next('metrics_stored');
  });

  test('accepts one samples message at a time, and only if it matches the schema', async () => {
    await start();
    const hasty = await dial();
    await hasty.join();
    links.gate = new Promise(() => {});
    hasty.send(metrics(10));
    hasty.send(metrics(20));
    expect(await hasty.next('refused')).toMatchObject({
      message: 'samples were sent before the previous samples were answered',
    });
    links.gate = Promise.resolve();
    const many = Array.from({ length: 49 }, (_, n) => n);
    for (const message of [
      { type: 'metrics', samples: [] },
      metrics(...many),
      { type: 'metrics', samples: [{ ...sample(1), cpu_usage: 101 }] },
      { type: 'metrics', samples: [{ ...sample(1), cpu_usage: '1' }] },
      { type: 'metrics', samples: [{ ...sample(1), memory_used: 2 ** 53 }] },
      { type: 'metrics', samples: [{ ...sample(1), extra: 1 }] },
      { type: 'metrics', samples: [{ collected_at: 1 }] },
    ]) {
      const agent = await dial();
      await agent.join();
      agent.send(message);
      expect(await agent.next('refused'), JSON.stringify(message)).toMatchObject({ code: 'protocol_violation' });
    }
  });

  test('sends the sample interval in the welcome', async () => {
    await start({}, { metricsInterval: 45 });
    expect((await (await dial()).join()).metrics_interval).toBe(45);
  });

  test('names further addresses in the welcome to agents that understand them', async () => {
    await start({}, { addresses: ['replica-2:4747'] });
    expect(await (await dial()).join({ versions: [7, 6] })).toMatchObject({
      version: 7,
      addresses: ['replica-2:4747'],
    });
    const older = await (await dial()).join({ versions: [6] });
    expect(older.version).toBe(6);
    expect(older).not.toHaveProperty('addresses');
  });

  test('fits a message with the maximum number of samples into one frame', () => {
    const largest = sampleAt(2_000_000_000, {
      cpu_usage: 12.345678901234567,
      load1: 123456.12345678901,
      ...Object.fromEntries(
        ['memory_total', 'memory_used', 'swap_used', 'disk_total', 'disk_used', 'net_rx_bytes', 'net_tx_bytes'].map(
          (name) => [name, Number.MAX_SAFE_INTEGER],
        ),
      ),
      processes: Number.MAX_SAFE_INTEGER,
      uptime: Number.MAX_SAFE_INTEGER,
    });
    const samples = Array.from({ length: wireLimits.samplesOfMessage }, () => largest);
    expect(JSON.stringify({ type: 'metrics', samples }).length).toBeLessThan(wireLimits.agentFrameBytes);
  });
});

describe('agent presence', () => {
  test('pings agents every half minute, and closes a link after three pings without a pong', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    let pings = 0;
    agent.ws.on('ping', () => pings++);
    clock.advance(30_000);
    await agent.settled();
    expect(pings).toBe(1);
    agent.socket.pause();
    for (let i = 0; i < 3; i++) {
      expect(gateway.presence.isConnected(agent.key.nodeId)).toBe(true);
      clock.advance(30_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    clock.advance(30_000);
    await until(() => !gateway.presence.isConnected(agent.key.nodeId));
    expect(links.calls).toContain('closed: connection lost: no answer to pings');
  });

  test('keeps links when the wall clock jumps, and derives the last contact from the monotonic clock', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    for (const jump of [-10 * 365 * 86_400_000, 20 * 365 * 86_400_000, -1]) {
      clock.jump(jump);
      for (let i = 0; i < 5; i++) {
        clock.advance(30_000);
        await agent.settled();
      }
      expect(gateway.presence.isConnected(agent.key.nodeId)).toBe(true);
      clock.advance(10_000);
      expect(gateway.presence.lastContactAt(agent.key.nodeId)).toBe(Math.floor(clock.now() / 1000) - 10);
    }
    expect(agent.count('refused')).toBe(0);
    // The time limits of the handshake, the upgrade, and the hello use the monotonic clock.
    clock.jump(-86_400_000);
    await (await dial()).join();
  });

  test('replaces a process’s link immediately with a new link from the same process', async () => {
    await start();
    const key = await newAgentKey();
    const instance_id = 'ab'.repeat(16);
    const former = await dial(key);
    await former.join({ instance_id });
    const newer = await dial(key);
    await newer.join({ instance_id });
    await former.closed;
    expect(gateway.presence.isConnected(key.nodeId)).toBe(true);
    expect(links.calls).toEqual(expect.arrayContaining(['closed: replaced by a newer link']));
    // If the previous link's disconnect were recorded after the new link, the agent would be marked as disconnected.
    expect(links.calls.indexOf('closed: replaced by a newer link')).toBeLessThan(links.calls.lastIndexOf('admit host'));
  });

  test('refuses and records a second process with the same key while the first process responds', async () => {
    await start();
    const key = await newAgentKey();
    const first = await dial(key);
    await first.join();
    const clone = await dial(key);
    clone.send(await clone.hello());
    expect(await clone.next('refused')).toMatchObject({ code: 'cloned' });
    expect(links.calls).toContain('cloned');
    expect(refusalLogged()).toMatchObject({ code: 'cloned', node_id: key.nodeId });
    await first.settled();
    expect(gateway.presence.isConnected(key.nodeId)).toBe(true);
  });

  describe('agents with replaced keys', () => {
    const instance_id = 'cd'.repeat(16);
    /** Creates two keys of one agent: a previous key, which is valid for one more minute, and the current key. */
    async function twoKeys() {
      await start();
      const [former, current] = [await newAgentKey(), await newAgentKey()];
      const hex = ({ publicKey }: AgentKey) => publicKey.toString('hex');
      const valid_until = Math.floor(clock.now() / 1000) + 60;
      const { nodeId: node_id } = former;
      links.keys.set(hex(former), { node_id, valid_until, succession: null });
      links.keys.set(hex(current), { node_id, valid_until: null, succession: null });
      const refuseFormer = () =>
        links.keys.set(hex(former), {
          refusal: { code: 'key_replaced', message: 'replaced', retry_after_secs: 600 },
          node_id,
        });
      return { former, current, node_id, refuseFormer };
    }

    test('sends an agent the same node ID for each of its keys', async () => {
      const { current, node_id } = await twoKeys();
      const agent = await dial(current);
      expect(await agent.join({ versions: [4] })).toMatchObject({ node_id });
      expect(gateway.presence.isConnected(node_id)).toBe(true);
      const older = await dial();
      expect(await older.join({ versions: [3] })).not.toHaveProperty('node_id');
    });

    test('refuses an unknown key with a code that the agent’s version supports', async () => {
      const { former, node_id } = await twoKeys();
      const refusal = { code: 'key_unknown', message: 'not known', retry_after_secs: null } as const;
      links.keys.set(former.publicKey.toString('hex'), { refusal, node_id });
      const codes = [];
      for (const versions of [[5], [4], [3]]) {
        const agent = await dial(former);
        agent.send(await agent.hello({ versions }));
        codes.push((await agent.next('refused')).code);
      }
      expect(codes).toEqual(['key_unknown', 'key_refused', 'rejected']);
    });

    test('closes a link when its previous key expires, and refuses new links with this key', async () => {
      const { former, node_id, refuseFormer } = await twoKeys();
      const agent = await dial(former);
      await agent.join({ versions: [4] });
      for (let secs = 0; secs < 90; secs++) {
        clock.advance(1_000);
        await Promise.race([agent.settled(), agent.closed]);
        if (agent.count('refused') > 0) break;
      }
      expect(await agent.next('refused')).toMatchObject({ code: 'key_replaced' });
      await agent.closed;
      expect(gateway.presence.isConnected(node_id)).toBe(false);
      refuseFormer();
      const again = await dial(former);
      again.send(await again.hello({ versions: [4] }));
      expect(await again.next('refused')).toMatchObject({ code: 'key_replaced', retry_after_secs: 600 });
      expect(links.refusals.at(-1)).toMatchObject({ node_id, refusal: { code: 'key_replaced' } });
      // Protocol version 3 has no code for replaced keys.
      const older = await dial(former);
      older.send(await older.hello({ versions: [3] }));
      expect(await older.next('refused')).toMatchObject({ code: 'rejected' });
    });

    test('replaces a link that uses a previous key with a link that uses the current key, but never the reverse', async () => {
      const { former, current, node_id } = await twoKeys();
      const copy = await dial(former);
      await copy.join({ versions: [4] });
      const real = await dial(current);
      await real.join({ versions: [4] });
      await copy.closed;
      expect(links.calls).not.toContain('cloned');
      const again = await dial(former);
      again.send(await again.hello({ versions: [4] }));
      expect(await again.next('refused')).toMatchObject({ code: 'cloned' });
      expect(gateway.presence.isConnected(node_id)).toBe(true);
    });

    test('refuses a second process with the new key while the first process responds', async () => {
      await start();
      const [key, next] = [await newAgentKey(), await newAgentKey()];
      const first = await dial(key);
      await first.join({ instance_id });
      links.keys.set(next.publicKey.toString('hex'), {
        node_id: key.nodeId,
        valid_until: null,
        succession: { former_key: key.publicKey.toString('hex'), former_until: 0, between: [] },
      });
      const thief = await dial(next);
      thief.send(await thief.hello({ versions: [4] }));
      expect(await thief.next('refused')).toMatchObject({ code: 'cloned' });
      const same = await dial(next);
      await same.join({ versions: [4], instance_id });
      await first.closed;
    });

    test('refuses other processes for a limited time when an agent disconnects to change its key', async () => {
      await start();
      const [key, next] = [await newAgentKey(), await newAgentKey()];
      const first = await dial(key);
      await first.join({ versions: [4], instance_id });
      links.keys.set(next.publicKey.toString('hex'), {
        node_id: key.nodeId,
        valid_until: null,
        succession: { former_key: key.publicKey.toString('hex'), former_until: 0, between: [] },
      });
      const expectRefused = async (thief: TestAgent) => {
        while (thief.count('welcome') + thief.count('refused') === 0) {
          clock.advance(100);
          await Promise.race([thief.settled(), thief.closed]);
        }
        expect(thief.count('welcome')).toBe(0);
        expect(await thief.next('refused')).toMatchObject({ code: 'unavailable', retry_after_secs: 5 });
      };
      const comes = async (with_: AgentKey) => {
        const thief = await dial(with_);
        thief.send(await thief.hello({ versions: [4] }));
        return thief;
      };
      // The first link disconnects while the second process waits for the probe.
      first.socket.pause();
      const waiting = await comes(key);
      await waiting.settled();
      first.send({ type: 'bye', reason: 'to show a new key', returns: true });
      await expectRefused(waiting);
      expect(gateway.presence.isConnected(key.nodeId)).toBe(false);
      await expectRefused(await comes(key));
      await expectRefused(await comes(next));
      const real = await dial(next);
      await real.join({ versions: [4], instance_id });
      // The agent announces another key change, but does not reconnect.
      real.send({ type: 'bye', reason: 'to show a new key', returns: true });
      await real.closed;
      clock.advance(14_000);
      await expectRefused(await comes(next));
      clock.advance(1_000);
      const restarted = await dial(next);
      await restarted.join({ versions: [4] });
    });
  });

  test('admits a restarted agent after its previous link has not responded for five seconds', async () => {
    await start();
    const key = await newAgentKey();
    const former = await dial(key);
    await former.join();
    former.socket.pause();
    const restarted = await dial(key);
    restarted.send(await restarted.hello());
    let waited = 0;
    while (restarted.count('welcome') + restarted.count('refused') === 0) {
      clock.advance(100);
      waited += 100;
      await restarted.settled();
    }
    await restarted.next('welcome');
    expect(waited).toBeGreaterThanOrEqual(5_000);
    expect(links.calls).not.toContain('cloned');
  });

  test('commits the previous link’s reports before it sends the number of the last acknowledged report', async () => {
    await start();
    const key = await newAgentKey();
    const instance_id = 'cd'.repeat(16);
    const former = await dial(key);
    await former.join({ instance_id });
    const { operation_id } = operation();
    links.owners.set(operation_id, key.nodeId);
    let commit = () => {};
    const reported = links.reported.bind(links);
    links.reported = async (...args) => {
      await new Promise<void>((resolve) => {
        commit = resolve;
      });
      return reported(...args);
    };
    former.send({ type: 'report', seq: 7, reports: [accepted(operation_id)] });
    await former.settled();
    const newer = await dial(key);
    newer.send(await newer.hello({ instance_id }));
    await newer.settled();
    expect(newer.count('welcome')).toBe(0);
    commit();
    expect((await newer.next('welcome')).acknowledged).toBe(7);
  });
});

describe('many connections', () => {
  test('admits all agents, a few at a time, without blocking the event loop', async () => {
    await start({ handshakesInFlight: 4 });
    const turns = watchTurns();
    await Promise.all(Array.from({ length: 200 }, async () => (await dial()).join()));
    const longest = turns.stop();
    expect(gateway.presence.count).toBe(200);
    // The simulated agents share this event loop, which doubles the measured time.
    expect(longest).toBeLessThan(500);
  });

  test('admits two hundred agents that reconnect at the same time without blocking the event loop', async () => {
    await start();
    // Runs the agents in a thread, so that only the gateway delays this event loop.
    const dialler = new Worker(new URL('../../test/dial-many.ts', import.meta.url), {
      workerData: { port, count: 200 },
    });
    const said = (word: string) =>
      new Promise<void>((resolve, reject) => {
        dialler.once('message', (message) => (message === word ? resolve() : reject(new Error(String(message)))));
        dialler.once('error', reject);
      });
    try {
      await said('joined');
      expect(gateway.presence.count).toBe(200);
      dialler.postMessage('cut');
      await said('cut');
      await until(() => gateway.presence.count === 0);
      const turns = watchTurns();
      const joined = said('joined');
      dialler.postMessage('return');
      await joined;
      const longest = turns.stop();
      expect(gateway.presence.count).toBe(200);
      expect(longest).toBeLessThan(150);
    } finally {
      await dialler.terminate();
    }
  });

  test('completes a handshake whose client responded while the process was stopped', async () => {
    await start({ handshakeTimeoutMs: 100 });
    const held: Buffer[] = [];
    let deliver = () => {};
    const proxy = createTcpServer((client) => {
      const server = connectTcp(port, '127.0.0.1');
      let answered = false;
      deliver = () => {
        answered = false;
        for (const bytes of held) server.write(bytes);
      };
      client.on('data', (bytes) => void (answered ? held.push(bytes) : server.write(bytes)));
      server.once('data', () => {
        answered = true;
      });
      server.on('data', (bytes) => client.write(bytes));
      for (const socket of [client, server]) socket.on('error', () => {});
      server.on('close', () => client.destroy());
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    try {
      const dialed = dialAsAgent((proxy.address() as AddressInfo).port);
      await until(() => held.length > 0);
      deliver();
      // The process does not read the last message of the handshake from the kernel in time.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
      const agent = await dialed;
      agents.push(agent);
      await agent.join();
    } finally {
      proxy.close();
    }
  });

  test('aborts a handshake that takes too long', async () => {
    await start({ handshakeSlotMs: 1_000, handshakeTimeoutMs: 5_000 });
    const silent = connectTcp(port, '127.0.0.1');
    let dropped = false;
    silent.on('error', () => {});
    silent.once('close', () => {
      dropped = true;
    });
    const greeted = await dial();
    await new Promise((resolve) => setTimeout(resolve, 20));
    clock.advance(4_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(dropped).toBe(false);
    clock.advance(1_500);
    await until(() => dropped);
    // The TLS handshake is complete, so only the time limit for the hello applies.
    await greeted.join();
  });

  test('drops a connection that waits too long for its handshake to start', async () => {
    await start({ handshakesInFlight: 1, handshakeSlotMs: 60_000, waitingTimeoutMs: 5_000 });
    const holder = connectTcp(port, '127.0.0.1');
    await new Promise((resolve) => holder.once('connect', resolve));
    const waiting = connectTcp(port, '127.0.0.1');
    let dropped = false;
    waiting.on('error', () => {});
    waiting.once('close', () => {
      dropped = true;
    });
    await new Promise((resolve) => waiting.once('connect', resolve));
    await new Promise((resolve) => setTimeout(resolve, 20));
    clock.advance(4_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(dropped).toBe(false);
    clock.advance(1_500);
    await until(() => dropped);
    holder.destroy();
  });

  test('reassigns a silent socket’s handshake slot to a waiting connection', async () => {
    await start({ handshakesInFlight: 1 });
    const silent = Array.from({ length: 3 }, () => connectTcp(port, '127.0.0.1'));
    await Promise.all(silent.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
    // A connection from a second address is served before other connections from the first address.
    const waiting = dial(undefined, '127.0.0.1');
    for (let second = 0; second < 4; second++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      clock.advance(1_250);
    }
    await (await waiting).join();
    for (const socket of silent) socket.destroy();
  });

  test('begins no handshake above the limit while agents wait for their welcome', async () => {
    await start({ handshakesInFlight: 3 });
    let commit = () => {};
    links.gate = new Promise((resolve) => {
      commit = resolve;
    });
    const dialled = Array.from({ length: 8 }, () => dial());
    let started = 0;
    for (const each of dialled) void each.then(() => started++);
    const joining = dialled.map(async (each) => (await each).join());
    await until(() => started >= 3);
    // Waits until all hellos were read and all permitted handshakes have begun.
    for (let i = 0; i < 3; i++) for (const agent of agents) await agent.settled();
    expect(started).toBe(3);
    commit();
    await Promise.all(joining);
    // Refused and disconnected agents free their slots.
    for (let i = 0; i < 4; i++) {
      const refused = await dial();
      refused.send({ type: 'bye', reason: '' });
      await refused.next('refused');
      (await dial()).end();
    }
    await (await dial()).join();
  });

  test('limits the handshakes from an address that sends no hello, and assigns its slots to other addresses', async () => {
    await start({ handshakesInFlight: 2, unfinishedOfNetwork: 3 });
    const slow = Array.from({ length: 6 }, () => dialAsAgent(port, undefined, '127.0.0.1', '127.0.0.2'));
    let started = 0;
    for (const each of slow) void each.then(() => started++);
    for (let second = 0; second < 4; second++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      clock.advance(1_250);
    }
    for (let i = 0; i < 20; i++) await (await dial()).join();
    expect(started).toBe(3);
    clock.advance(10_000);
    for (const each of slow) {
      const agent = await each.catch(() => null);
      await agent?.join().catch(() => {});
      agent?.end();
    }
    expect(started).toBe(6);
    const late = await dialAsAgent(port, undefined, '127.0.0.1', '127.0.0.2');
    await late.join();
    late.end();
  });

  test('begins no handshake above the limit while known agents wait to be recorded', async () => {
    await start({ handshakesInFlight: 2 });
    let commit = () => {};
    links.gate = new Promise((resolve) => {
      commit = resolve;
    });
    const first = [await dial(), await dial()];
    const joined = first.map((agent) => agent.join());
    for (const agent of first) await agent.settled();
    let started = false;
    const third = dial();
    void third.then(() => {
      started = true;
    });
    clock.advance(30_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(started).toBe(false);
    commit();
    await Promise.all(joined);
    await (await third).join();
  });

  test('admits a site’s agents while another address occupies slots without a hello', async () => {
    // Only slots expire, so the clock can advance without a limit.
    const never = 1_000_000_000;
    await start({
      ...{ handshakesInFlight: 4, handshakeSlotMs: 1_000 },
      ...{ handshakeTimeoutMs: never, waitingTimeoutMs: never, helloTimeoutMs: never },
    });
    const silent = Array.from({ length: 40 }, () => connectTcp({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }));
    let dropped = 0;
    for (const socket of silent) socket.once('close', () => dropped++);
    await Promise.all(silent.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
    let joined = 0;
    const site = Array.from({ length: 20 }, async () => {
      await (await dial()).join();
      joined++;
    });
    while (joined < site.length) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      // Lets the slots of silent sockets expire.
      clock.advance(250);
    }
    await Promise.all(site);
    expect(gateway.presence.count).toBe(20);
    expect(dropped).toBe(0);
    for (const socket of silent) socket.destroy();
  });

  test('queues thousands of agents from one address without dropping them', async () => {
    await start({ handshakesInFlight: 1 });
    const site = Array.from({ length: 2_500 }, () => connectTcp(port, '127.0.0.1'));
    let dropped = 0;
    for (const socket of site) {
      socket.on('error', () => {});
      socket.once('close', () => dropped++);
    }
    await Promise.all(site.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
    // Lets silent connections lose their slots.
    for (let second = 0; second < 8; second++) {
      await new Promise((resolve) => setImmediate(resolve));
      clock.advance(1_250);
    }
    expect([dropped, gateway.dropped]).toEqual([0, 0]);
    for (const socket of site) socket.destroy();
  });

  test('drops sockets above the maximum number of waiting sockets', async () => {
    await start({ handshakesInFlight: 1, waitingSockets: 2 });
    const sockets = Array.from({ length: 8 }, () => connectTcp(port, '127.0.0.1'));
    let dropped = 0;
    for (const socket of sockets) {
      socket.on('error', () => {});
      socket.once('close', () => dropped++);
    }
    await until(() => dropped >= 5);
    clock.advance(250);
    expect(logged.some((entry) => entry.message === 'dropped connections that could not be admitted in time')).toBe(
      true,
    );
    for (const socket of sockets) socket.destroy();
  });

  test('reserves waiting slots for other addresses when one silent address opens many connections', async () => {
    await start({ handshakesInFlight: 1, waitingSockets: 8, waitingSocketsPerAddress: 6 });
    const connected = async (count: number, localAddress: string) => {
      const sockets = Array.from({ length: count }, () => connectTcp({ port, host: '127.0.0.1', localAddress }));
      let closed = 0;
      for (const socket of sockets) {
        socket.on('error', () => {});
        socket.once('close', () => closed++);
        await new Promise((resolve) => socket.once('connect', resolve));
      }
      return { closed: () => closed, end: () => sockets.forEach((socket) => void socket.destroy()) };
    };
    // Of 12 connections, the first is in its handshake, and six wait.
    const silent = await connected(12, '127.0.0.2');
    await until(() => silent.closed() === 5);
    const others = await connected(2, '127.0.0.3');
    // The queue is full, so the address with the most connections loses two.
    const late = await connected(2, '127.0.0.4');
    await until(() => silent.closed() === 7);
    expect([others.closed(), late.closed()]).toEqual([0, 0]);
    // Each address has two waiting connections, so the third connection from the new address is dropped.
    const more = await connected(3, '127.0.0.5');
    await until(() => silent.closed() === 9 && more.closed() === 1);
    expect([others.closed(), late.closed()]).toEqual([0, 0]);
    for (const sockets of [silent, others, late, more]) sockets.end();
  });

  test('delays only the address that sends refused hellos', async () => {
    await start({ refusedHelloBurst: 3, refusedHellosPerSecond: 1 });
    for (let at = 0; at < 3; at++) {
      const hostile = await dialAsAgent(port, undefined, '127.0.0.1', '127.0.0.2');
      hostile.send({ type: 'hello' });
      expect((await hostile.next('refused')).code).toBe('protocol_violation');
      hostile.end();
    }
    const held = dialAsAgent(port, undefined, '127.0.0.1', '127.0.0.2');
    let started = false;
    void held.then(() => {
      started = true;
    });
    for (let at = 0; at < 5; at++) await (await dial()).join();
    expect(started).toBe(false);
    clock.advance(1_000);
    const late = await held;
    await late.join();
    late.end();
  });

  test('counts the addresses in one IPv6 network as one address', () => {
    for (const [ip, network] of [
      ['192.0.2.7', '192.0.2.7'],
      ['2001:db8:1:2:aaaa::1', '2001:db8:1:2'],
      ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
      ['2001:db8::1', '2001:db8:0:0'],
      ['fe80::1%eth0', 'fe80:0:0:0'],
      ['::1', '0:0:0:0'],
      ['', ''],
    ] as const)
      expect(networkOf(ip)).toBe(network);
  });

  test('disconnects an agent that does not read its messages', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    const { nodeId } = agent.key;
    const huge = { ...operation(), modules: ['m'.repeat(24 * 1024 * 1024)] };
    links.queue(nodeId, huge);
    agent.socket.pause();
    bus.publish({ type: 'work', node_id: nodeId });
    await until(() => links.calls.includes('nextOperation'));
    await new Promise((resolve) => setTimeout(resolve, 50));
    clock.advance(30_000);
    clock.advance(30_000);
    await until(() => !gateway.presence.isConnected(nodeId));
    expect(links.calls).toContain('closed: slow_reader');
  });
});

describe('a busy link', () => {
  test('keeps a busy link even if each check finds unsent data', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    const { nodeId } = agent.key;
    // Each check runs in the event-loop turn in which the gateway sends, so the data is still buffered.
    bus.subscribe(({ type }) => {
      if (type === 'cancel') clock.advance(30_000);
    });
    for (let looks = 0; looks < 4; looks++) {
      const { operation_id } = operation();
      bus.publish({ type: 'cancel', node_id: nodeId, operation_id });
      expect(await agent.next('cancel')).toMatchObject({ operation_id });
      await agent.settled();
    }
    expect(gateway.presence.isConnected(nodeId)).toBe(true);
  });
});

describe('a link that closes', () => {
  test('reports to the agent and the domain why a link was closed, even while the agent is sending', async () => {
    await start();
    const instance_id = 'ab'.repeat(16);
    const key = await newAgentKey();
    const first = await dial(key);
    await first.join({ instance_id });
    const sending = setInterval(() => first.send({ type: 'drift_hint', keys: ['path:/x'] }), 1);
    const second = await dial(key);
    await second.join({ instance_id });
    expect(await first.closed).toEqual({ code: 1011, reason: 'replaced by a newer link' });
    clearInterval(sending);
    second.ws.close(1008, 'not understood');
    const ends = () =>
      logged.filter(({ message, fields }) => message === 'agent disconnected' && fields.node_id === key.nodeId);
    await until(() => ends().length === 2);
    const reasons = ['replaced by a newer link', 'the agent closed with code 1008: not understood'];
    expect(ends().map(({ fields }) => fields.reason)).toEqual(reasons);
    expect(links.calls.filter((call) => call.startsWith('closed'))).toEqual(reasons.map((each) => `closed: ${each}`));
  });

  test('closes a link with "internal error" if handling a message fails', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    links.driftHinted = () => {
      throw new Error('a bug');
    };
    agent.send({ type: 'drift_hint', keys: ['path:/x'] });
    expect(await agent.closed).toEqual({ code: 1011, reason: 'internal error' });
    await until(() => links.calls.includes('closed: internal error'));
  });

  test('announces the reconnect delay, commits pending reports, and admits no agent while draining', async () => {
    await start();
    const agent = await dial();
    await agent.join();
    const { operation_id } = operation();
    links.owners.set(operation_id, agent.key.nodeId);
    let commit = () => {};
    links.gate = new Promise((resolve) => {
      commit = resolve;
    });
    agent.send({ type: 'report', seq: 1, reports: [accepted(operation_id)] });
    await agent.settled();
    const draining = gateway.drain();
    expect((await agent.next('drain')).retry_after_secs).toBeGreaterThanOrEqual(1);
    await expect(dialAsAgent(port)).rejects.toThrow(/ECONNREFUSED/);
    commit();
    expect(await agent.next('ack')).toEqual({ type: 'ack', seq: 1 });
    await draining;
    expect(await agent.closed).toEqual({ code: 1001, reason: 'drain' });
    await gateway.close();
    await gateway.close();
  });

  test('closes the links of some agents, each once and after its pending report, and admits no other agents', async () => {
    await start();
    const agents = [await dial(), await dial()];
    for (const agent of agents) await agent.join();
    const [first, second] = agents as [(typeof agents)[0], (typeof agents)[0]];
    const { operation_id } = operation();
    links.owners.set(operation_id, first.key.nodeId);
    let commit = () => {};
    links.gate = new Promise((resolve) => {
      commit = resolve;
    });
    first.send({ type: 'report', seq: 1, reports: [accepted(operation_id)] });
    await first.settled();
    gateway.stopAccepting();
    await expect(dialAsAgent(port)).rejects.toThrow(/ECONNREFUSED/);
    expect(gateway.local.release(1)).toBe(1);
    expect(await first.next('drain')).toEqual({ type: 'drain', retry_after_secs: 1 });
    expect(gateway.presence.isConnected(second.key.nodeId)).toBe(true);
    expect(gateway.local.release(5)).toBe(1);
    expect(gateway.local.release(5)).toBe(0);
    expect(await second.closed).toEqual({ code: 1001, reason: 'drain' });
    commit();
    expect(await first.next('ack')).toEqual({ type: 'ack', seq: 1 });
    expect(await first.closed).toEqual({ code: 1001, reason: 'drain' });
  });

  test('accepts agents again at the same port after it has stopped accepting them, and keeps those that stayed', async () => {
    await start();
    const stayed = await dial();
    await stayed.join();
    gateway.stopAccepting();
    await expect(dialAsAgent(port)).rejects.toThrow(/ECONNREFUSED/);
    expect(await gateway.listen('127.0.0.1', port)).toBe(port);
    await (await dial()).join();
    expect(gateway.presence.count).toBe(2);
    expect(gateway.presence.isConnected(stayed.key.nodeId)).toBe(true);
    gateway.stopAccepting();
    await expect(dialAsAgent(port)).rejects.toThrow(/ECONNREFUSED/);
  });

  test('refuses requests that do not upgrade to an agent link', async () => {
    await start();
    const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false });
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    const answer = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
    expect(answer.toString()).toContain('426');
    socket.destroy();
  });

  test('handles a socket that closes at any time', async () => {
    await start();
    const plain = connectTcp(port, '127.0.0.1');
    plain.write('GET / HTTP/1.1\r\n\r\n');
    await new Promise((resolve) => plain.once('close', resolve));
    const broken = createTcpServer();
    broken.close();
    const ws = new WebSocket(`wss://127.0.0.1:${port}/`, { rejectUnauthorized: false });
    ws.on('error', () => {});
    ws.terminate();
    const agent = await dial();
    agent.send(await agent.hello());
    agent.socket.destroy();
    await (await dial()).join();
  });
});
