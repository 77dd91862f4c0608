import { chmodSync, cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect as connectTcp, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import {
  applyAgent,
  checkDrift,
  getAgent,
  getOperation,
  listNotifications,
  type Operation,
  uploadModule,
} from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { ended, eventually } from './eventually.ts';
import { type Orchestrator, test } from './harness.ts';
import { runsOf, siteModule } from './site.ts';
import { connected } from './trial.ts';

/** Tests agents that are offline, disconnected, or copied, or whose clock is off by an hour. */

/** A TCP proxy between the agent and the orchestrator that can cut and restore the link. */
class Cable {
  port = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  constructor(target: number) {
    this.#server = createServer((agent) => {
      if (this.#isCut) return agent.resetAndDestroy();
      const orchestrator = connectTcp(target, '127.0.0.1');
      for (const [one, other] of [
        [agent, orchestrator],
        [orchestrator, agent],
      ] as const) {
        this.#sockets.add(one);
        one.on('error', () => {});
        one.on('close', () => {
          this.#sockets.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
      return undefined;
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.port = (this.#server.address() as { port: number }).port;
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  reconnect(): void {
    this.#isCut = false;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}

const away = ({ call }: Orchestrator, node_id: string) =>
  eventually('the orchestrator shows the agent as disconnected', async () =>
    (await call(getAgent, { params: { node_id } })).connected ? null : true,
  );

async function fileModule({ call }: Orchestrator, name: string, path: string, content: string): Promise<void> {
  const resources = [{ id: name, resource: { 'file-unix': { path, content } } }];
  const text = JSON.stringify({ name, supports: [{ platform: 'linux' }], resources });
  await call(uploadModule, { body: { name, content: text } });
}

const faketime = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu']
  .map((directory) => `${directory}/faketime/libfaketime.so.1`)
  .find(existsSync);

/** Returns an environment that shifts a program's wall clock by the offset in the file. Timers are not affected. */
function clockFrom(file: string, offset: string): NodeJS.ProcessEnv {
  writeFileSync(file, offset);
  return {
    LD_PRELOAD: faketime,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_CACHE_DURATION: '1',
    DONT_FAKE_MONOTONIC: '1',
    NO_FAKE_STAT: '1',
  };
}

describe('an agent that is offline, disconnected, or copied', () => {
  test('an agent executes unexpired operations that were queued while it was offline, in order, even after an orchestrator restart', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const { call } = orchestrator;
    const agent = await stage.agent(orchestrator, 'web-1');
    await agent.stop();
    await away(orchestrator, agent.nodeId);
    const params = { node_id: agent.nodeId };
    const path = (name: string) => join(stage.dir, name);
    for (const name of ['one', 'two', 'late']) await fileModule(orchestrator, name, path(name), `${name}\n`);
    const queue = async (modules: string[], ttl: number) =>
      (await call(applyAgent, { params, body: { modules, ttl }, respondAsync: true })).operation_id;
    await expect(call(applyAgent, { params, body: { modules: ['one'] } })).rejects.toMatchObject({
      problem: { status: 504, code: 'agent_not_connected' },
    });
    const first = await queue(['one'], 3_600);
    const late = await queue(['one', 'late'], 2);
    // This operation's desired state replaces that of the first operation.
    const second = await queue(['two'], 3_600);
    await orchestrator.kill9();
    await orchestrator.start();
    const expired = await ended(call, late);
    expect(expired).toMatchObject({ status: 'expired', started_at: null, error: 'the agent did not connect in time' });
    expect((expired.finished_at as number) - expired.created_at).toBeGreaterThanOrEqual(2);
    for (const id of [first, second])
      expect(await call(getOperation, { params: { operation_id: id } })).toMatchObject({ status: 'queued' });
    await agent.start();
    const [one, two] = [await ended(call, first), await ended(call, second)] as [Operation, Operation];
    expect([one.status, two.status]).toEqual(['succeeded', 'succeeded']);
    expect(one.started_at as number).toBeLessThanOrEqual(two.started_at as number);
    expect(two.resources.map(({ module, action }) => [module, action])).toEqual([
      ['two', 'create'],
      ['one', 'remove'],
    ]);
    expect(['one', 'two', 'late'].map((name) => existsSync(path(name)))).toEqual([false, true, false]);
  });

  test('a killed agent resumes its operation without a link, and reports the results once when it reconnects', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const { call } = orchestrator;
    const cable = new Cable(orchestrator.agentPort);
    await cable.listen();
    try {
      const agent = stage.agentAt('web-1', [
        `127.0.0.1:${cable.port}`,
        ...['--orchestrator-key', orchestrator.publicKey, '--token', await orchestrator.token('web-1')],
      ]);
      await agent.start();
      const params = { node_id: agent.nodeId };
      const root = join(stage.dir, 'site');
      await call(uploadModule, { body: { name: 'site', content: siteModule({ name: 'site', root, script: 'held' }) } });
      const { operation_id } = await call(applyAgent, { params, body: { modules: ['site'] }, respondAsync: true });
      await eventually('the script is running', async () => (existsSync(`${root}/started`) ? true : null));
      cable.cut();
      await agent.kill9();
      agent.launch();
      writeFileSync(`${root}/go`, '');
      await eventually('the agent has written the last page without a link', async () =>
        existsSync(join(root, 'pages', 'page-19.html')) ? true : null,
      );
      await away(orchestrator, agent.nodeId);
      // On a loaded machine, the link was cut before the report of the start was stored.
      expect(['queued', 'running']).toContain((await call(getOperation, { params: { operation_id } })).status);
      cable.reconnect();
      const operation = await ended(call, operation_id);
      expect(operation).toMatchObject({ status: 'succeeded', summary: { total: 26, changed: 26, failed: 0 } });
      const reported = operation.resources.map(({ type, identity }) => `${type} ${identity}`);
      expect(new Set(reported).size).toBe(26);
      expect(runsOf(root)).toBe(1);
    } finally {
      cable.close();
    }
  });

  test('the orchestrator refuses a copy of a connected agent, keeps the original connected, and notifies operators', async ({
    stage,
  }) => {
    const orchestrator = await stage.orchestrator();
    const { call } = orchestrator;
    const agent = await stage.agent(orchestrator, 'web-1');
    const copy = join(stage.dir, 'copy');
    cpSync(agent.dataDir, copy, { recursive: true, filter: (path) => !path.includes('agent-lock.') });
    chmodSync(copy, 0o700);
    const root = join(stage.dir, 'site');
    await call(uploadModule, { body: { name: 'site', content: siteModule({ name: 'site', root, script: 'slow' }) } });
    const params = { node_id: agent.nodeId };
    const { operation_id } = await call(applyAgent, { params, body: { modules: ['site'] }, respondAsync: true });
    const clone = stage.run('clone', ['agent', '--data-dir', copy, '--log-format', 'json']);
    await eventually('the clone is refused', async () =>
      clone.lastLines(20).some((line) => line.includes('"code":"cloned"')) ? true : null,
    );
    expect((await ended(call, operation_id)).status).toBe('succeeded');
    expect(runsOf(root)).toBe(1);
    const again = await call(applyAgent, { params, body: { modules: ['site'] } });
    expect(again.summary).toMatchObject({ total: 26, unchanged: 26 });
    // The first agent logged only one connection, because it never reconnected.
    expect(agent.program.lastLines(200).filter((line) => line.includes('"event":"connected"'))).toHaveLength(1);
    await eventually('operators are notified of the clone', async () => {
      const { notifications } = await call(listNotifications, { query: {} });
      return notifications.find(({ event_type }) => event_type === 'agent.cloned') ?? null;
    });
  });
});

describe('a clock that is off by an hour', () => {
  const hour = 3_600;
  const near = (at: number | null | undefined, from: number) => {
    expect(at).toBeGreaterThanOrEqual(from - 1);
    expect(at).toBeLessThanOrEqual(Date.now() / 1000 + 1);
  };

  test('the orchestrator reports an agent clock that is off by an hour, which affects neither recorded times nor time limits', async ({
    stage,
    skip,
  }) => {
    if (faketime === undefined) skip('needs libfaketime');
    const orchestrator = await stage.orchestrator();
    const { call } = orchestrator;
    const right = await stage.agent(orchestrator, 'right');
    expect((await call(getAgent, { params: { node_id: right.nodeId } })).attributes).not.toHaveProperty(
      'clock_skew_secs',
    );
    for (const [name, offset] of [
      ['fast', hour],
      ['slow', -hour],
    ] as const) {
      const from = Math.floor(Date.now() / 1000);
      const file = join(stage.dir, `${name}.clock`);
      const agent = await stage.agent(orchestrator, name, {
        env: clockFrom(file, offset > 0 ? `+${hour}` : `-${hour}`),
      });
      const params = { node_id: agent.nodeId };
      const shown = await call(getAgent, { params });
      expect(Math.abs(Number(shown.attributes.clock_skew_secs) - offset)).toBeLessThan(hour / 2);
      for (const at of [shown.last_seen_at, shown.connected_at, shown.updated_at]) near(at, from);
      // Shifts the agent's clock by two hours while an operation is running. The operation must not time out.
      const go = join(stage.dir, `${name}.go`);
      const script = { program: 'sh', manages: name, apply: `touch ${go}; sleep 2.5`, check: `test -e ${go}` };
      const content = JSON.stringify({
        name,
        supports: [{ platform: 'linux' }],
        resources: [{ id: name, resource: { script } }],
      });
      await call(uploadModule, { body: { name, content } });
      const accepted = await call(applyAgent, { params, body: { modules: [name] }, respondAsync: true });
      await eventually('the script is running', async () => (existsSync(go) ? true : null));
      writeFileSync(file, offset > 0 ? `-${hour}` : `+${hour}`);
      const operation = await ended(call, accepted.operation_id);
      expect(operation).toMatchObject({ status: 'succeeded', summary: { changed: 1 } });
      near(operation.started_at, operation.created_at);
      near(operation.finished_at, operation.started_at as number);
      near((await call(checkDrift, { params })).checked_at, from);
      // The orchestrator's clock decides when a queued operation expires.
      await agent.stop();
      await away(orchestrator, agent.nodeId);
      const waiting = await call(applyAgent, { params, body: { modules: [], ttl: 120 }, respondAsync: true });
      await agent.start();
      const done = await ended(call, waiting.operation_id);
      expect(done.status).toBe('succeeded');
      near(done.started_at, done.created_at);
      // The reconnected agent reports the new clock offset.
      const { attributes } = await call(getAgent, { params });
      expect(Math.abs(Number(attributes.clock_skew_secs) + offset)).toBeLessThan(hour / 2);
      expect(orchestrator.program.lastLines(400).join('\n')).toContain('the clock of this agent is');
    }
  });

  test('setting the orchestrator’s clock back breaks no link and expires no operation early', async ({
    stage,
    skip,
  }) => {
    if (faketime === undefined) skip('needs libfaketime');
    const file = join(stage.dir, 'clock');
    const orchestrator = await stage.orchestrator({ env: clockFrom(file, `+${hour}`) });
    const { call } = orchestrator;
    const agent = await stage.agent(orchestrator, 'web-1');
    const stopped = await stage.agent(orchestrator, 'web-2');
    await stopped.stop();
    await away(orchestrator, stopped.nodeId);
    const params = { node_id: agent.nodeId };
    expect(Math.abs(Number((await call(getAgent, { params })).attributes.clock_skew_secs) + hour)).toBeLessThan(
      hour / 2,
    );
    await fileModule(orchestrator, 'one', join(stage.dir, 'one'), 'one\n');
    const before = await call(applyAgent, { params, body: { modules: ['one'] } });
    const waiting = await call(applyAgent, {
      params: { node_id: stopped.nodeId },
      body: { modules: ['one'], ttl: 600 },
      respondAsync: true,
    });
    writeFileSync(file, '+0');
    const later = await eventually("the orchestrator's clock is set back", async () => {
      const operation = await call(applyAgent, { params, body: { modules: ['one'] } });
      expect(operation.status).toBe('succeeded');
      return operation.created_at < before.created_at - hour / 2 ? operation : null;
    });
    // Operation IDs increase even if the clock is set back.
    expect(later.operation_id > before.operation_id).toBe(true);
    near(later.finished_at, later.created_at);
    await connected({ orchestrator, agent });
    expect(agent.program.lastLines(200).filter((line) => line.includes('"event":"connected"'))).toHaveLength(1);
    await stopped.start();
    expect((await ended(call, waiting.operation_id)).status).toBe('succeeded');
    expect(readFileSync(join(stage.dir, 'one'), 'utf8')).toBe('one\n');
  });
});
