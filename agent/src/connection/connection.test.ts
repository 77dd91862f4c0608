import { mkdir, mkdtemp, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type LookupFunction } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { measureNames, type Sample } from '@muster/protocol';
import type { OperationMessage, OutputProgress, Report, Welcome } from '@muster/protocol/wire';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { MemoryEngine } from '../../test/memory-engine.ts';
import { type ServedLink, TestOrchestrator } from '../../test/test-orchestrator.ts';
import { SampleBuffer } from '../metrics/sample-buffer.ts';
import type { Terminals } from '../terminal/terminals.ts';
import { Connection } from './connection.ts';
import { type AgentKeys, loadAgentIdentity } from './identity.ts';
import { makeNextKey } from './next-key.ts';
import { OrchestratorFile, type Target } from './pin.ts';

let dir: string;
let identity: AgentKeys;
let orchestrator: TestOrchestrator;
let engine: MemoryEngine;
let clock: ManualClock;
let logged: { level: string; message: string; fields: Record<string, unknown> }[];
let attributes: Record<string, string>;
let connections: Connection[];
let samples: SampleBuffer;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-connection-'));
  identity = await loadAgentIdentity(dir);
  orchestrator = await TestOrchestrator.start();
  engine = new MemoryEngine();
  clock = new ManualClock();
  logged = [];
  attributes = { platform: 'linux' };
  connections = [];
  samples = new SampleBuffer();
});
afterEach(async () => {
  for (const connection of connections) await connection.stop('the test ends');
  await orchestrator.stop();
  await rm(dir, { recursive: true, force: true });
});

function connect(
  target: Partial<Target> = {},
  terminals: Terminals | null = null,
  lookup?: LookupFunction,
): Connection {
  const write = (level: string) => (fields: object, message: string) =>
    void logged.push({ level, message, fields: fields as Record<string, unknown> });
  const connection = new Connection({
    identity,
    introduction: { agentVersion: '1', instanceId: '11'.repeat(16), hostname: 'web-1' },
    target: {
      host: '127.0.0.1',
      port: orchestrator.port,
      orchestrator_key: orchestrator.publicKey.toString('hex'),
      token: null,
      pinSource: 'flag',
      addresses: [],
      replacedKey: null,
      ...target,
    },
    file: new OrchestratorFile(dir),
    engine,
    terminals,
    samples,
    clock,
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    random: () => 0.5,
    attributes: () => attributes,
    ...(lookup && { lookup }),
  });
  connections.push(connection);
  connection.start();
  return connection;
}

const has = (message: string) => logged.some((entry) => entry.message.includes(message));
const entry = (message: string) => logged.find((line) => line.message.includes(message));

/** Waits until `condition` is true, one event-loop turn at a time. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

const sampleAt = (collected_at: number, measures: Partial<Sample>): Sample =>
  ({ collected_at, ...Object.fromEntries(measureNames.map((name) => [name, null])), ...measures }) as Sample;

const accepted = (n: number): Report => ({
  type: 'accepted',
  operation_id: `01HZZZZZZZZZZZZZZZZZZZ${String(n).padStart(4, '0')}`,
});
const operation: OperationMessage = {
  type: 'operation',
  operation_id: '01HZZZZZZZZZZZZZZZZZZZ0042',
  kind: 'apply',
  modules: [],
  resources: [],
  keep_modules: [],
  snapshot_operation_id: null,
};

const printed = (text: string): OutputProgress => ({
  type: 'output_progress',
  operation_id: operation.operation_id,
  resource: 'site/deploy',
  stdout: { from: 0, to: text.length, text },
  stderr: null,
});

describe('live output', () => {
  test('sends live output once a second, one message at a time, in parallel with reports', async () => {
    const connection = connect();
    const { link } = await orchestrator.welcomed();
    await until(() => has('connected'));
    engine.printed = [printed('one'), printed('two')];
    connection.outputReady();
    clock.advance(200);
    expect((await link.next('output_progress')).stdout?.text).toBe('one');
    // Half of the flow-control window stays available for results.
    engine.spool.add([accepted(1)]);
    connection.reportsReady();
    expect((await link.next('report')).seq).toBe(1);
    connection.outputReady();
    clock.advance(5_000);
    await link.untilSettled();
    expect(link.unread).toBe(0);
    link.send({ type: 'output_taken' });
    await link.untilSettled();
    clock.advance(199);
    await link.untilSettled();
    expect(link.unread).toBe(0);
    clock.advance(1);
    expect((await link.next('output_progress')).stdout?.text).toBe('two');
    link.send({ type: 'output_taken' });
    await link.untilSettled();
    engine.printed = [printed('three')];
    connection.outputReady();
    clock.advance(999);
    await link.untilSettled();
    expect(link.unread).toBe(0);
    clock.advance(1);
    expect((await link.next('output_progress')).stdout?.text).toBe('three');
  });

  test('sends no live output to an orchestrator that does not support it, and keeps it for the next link', async () => {
    const connection = connect();
    engine.printed = [printed('early')];
    const old = await orchestrator.nextLink();
    old.challenge(orchestrator.publicKey);
    await old.next('hello');
    old.welcome(0, [], 1);
    await until(() => has('connected'));
    connection.outputReady();
    clock.advance(10_000);
    await old.untilSettled();
    expect(old.unread).toBe(0);
    old.ws.terminate();
    await until(() => clock.next !== null && has('not connected'));
    clock.advance(60_000);
    const { link } = await orchestrator.welcomed();
    await link.untilSettled();
    clock.advance(200);
    expect((await link.next('output_progress')).stdout?.text).toBe('early');
  });

  test('delays live output while reports fill the window', async () => {
    const connection = connect();
    const { link } = await orchestrator.welcomed();
    await until(() => has('connected'));
    engine.spool.add([
      {
        type: 'output',
        operation_id: operation.operation_id,
        resource: 'site/deploy',
        stdout: 'x'.repeat(6_000),
        stderr: '',
        exit_code: 0,
        truncated: false,
      },
    ]);
    connection.reportsReady();
    expect((await link.next('report')).seq).toBe(1);
    engine.printed = [printed('late')];
    connection.outputReady();
    clock.advance(200);
    await link.untilSettled();
    expect(link.unread).toBe(0);
    link.send({ type: 'ack', seq: 1 });
    await link.untilSettled();
    clock.advance(1_000);
    expect((await link.next('output_progress')).stdout?.text).toBe('late');
  });
});

describe('samples', () => {
  const at = (collected_at: number) => sampleAt(collected_at, { uptime: 5 });
  const come = async (welcome: Partial<Welcome>) => {
    const link = await orchestrator.nextLink();
    link.challenge(orchestrator.publicKey);
    await link.next('hello');
    link.send({
      type: 'welcome',
      version: 2,
      status: 'approved',
      name: 'web',
      tags: {},
      acknowledged: 0,
      settled_operations: [],
      ...welcome,
    });
    await link.untilSettled();
    return link;
  };

  test('sends samples at the requested interval, drops stored ones, and resends the others after a lost response', async () => {
    connect();
    samples.push(at(10));
    samples.push(at(20));
    const first = await come({ metrics_interval: 60 });
    clock.advance(30_000);
    expect(await first.next('metrics')).toEqual({ type: 'metrics', samples: [at(10), at(20)] });
    first.ws.terminate();
    await until(() => has('not connected'));
    samples.push(at(30));
    clock.advance(375);
    const second = await come({ metrics_interval: 60 });
    clock.advance(30_000);
    expect((await second.next('metrics')).samples).toEqual([at(10), at(20), at(30)]);
    second.send({ type: 'metrics_stored', collected_at: 30 });
    await second.untilSettled();
    expect(samples.first).toBe(samples.end);
    clock.advance(59_000);
    samples.push(at(40));
    clock.advance(1_000);
    expect((await second.next('metrics')).samples).toEqual([at(40)]);
  });

  test('keeps refused samples and resends them', async () => {
    connect();
    samples.push(at(10));
    const link = await come({ version: 3, metrics_interval: 60 });
    clock.advance(30_000);
    await link.next('metrics');
    link.send({ type: 'metrics_refused', retry_after_secs: 20 });
    await link.untilSettled();
    clock.advance(30_000);
    expect((await link.next('metrics')).samples).toEqual([at(10)]);
  });

  test('keeps samples while the agent waits for approval, or if the orchestrator requests none', async () => {
    connect();
    samples.push(at(10));
    const pending = await come({ status: 'pending', name: null, metrics_interval: 60 });
    clock.advance(60_000);
    await pending.untilSettled();
    expect(pending.unread).toBe(0);
    pending.send({ type: 'status', status: 'approved', name: 'web', tags: {} });
    await pending.untilSettled();
    clock.advance(30_000);
    expect((await pending.next('metrics')).samples).toEqual([at(10)]);
    pending.ws.terminate();
    await until(() => has('not connected'));
    clock.advance(375);
    const old = await come({});
    // This reply does not belong to any message from the agent.
    old.send({ type: 'metrics_stored', collected_at: 10 });
    clock.advance(60_000);
    await old.untilSettled();
    expect(old.unread).toBe(0);
    expect(samples.end - samples.first).toBe(1);
  });
});

describe('connecting', () => {
  test('proves possession of its key, reports its open operations, and announces that the link is up', async () => {
    engine.open = [{ operation_id: operation.operation_id, state: 'running' }];
    connect({ token: 'enrol-me' });
    const link = await orchestrator.nextLink();
    link.challenge(orchestrator.publicKey);
    const hello = await link.next('hello');
    expect(hello).toMatchObject({
      hostname: 'web-1',
      pin_source: 'flag',
      token: 'enrol-me',
      attributes: { platform: 'linux' },
      open_operations: engine.open,
      versions: [7, 6, 5, 4, 3, 2, 1],
    });
    expect(link.proves(hello, orchestrator.publicKey)).toBe(true);
    expect(has('connected')).toBe(false);
    engine.spool.add([accepted(1)]);
    engine.spool.add([accepted(2)]);
    link.welcome(1, [operation.operation_id]);
    expect(await link.next('report')).toEqual({ type: 'report', seq: 2, reports: [accepted(2)] });
    expect(engine.received).toEqual([`settle ${operation.operation_id}`]);
    expect(engine.spool.entries.map(({ seq }) => seq)).toEqual([2]);
    expect(entry('connected')?.fields).toMatchObject({ event: 'connected', node_id: identity.nodeId });
    // The token has been used, so the file no longer contains it.
    expect(JSON.parse(await readFile(join(dir, 'orchestrator.json'), 'utf8'))).toMatchObject({ token: null });
  });

  test('sends nothing to an orchestrator with a different key, and warns once about an impostor', async () => {
    const pinned = 'ab'.repeat(32);
    connect({ orchestrator_key: pinned });
    await until(() => has('not connected'));
    const shown = orchestrator.publicKey.toString('hex');
    const line = entry("not this agent's orchestrator");
    expect(line?.level).toBe('warn');
    expect(line?.fields).toMatchObject({ shown, pinned });
    expect(line?.message).toContain('impostor');
    expect(line?.message).toContain('muster status');
    // The log line must not suggest a command that would trust the peer without a check.
    expect(line?.message).not.toContain(shown);
    const tries = () => logged.filter(({ message }) => message === 'not connected').length;
    clock.advance(120_000);
    await until(() => tries() > 1);
    expect(logged.filter(({ message }) => message.includes('impostor'))).toHaveLength(1);
    let opened = false;
    void orchestrator.nextLink().then(() => {
      opened = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(opened).toBe(false);
  });

  test('reports that the port may be wrong if the peer does not speak TLS', async () => {
    const web = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')).listen(0, '127.0.0.1');
    await new Promise((resolve) => web.once('listening', resolve));
    connect({ port: (web.address() as AddressInfo).port });
    await until(() => has('not connected'));
    expect(entry('not connected')?.fields.reason).toContain('is this the API port?');
    web.close();
  });

  test('refuses a key that is not an Ed25519 key', async () => {
    const other = await TestOrchestrator.start('ec');
    connect({ port: other.port, orchestrator_key: null, pinSource: 'first_use' });
    await until(() => has('not connected'));
    expect(has('connected') && entry('connected')?.fields.event).toBeFalsy();
    expect(entry('not connected')?.fields.reason).toContain('is this the API port?');
    await other.stop();
  });

  test('refuses a peer without TLS 1.3', async () => {
    const sshServer = createServer((socket) => socket.end('SSH-2.0-OpenSSH_9.9\r\n'));
    await new Promise<void>((resolve) => sshServer.listen(0, '127.0.0.1', resolve));
    connect({ port: (sshServer.address() as { port: number }).port });
    await until(() => has('not connected'));
    sshServer.close();
  });

  test('trusts the first key with a warning if no key is known, and pins it', async () => {
    connect({ orchestrator_key: null, pinSource: 'first_use' });
    const { link, hello } = await orchestrator.welcomed();
    expect(hello.pin_source).toBe('first_use');
    const shown = orchestrator.publicKey.toString('hex');
    expect(entry('trusting the first one seen')).toMatchObject({ level: 'warn', fields: { orchestrator_key: shown } });
    await link.untilSettled();
    expect(new OrchestratorFile(dir).read()?.orchestrator_key).toBe(shown);
    link.ws.close();
    await until(() => has('not connected'));
    clock.advance(500);
    expect((await orchestrator.welcomed()).hello.pin_source).toBe('pinned');
  });

  test('disconnects if the key in the challenge differs from the key that TLS proved', async () => {
    connect();
    const link = await orchestrator.nextLink();
    link.challenge(Buffer.alloc(32, 1));
    await link.closed;
    await until(() => has('not connected'));
    expect(entry('not connected')?.fields.reason).toBe(
      'the challenge names a different key than the one proved by TLS',
    );
    expect(link.unread).toBe(0);
  });

  test('disconnects if no challenge arrives for a minute', async () => {
    connect();
    const link = await orchestrator.nextLink();
    await link.untilSettled();
    clock.advance(59_000);
    await link.untilSettled();
    clock.advance(61_000);
    await link.closed;
    await until(() => has('not connected'));
    expect(entry('not connected')?.fields.reason).toContain('silent');
  });

  test('truncates attributes to the frame limits', async () => {
    attributes = Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`k${i}`, 'v'.repeat(2_000)]));
    engine.open = Array.from({ length: 64 }, () => ({ operation_id: operation.operation_id, state: 'finished' }));
    connect();
    const link = await orchestrator.nextLink();
    link.challenge(orchestrator.publicKey);
    const hello = await link.next('hello');
    expect(Object.keys(hello.attributes).length).toBeGreaterThan(10);
    expect(JSON.stringify(hello).length).toBeLessThan(32 * 1024);
    expect(Object.values(hello.attributes)[0]).toHaveLength(1024);
    expect(JSON.stringify(hello.attributes).length).toBeGreaterThan(23 * 1024);
    // Uses the longest hostname, in which every character must be escaped.
    expect(JSON.stringify({ ...hello, hostname: '\u0001'.repeat(255), token: 't'.repeat(128) }).length).toBeLessThan(
      32 * 1024,
    );
  });
});

describe('an open link', () => {
  test('passes operations and cancellations to the engine in order, and sends changed attributes', async () => {
    const connection = connect();
    const { link } = await orchestrator.welcomed();
    let journaled = () => {};
    engine.gate = new Promise((resolve) => {
      journaled = resolve;
    });
    link.send(operation);
    link.send({ type: 'cancel', operation_id: operation.operation_id });
    await link.untilSettled();
    journaled();
    await until(() => engine.received.length === 3);
    expect(engine.received.slice(1)).toEqual([`accept ${operation.operation_id}`, `cancel ${operation.operation_id}`]);
    attributes = { platform: 'linux', kernel: '6' };
    connection.attributesChanged();
    expect(await link.next('attributes')).toEqual({ type: 'attributes', attributes, clock_ms: clock.now() });
  });

  test('sends new reports immediately, drops acknowledged ones, and resends a large report that was interrupted by a lost link', async () => {
    const connection = connect();
    const first = await orchestrator.welcomed();
    engine.spool.add([accepted(1)]);
    connection.reportsReady();
    expect(await first.link.next('report')).toMatchObject({ seq: 1 });
    first.link.send({ type: 'ack', seq: 1 });
    const large: Report[] = [
      {
        type: 'output',
        operation_id: operation.operation_id,
        resource: 'm/r',
        stdout: 'é"'.repeat(40_000),
        stderr: '',
        exit_code: 0,
        truncated: false,
      },
    ];
    engine.spool.add(large);
    connection.reportsReady();
    const part = await first.link.next('report_part');
    expect(part).toMatchObject({ seq: 2, part: 0 });
    first.link.send({ type: 'credit', seq: 2, part: 0 });
    first.link.socket.destroy();
    await until(() => has('not connected'));
    expect(engine.spool.entries.map(({ seq }) => seq)).toEqual([2]);
    clock.advance(500);

    const { link } = await orchestrator.welcomed(1);
    const texts: string[] = [];
    let unacknowledged = 0;
    for (;;) {
      const { message, bytes } = await link.any();
      if (message.type !== 'report_part') throw new Error(message.type);
      texts.push(message.text);
      unacknowledged += bytes;
      expect(unacknowledged).toBeLessThanOrEqual(8_192);
      if (message.part === message.parts - 1) break;
      link.send({ type: 'credit', seq: 2, part: message.part });
      unacknowledged -= bytes;
    }
    expect(JSON.parse(texts.join(''))).toEqual(large);
    link.send({ type: 'ack', seq: 2 });
    await until(() => engine.spool.entries.length === 0);
  });

  test('closes the link if the orchestrator is silent, but not if it sends pings', async () => {
    connect();
    const { link } = await orchestrator.welcomed();
    for (let i = 0; i < 5; i++) {
      clock.advance(30_000);
      await link.untilSettled();
    }
    expect(has('not connected')).toBe(false);
    clock.advance(130_000);
    await link.closed;
    await until(() => has('not connected'));
    expect(entry('not connected')?.fields.reason).toContain('the orchestrator has been silent for');
  });

  test('closes the link after a message that the agent cannot interpret', async () => {
    connect();
    const { link } = await orchestrator.welcomed();
    link.ws.send('{"type":"dance"}');
    expect(await link.closed).toBe(1008);
    expect(has('received a message from the orchestrator that this agent does not understand')).toBe(true);
  });
});

describe('reconnecting', () => {
  const retryIn = () => entry('not connected')?.fields.retry_in_ms;

  async function endWith(act: (link: ServedLink) => void): Promise<void> {
    connect();
    const { link } = await orchestrator.welcomed();
    act(link);
    await link.closed;
    await until(() => has('not connected'));
  }

  test('waits as long as a refusal requests', async () => {
    await endWith((link) =>
      link.send({ type: 'refused', code: 'rejected', message: 'rejected', retry_after_secs: 600 }),
    );
    expect(retryIn()).toBe(630_000);
    expect(entry('the orchestrator refused this agent')).toMatchObject({
      level: 'error',
      fields: { code: 'rejected' },
    });
  });

  test('logs how to resolve an invalid token', async () => {
    await endWith((link) =>
      link.send({ type: 'refused', code: 'token_invalid', message: 'used up', retry_after_secs: 60 }),
    );
    expect(entry('the orchestrator refused this agent')?.message).toContain(
      'create a new token with `muster agents enroll`',
    );
  });

  test('waits a minute after a refusal that only an operator can resolve', async () => {
    await endWith((link) => link.send({ type: 'refused', code: 'cloned', message: 'cloned', retry_after_secs: null }));
    expect(retryIn()).toBe(63_000);
  });

  test('logs a report that is refused repeatedly, and retries every minute', async () => {
    connect();
    engine.spool.add([accepted(1), accepted(1)]);
    const refuse = async (seq: number) => {
      const { link } = await orchestrator.welcomed(seq - 1);
      expect(await link.next('report')).toMatchObject({ seq });
      link.send({ type: 'refused', code: 'protocol_violation', message: 'unfit', retry_after_secs: null });
      await link.closed;
      const ends = () => logged.filter(({ message }) => message === 'not connected');
      const before = refusals++;
      await until(() => ends().length > before);
      const wait = ends().at(-1)!.fields.retry_in_ms as number;
      clock.advance(wait);
      return wait;
    };
    let refusals = 0;
    const named = () => logged.filter(({ message }) => message.includes('keeps closing the link after this report'));
    expect([await refuse(1), await refuse(1)]).toEqual([375, 750]);
    expect(named()).toEqual([]);
    expect(await refuse(1)).toBe(63_000);
    expect(named()).toMatchObject([
      {
        level: 'error',
        fields: {
          seq: 1,
          operation_ids: ['01HZZZZZZZZZZZZZZZZZZZ0001'],
          reports: ['accepted'],
          refusals: 3,
          reason: 'refused: unfit',
        },
      },
    ]);
    expect(await refuse(1)).toBe(63_000);
    expect(named()).toHaveLength(1);
    // A different report starts a new count.
    engine.spool.acknowledge(1);
    engine.spool.add([accepted(2)]);
    expect(await refuse(2)).toBeLessThan(60_000);
    expect(named()).toHaveLength(1);
  });

  test('keeps the link during a drain, and then waits as long as the drain requests', async () => {
    await endWith((link) => {
      link.send({ type: 'drain', retry_after_secs: 4 });
      link.ws.close(1001);
    });
    expect(retryIn()).toBe(4_200);
    expect(entry('not connected')?.fields.reason).toBe('the orchestrator is stopping');
  });

  test('doubles the delay while no orchestrator responds', async () => {
    const { port } = orchestrator;
    await orchestrator.stop();
    connect({ port });
    const waits: unknown[] = [];
    for (let i = 1; i <= 4; i++) {
      await until(() => logged.filter((line) => line.message === 'not connected').length === i);
      waits.push(logged.at(-1)?.fields.retry_in_ms);
      clock.advance(60_000);
    }
    expect(waits).toEqual([375, 750, 1500, 3000]);
    orchestrator = await TestOrchestrator.start();
  });

  test('retries every few seconds for five minutes after startup, then every minute', async () => {
    const { port } = orchestrator;
    await orchestrator.stop();
    connect({ port });
    const began = clock.monotonic();
    const waits: { at: number; ms: number }[] = [];
    for (let i = 1; waits.length < 100; i++) {
      await until(() => logged.filter((line) => line.message === 'not connected').length === i);
      const ms = logged.at(-1)?.fields.retry_in_ms as number;
      waits.push({ at: clock.monotonic() - began, ms });
      clock.advance(ms);
    }
    for (const { at, ms } of waits)
      if (at < 300_000) expect(ms).toBeLessThanOrEqual(5_000);
      else if (at > 400_000) expect(ms).toBeGreaterThanOrEqual(30_000);
    orchestrator = await TestOrchestrator.start();
  });

  test('aborts an attempt after 8 s if the host drops packets, and retries', async () => {
    connect();
    // Handles no network events, as if the host were not responding.
    for (let i = 0; i < 100 && clock.next !== 8_000; i++)
      await new Promise<void>((resolve) => process.nextTick(resolve));
    clock.advance(8_000);
    await until(() => has('not connected'));
    expect(entry('not connected')?.fields).toEqual({
      reason: `no answer from 127.0.0.1 port ${orchestrator.port} within 8 s`,
      retry_in_ms: 375,
    });
    clock.advance(375);
    await orchestrator.welcomed();
  });

  test('tries the addresses of a hostname in turn until it reaches the orchestrator', async () => {
    const { port } = orchestrator;
    const impostor = await TestOrchestrator.start('ed25519', port, '127.0.0.2');
    const names: string[] = [];
    connect({ host: 'muster.example' }, null, (name, _options, done) => {
      names.push(name);
      done(null, [
        { address: '127.0.0.2', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ]);
    });
    await until(() => has('not connected'));
    expect(entry('not connected')?.fields.reason).toContain('is pinned');
    clock.advance(375);
    const { link } = await orchestrator.welcomed();
    await until(() => has('connected'));
    // The agent keeps using the address that worked.
    link.ws.terminate();
    await until(() => logged.filter(({ message }) => message === 'not connected').length === 2);
    clock.advance(5_000);
    await orchestrator.welcomed();
    expect(names).toEqual(Array(3).fill('muster.example'));
    await impostor.stop();
  });

  test('learns addresses from the welcome, and dials the next one at once if one does not answer', async () => {
    const replica = await TestOrchestrator.start('ed25519', orchestrator.port, '127.0.0.2');
    const named = `127.0.0.2:${orchestrator.port}`;
    const pin = replica.publicKey.toString('hex');
    // Port 9 of the loopback address refuses connections.
    connect({ orchestrator_key: null, addresses: ['127.0.0.1:9'] });
    const link = await orchestrator.nextLink();
    link.challenge(orchestrator.publicKey);
    await link.next('hello');
    link.welcome(0, [], 7, { addresses: [named] });
    await until(() => has('connected'));
    expect(entry('trying the next address')?.fields).toMatchObject({ host: '127.0.0.1', port: 9 });
    expect(new OrchestratorFile(dir).read()).toMatchObject({ host: '127.0.0.1', addresses: [named] });
    // The key at the next address differs, so the agent returns to the first.
    link.ws.terminate();
    await until(() => has('not connected'));
    clock.advance(5_000);
    const { link: second } = await orchestrator.welcomed(0, 7);
    await until(() => logged.filter(({ message }) => message === 'connected').length === 2);
    expect(entry('may be an impostor')?.fields).toMatchObject({ host: '127.0.0.2', shown: pin });
    // The second welcome names no address.
    expect(new OrchestratorFile(dir).read()).toMatchObject({ addresses: [] });
    await second.untilSettled();
    await replica.stop();
  });

  test('considers the orchestrator reachable while one of its addresses accepts connections', async () => {
    const reachable = (addresses: string[]) => connect({ port: 9, addresses }).orchestratorLink()?.canConnect();
    expect(await reachable([`127.0.0.1:${orchestrator.port}`])).toBe(true);
    expect(await reachable(['127.0.0.1:10'])).toBe(false);
  });

  test('sends a bye and does not reconnect when it is stopped', async () => {
    const connection = connect();
    const { link } = await orchestrator.welcomed();
    await link.untilSettled();
    const stopped = connection.stop('SIGTERM');
    expect(await link.next('bye')).toEqual({ type: 'bye', reason: 'SIGTERM' });
    await stopped;
    expect(clock.next).toBe(null);
  });
});

describe('a new key', () => {
  const seconds = 1_700_000_000;
  const hex = ({ publicKey }: { publicKey: Buffer }) => publicKey.toString('hex');
  /** Accepts the next link and reads its hello. */
  const greeted = async (versions: number[]) => {
    const link = await orchestrator.nextLink();
    link.challenge(orchestrator.publicKey, versions);
    return { link, hello: await link.next('hello') };
  };

  test('reconnects to present a new key, signed by the old key, and switches to it after the welcome', async () => {
    const connection = connect();
    const first = await greeted([4]);
    first.link.welcome(0, [], 4, { node_id: identity.nodeId });
    expect(first.hello.key_statement).toBeUndefined();
    await until(() => has('connected'));
    const former = identity.current;
    const { key, statement } = makeNextKey(dir, former, 60, seconds);
    connection.keysChanged();
    expect(await first.link.next('bye')).toEqual({ type: 'bye', reason: 'to present a new key', returns: true });
    // The test clock does not advance, so this link arrives only if the agent reconnects without a delay.
    const second = await greeted([4]);
    expect(second.hello).toMatchObject({ public_key: hex(key), key_statement: statement });
    expect(second.link.proves(second.hello, orchestrator.publicKey)).toBe(true);
    expect(hex((await loadAgentIdentity(dir)).current)).toBe(hex(former));
    second.link.welcome(0, [], 4, { node_id: identity.nodeId });
    await until(() => has('agent key changed'));
    expect(hex((await loadAgentIdentity(dir)).current)).toBe(hex(key));
    connection.keysChanged();
    await second.link.untilSettled();
    expect(second.link.unread).toBe(0);
  });

  test('presents a new key again if the link breaks before the welcome, and drops a refused key', async () => {
    connect();
    const former = identity.current;
    const { key } = makeNextKey(dir, former, 60, seconds);
    const first = await greeted([4]);
    first.link.ws.terminate();
    await until(() => has('not connected'));
    clock.advance(1_000);
    const second = await greeted([4]);
    expect(second.hello.public_key).toBe(hex(key));
    second.link.send({ type: 'refused', code: 'key_refused', message: 'not that one', retry_after_secs: null });
    await until(() => has('refused the new key'));
    await until(() => logged.filter(({ message }) => message === 'not connected').length === 2);
    clock.advance(2_000);
    const third = await greeted([4]);
    expect(third.hello).toMatchObject({ public_key: hex(former) });
    expect(third.hello.key_statement).toBeUndefined();
  });

  test('keeps presenting its key if the orchestrator has a record of the agent but refuses the key', async () => {
    const statement = makeNextKey(dir, identity.current, 60, seconds).statement;
    identity.welcomed(identity.toShow([5, 4], hex(orchestrator)), undefined);
    connect();
    const refuse = async (code: 'key_refused' | 'key_unknown', versions: number[]) => {
      const { link, hello } = await greeted(versions);
      const before = logged.length;
      link.send({ type: 'refused', code, message: 'no', retry_after_secs: null });
      await until(() => logged.slice(before).some(({ message }) => message === 'not connected'));
      return { hello, wait: logged.at(-1)?.fields.retry_in_ms as number };
    };
    for (let times = 0; times < 3; times++) {
      const { hello, wait } = await refuse('key_refused', [5, 4]);
      expect(hello).toMatchObject({ public_key: hex(identity.current), key_statement: statement });
      expect(wait).toBeGreaterThanOrEqual(60_000);
      expect(has('the agent keeps its identity')).toBe(true);
      clock.advance(70_000);
    }
    // Without a record of the agent, the orchestrator enrolls it as a new agent.
    expect((await refuse('key_unknown', [5, 4])).hello).toMatchObject({ key_statement: statement });
    clock.advance(70_000);
    const { hello } = await greeted([5, 4]);
    expect(hello).toMatchObject({ public_key: hex(identity.current) });
    expect(hello.key_statement).toBeUndefined();
  });

  test('omits the key statement after an older orchestrator rejected it', async () => {
    makeNextKey(dir, identity.current, 60, seconds);
    identity.welcomed(identity.toShow([5, 4], hex(orchestrator)), undefined);
    connect();
    const first = await greeted([4, 3]);
    expect(first.hello).toHaveProperty('key_statement');
    first.link.send({ type: 'refused', code: 'key_refused', message: 'no', retry_after_secs: null });
    await until(() => has('not connected'));
    clock.advance(70_000);
    expect((await greeted([4, 3])).hello.key_statement).toBeUndefined();
  });

  test('does not present a new key to an orchestrator that does not support key changes, and keeps the link', async () => {
    const connection = connect();
    const { link, hello } = await greeted([3, 2]);
    link.welcome(0, [], 3);
    expect(hello.public_key).toBe(hex(identity.current));
    await until(() => has('connected'));
    makeNextKey(dir, identity.current, 60, seconds);
    connection.keysChanged();
    expect(has('the orchestrator does not support key changes')).toBe(true);
    await link.untilSettled();
    expect(link.unread).toBe(0);
    link.ws.terminate();
    await until(() => has('not connected'));
    clock.advance(1_000);
    expect((await greeted([3, 2])).hello).toMatchObject({ public_key: hex(identity.current) });
  });

  test('delays a key change while terminals are open', async () => {
    const terminals = { open: 1, attach: () => ({ end: () => {} }) };
    const connection = connect({}, terminals as unknown as Terminals);
    const { link } = await greeted([4]);
    link.welcome(0, [], 4);
    await until(() => has('connected'));
    const { key } = makeNextKey(dir, identity.current, 60, seconds);
    connection.keysChanged();
    expect(has('key change delayed until all terminals are closed')).toBe(true);
    await link.untilSettled();
    expect(link.unread).toBe(0);
    terminals.open = 0;
    connection.keysChanged();
    expect((await greeted([4])).hello.public_key).toBe(hex(key));
  });

  test('presents a key that was created during the handshake right after the welcome', async () => {
    const connection = connect();
    const first = await greeted([4]);
    const { key } = makeNextKey(dir, identity.current, 60, seconds);
    connection.keysChanged();
    first.link.welcome(0, [], 4, { node_id: identity.nodeId });
    expect((await first.link.next('bye')).reason).toBe('to present a new key');
    const second = await greeted([4]);
    expect(second.hello.public_key).toBe(hex(key));
    second.link.welcome(0, [], 4, { node_id: identity.nodeId });
    await until(() => has('agent key changed'));
  });

  test('keeps the link if saving the new key fails, and presents the key again on the next link', async () => {
    const connection = connect();
    const { key } = makeNextKey(dir, identity.current, 60, seconds);
    await mkdir(join(dir, 'agent-keys.json'));
    const first = await greeted([4]);
    expect(first.hello.public_key).toBe(hex(key));
    first.link.welcome(0, [], 4, { node_id: identity.nodeId });
    await until(() => has('failed to save the new key'));
    await first.link.untilSettled();
    expect(first.link.unread).toBe(0);
    await rmdir(join(dir, 'agent-keys.json'));
    connection.keysChanged();
    const second = await greeted([4]);
    expect(second.hello.public_key).toBe(hex(key));
    second.link.welcome(0, [], 4, { node_id: identity.nodeId });
    await until(() => has('agent key changed'));
  });

  test('connects with the current key if a new key cannot be read', async () => {
    connect();
    await writeFile(join(dir, 'agent.key.next'), 'torn', { mode: 0o600 });
    expect((await greeted([4])).hello.public_key).toBe(hex(identity.current));
    expect(has('failed to read the new key')).toBe(true);
  });
});
