import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Report } from '@muster/protocol/wire';
import { expect, test } from 'vitest';
import { Connection } from '../agent/src/connection/connection.ts';
import { loadAgentIdentity } from '../agent/src/connection/identity.ts';
import type { OrchestratorFile } from '../agent/src/connection/pin.ts';
import type { ConnectedEngine } from '../agent/src/connection/session.ts';
import type { ReportSpool, SpoolEntry } from '../agent/src/converge/engine.ts';
import { systemClock } from '../lib/src/clock.ts';
import { ManualClock } from '../lib/test/manual-clock.ts';
import { createInProcessBus } from '../orchestrator/src/bus/in-process.ts';
import { createGateway } from '../orchestrator/src/gateway/gateway.ts';
import { loadIdentity } from '../orchestrator/src/identity/identity.ts';
import { MemoryLinks } from '../orchestrator/test/memory-links.ts';

const operationId = '01HZZZZZZZZZZZZZZZZZZZZZZZ';
const result = (position: number): Report => ({
  type: 'results',
  operation_id: operationId,
  position,
  results: [
    {
      module: 'many',
      id: null,
      type: 'file-unix',
      identity: `/srv/many/${position}`,
      action: 'none',
      status: 'unchanged',
      changes: [],
      diff: null,
      triggered_by: [],
      corrective: false,
      message: null,
      duration_ms: 0,
      sensitive: false,
    },
  ],
});

/** An in-memory replacement for an agent's journal: reports that wait for an acknowledgment, in order. */
class Spool implements ReportSpool {
  readonly entries: SpoolEntry[] = [];
  acknowledgedSeq = 0;
  done: () => void = () => {};

  add(reports: Report[]): void {
    this.entries.push({ seq: this.entries.length + 1, reports, bytes: Buffer.byteLength(JSON.stringify(reports)) });
  }

  *pending(afterSeq: number): Iterable<SpoolEntry> {
    for (let at = afterSeq; at < this.entries.length; at++) yield this.entries[at]!;
  }

  acknowledge(seq: number): void {
    this.acknowledgedSeq = Math.max(this.acknowledgedSeq, seq);
    if (this.acknowledgedSeq === this.entries.length) this.done();
  }

  lastSeq(): number {
    return this.entries.length;
  }
}

test('links stay up while agents send 37,000 results at full speed and commits are slow', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'muster-busy-'));
  const clock = new ManualClock();
  const bus = createInProcessBus((error) => {
    throw error;
  });
  const links = new MemoryLinks();
  const committing = links.reported.bind(links);
  let commits = 0;
  // Most commits take no time; some take 5 ms, and others 100 ms. The results are discarded.
  links.reported = async (nodeId, instanceId, seq, reports) => {
    commits++;
    if (commits % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
    if (commits % 50 === 0) await new Promise((resolve) => setTimeout(resolve, commits % 500 === 0 ? 100 : 5));
    links.owners.set(operationId, nodeId);
    return committing(nodeId, instanceId, seq, reports);
  };
  const lines: { message: string; fields: object }[] = [];
  const write = (fields: object, message: string) => void lines.push({ message, fields });
  const log = { debug: () => {}, info: write, warn: write, error: write };
  const identity = await loadIdentity(join(dir, 'orchestrator'));
  const gateway = createGateway({ identity, links, bus, clock, log, random: Math.random });
  const port = await gateway.listen('127.0.0.1', 0);
  // Advances the clock much faster than real time, so that idle checks, pings, and rate limits take effect.
  const passing = setInterval(() => clock.advance(250), 1);
  const connections: Connection[] = [];
  try {
    const agents = await Promise.all(
      [37_500, 4_000, 4_000].map(async (results, number) => {
        const keys = await loadAgentIdentity(join(dir, `agent-${number}`));
        const spool = new Spool();
        for (let position = 0; position < results; position++) spool.add([result(position)]);
        // Adds output that does not fit into one message.
        const output = { type: 'output', operation_id: operationId, resource: 'many/script', stderr: '' } as const;
        for (let more = 0; more < 20; more++)
          spool.add([{ ...output, stdout: 'x'.repeat(100_000), exit_code: 0, truncated: false }]);
        const sent = new Promise<void>((resolve) => {
          spool.done = resolve;
        });
        const unused = () => Promise.reject(new Error('no orchestrator message calls this'));
        const engine: ConnectedEngine = {
          spool,
          output: { take: () => null },
          openOperations: () => [],
          settle: () => {},
          contents: { next: () => null, received: () => false, refused: () => false, unlinked: () => {} },
          cancel: unused,
          accept: unused,
        };
        const connection = new Connection({
          identity: keys,
          introduction: { agentVersion: 'test', instanceId: String(number).repeat(32), hostname: `agent-${number}` },
          target: {
            host: '127.0.0.1',
            port,
            orchestrator_key: identity.publicKey.toString('hex'),
            token: null,
            pinSource: 'flag',
            addresses: [],
            replacedKey: null,
          },
          file: { read: () => null, write: () => {} } as unknown as OrchestratorFile,
          engine,
          terminals: null,
          samples: null,
          clock: systemClock,
          log,
          random: Math.random,
          attributes: () => ({}),
        });
        connections.push(connection);
        connection.start();
        return { nodeId: keys.nodeId, spool, sent };
      }),
    );
    await Promise.all(agents.map(({ sent }) => sent));
    const ends = lines.filter(({ message }) => /not connected|disconnected|refused/.test(message));
    expect(ends).toEqual([]);
    for (const { nodeId, spool } of agents) expect(links.row(nodeId).acknowledged).toBe(spool.entries.length);
  } finally {
    clearInterval(passing);
    for (const connection of connections) await connection.stop('the test has ended');
    await gateway.close();
    await bus.close();
    await rm(dir, { recursive: true });
  }
});
