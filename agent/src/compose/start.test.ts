import { createSocket } from 'node:dgram';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OperationMessage } from '@muster/protocol/wire';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Clock, systemClock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import { freeUdpPort, sendDatagram, TestAnnouncer } from '../../test/announce.ts';
import { TestOrchestrator } from '../../test/test-orchestrator.ts';
import { NoOrchestratorError, startAgent } from './start.ts';

let dataDir: string;
let orchestrator: TestOrchestrator;
let logged: { level: string; message: string }[];
const write = (level: string) => (_fields: object, message: string) => void logged.push({ level, message });
const log: Log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'muster-agent-'));
  orchestrator = await TestOrchestrator.start();
  logged = [];
});
afterEach(async () => {
  await orchestrator.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const start = ({ configPath = null, clock = systemClock }: { configPath?: string | null; clock?: Clock } = {}) =>
  startAgent(
    {
      dataDir,
      configPath,
      factsDir: null,
      hostname: 'web-1',
      logFormat: 'text',
      logLevel: 'info',
      connect: {
        host: '127.0.0.1',
        port: orchestrator.port,
        orchestratorKey: orchestrator.publicKey.toString('hex'),
        token: null,
      },
    },
    clock,
    log,
  );

const operation: OperationMessage = {
  type: 'operation',
  operation_id: '01HZZZZZZZZZZZZZZZZZZZ0001',
  kind: 'apply',
  modules: [],
  resources: [],
  keep_modules: [],
  snapshot_operation_id: null,
};

test('collects metrics samples, and stops and resumes when the configuration changes', async () => {
  // Seconds on a clock that runs twenty times as fast.
  const began = { at: systemClock.now(), monotonic: systemClock.monotonic() };
  const clock: Clock = {
    now: () => began.at + 20 * (systemClock.monotonic() - began.monotonic),
    monotonic: () => 20 * systemClock.monotonic(),
    after: (ms, wake) => systemClock.after(ms / 20, wake),
  };
  const configPath = join(dataDir, 'agent.yml');
  const configure = (enabled: boolean) =>
    writeFile(configPath, `metrics: { enabled: ${enabled}, collection_interval: 1 }`);
  const measured = () => logged.filter(({ message }) => message === 'collected a metrics sample').length;
  const changes = () => logged.filter(({ message }) => message === 'configuration changed').length;

  await configure(true);
  const agent = await start({ configPath, clock });
  await vi.waitFor(() => expect(measured()).toBeGreaterThan(1));
  await configure(false);
  await vi.waitFor(() => expect(changes()).toBe(1));
  const before = measured();
  await new Promise<void>((resolve) => void clock.after(10_000, resolve));
  expect(measured()).toBe(before);
  await configure(true);
  await vi.waitFor(() => expect(measured()).toBeGreaterThan(before + 1));
  await agent.stop('SIGTERM');
});

test('reports whether it offers terminals, and updates the report after its configuration changes', async () => {
  const configPath = join(dataDir, 'agent.yml');
  await writeFile(configPath, '');
  const agent = await start({ configPath });
  const { link, hello } = await orchestrator.welcomed();
  expect(hello.attributes.remote_terminal).toBe('false');
  await writeFile(configPath, 'remote_terminal: { enabled: true }');
  expect((await link.next('attributes')).attributes.remote_terminal).toBe('true');
  await agent.stop('SIGTERM');
});

test('stops cleanly when messages arrive late, and resumes accepted operations at the next start', async () => {
  const agent = await start();
  const { link } = await orchestrator.welcomed();
  link.send(operation);
  const report = await link.next('report');
  // From here on, messages from the orchestrator arrive late.
  const bye = link.next('bye').then(() => {
    link.send({ type: 'ack', seq: report.seq });
    link.send({ type: 'cancel', operation_id: operation.operation_id });
    link.send({ ...operation, operation_id: '01HZZZZZZZZZZZZZZZZZZZ0002' });
    link.send({ type: 'credit', seq: report.seq, part: 0 });
  });
  await agent.stop('SIGTERM');
  await bye;
  expect(logged.filter(({ level }) => level === 'error')).toEqual([]);

  const again = await start();
  const second = await orchestrator.welcomed();
  expect(second.hello.open_operations).toEqual([{ operation_id: operation.operation_id, state: 'finished' }]);
  expect((await second.link.next('report')).reports.at(-1)).toMatchObject({ type: 'finished', status: 'succeeded' });
  await again.stop('SIGTERM');
});

describe('an agent without a known orchestrator', () => {
  const configPath = () => join(dataDir, 'agent.yml');
  const readStored = async () => JSON.parse(await readFile(join(dataDir, 'orchestrator.json'), 'utf8'));

  async function startLost(discovery: { enabled?: boolean; port: number }) {
    await writeFile(configPath(), JSON.stringify({ discovery }));
    return startAgent(
      {
        dataDir,
        configPath: configPath(),
        factsDir: null,
        hostname: 'web-1',
        logFormat: 'text',
        logLevel: 'info',
        connect: null,
      },
      systemClock,
      log,
    );
  }
  async function isFree(port: number): Promise<boolean> {
    const socket = createSocket('udp4');
    const bound = await new Promise<boolean>((resolve) => {
      socket.once('error', () => resolve(false));
      socket.bind(port, () => resolve(true));
    });
    socket.close();
    return bound;
  }
  /** Sends until an agent reacts, because datagrams are not acknowledged. */
  async function announce(datagram: () => Buffer, port: number, until: Promise<unknown>): Promise<void> {
    let over = false;
    void until.then(() => {
      over = true;
    });
    while (!over) {
      await sendDatagram(datagram(), port);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  test('connects to an orchestrator that announces itself, without a second announcement', async () => {
    const port = await freeUdpPort();
    const announcer = new TestAnnouncer(orchestrator.privateKey);
    const agent = await startLost({ port });
    const welcomed = orchestrator.welcomed();
    await announce(() => announcer.datagram({ port: orchestrator.port }), port, welcomed);
    const { link, hello } = await welcomed;
    expect(hello).toMatchObject({ pin_source: 'discovery', token: null });
    await link.untilSettled();
    expect(logged).toContainEqual({
      level: 'warn',
      message: expect.stringContaining('trusting the one announced on the network'),
    });
    expect(await readStored()).toEqual({
      host: '127.0.0.1',
      port: orchestrator.port,
      orchestrator_key: announcer.hex,
      token: null,
      addresses: [],
    });
    // The agent already has an orchestrator, so it no longer listens, even after the link breaks.
    expect(await isFree(port)).toBe(true);
    link.ws.terminate();
    while (!logged.some(({ message }) => message === 'not connected')) await new Promise(setImmediate);
    expect(await isFree(port)).toBe(true);
    await agent.stop('SIGTERM');
    const again = await startLost({ port });
    expect((await orchestrator.welcomed()).hello.pin_source).toBe('pinned');
    await again.stop('SIGTERM');
  });

  test('keeps listening after an announcement from a server that does not have the announced key', async () => {
    const port = await freeUdpPort();
    const agent = await startLost({ port });
    const impostor = new TestAnnouncer();
    const dialled = orchestrator.nextLink();
    void dialled.catch(() => {});
    // The key that signed the announcement is not the server's key.
    await announce(
      () => impostor.datagram({ port: orchestrator.port }),
      port,
      new Promise<void>((resolve) => {
        const timer = setInterval(() => {
          if (!logged.some(({ message }) => message.includes("not this agent's orchestrator"))) return;
          clearInterval(timer);
          resolve();
        }, 20);
      }),
    );
    await expect(readStored()).rejects.toThrow('ENOENT');
    const announcer = new TestAnnouncer(orchestrator.privateKey);
    await announce(() => announcer.datagram({ port: orchestrator.port }), port, dialled);
    const link = await dialled;
    link.challenge(orchestrator.publicKey);
    await link.next('hello');
    link.welcome();
    await link.untilSettled();
    expect((await readStored()).orchestrator_key).toBe(announcer.hex);
    await agent.stop('SIGTERM');
  });

  test('fails to start without a known orchestrator if discovery is disabled', async () => {
    await expect(startLost({ enabled: false, port: 4747 })).rejects.toThrow(NoOrchestratorError);
  });

  test('follows its own orchestrator to an announced address if discovery is enabled', async () => {
    const port = await freeUdpPort();
    const elsewhere = await TestOrchestrator.start();
    const connect = {
      host: '127.0.0.1',
      port: 1,
      orchestratorKey: orchestrator.publicKey.toString('hex'),
      token: 'secret',
    };
    await writeFile(configPath(), JSON.stringify({ discovery: { enabled: true, port } }));
    const agent = await startAgent(
      {
        dataDir,
        configPath: configPath(),
        factsDir: null,
        hostname: 'web-1',
        logFormat: 'text',
        logLevel: 'info',
        connect,
      },
      systemClock,
      log,
    );
    const lured = elsewhere.nextLink().then(() => 'lured');
    const foreign = new TestAnnouncer(elsewhere.privateKey);
    for (let times = 0; times < 3; times++) await sendDatagram(foreign.datagram({ port: elsewhere.port }), port);
    const own = new TestAnnouncer(orchestrator.privateKey);
    const welcomed = orchestrator.welcomed();
    await announce(() => own.datagram({ port: orchestrator.port }), port, welcomed);
    expect((await welcomed).hello).toMatchObject({ pin_source: 'flag', token: 'secret' });
    await (await welcomed).link.untilSettled();
    expect(await readStored()).toMatchObject({ port: orchestrator.port });
    expect(await Promise.race([lured, new Promise((resolve) => setTimeout(() => resolve('stayed'), 200))])).toBe(
      'stayed',
    );
    await agent.stop('SIGTERM');
    await elsewhere.stop();
  });

  test('sends no token to an orchestrator that is known only from its announcement', async () => {
    const port = await freeUdpPort();
    await writeFile(configPath(), JSON.stringify({ discovery: { enabled: true, port } }));
    const agent = await startAgent(
      {
        dataDir,
        configPath: configPath(),
        factsDir: null,
        hostname: 'web-1',
        logFormat: 'text',
        logLevel: 'info',
        connect: { host: '127.0.0.1', port: 1, orchestratorKey: null, token: 'secret' },
      },
      systemClock,
      log,
    );
    const announcer = new TestAnnouncer(orchestrator.privateKey);
    const welcomed = orchestrator.welcomed();
    await announce(() => announcer.datagram({ port: orchestrator.port }), port, welcomed);
    expect((await welcomed).hello).toMatchObject({ pin_source: 'discovery', token: null });
    await agent.stop('SIGTERM');
  });
});
