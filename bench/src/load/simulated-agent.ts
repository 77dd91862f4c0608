import { randomBytes } from 'node:crypto';
import { idOfKey } from '@muster/protocol';
import type { OperationMessage, Report } from '@muster/protocol/wire';
import { keyOfPem, newKeyPem } from '../../../agent/src/connection/agent-key.ts';
import { Connection } from '../../../agent/src/connection/connection.ts';
import type { AgentIdentity } from '../../../agent/src/connection/identity.ts';
import type { OrchestratorFile } from '../../../agent/src/connection/pin.ts';
import type {
  AcceptOutcome,
  Engine,
  OpenOperation,
  ReportSpool,
  SpoolEntry,
} from '../../../agent/src/converge/engine.ts';
import { SampleBuffer } from '../../../agent/src/metrics/sample-buffer.ts';
import { systemClock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';

function noOpReports(operation: OperationMessage): Report[] {
  const now = Math.floor(Date.now() / 1000);
  const { operation_id } = operation;
  const total = operation.resources.length;
  const reports: Report[] = [{ type: 'accepted', operation_id }];
  if (total > 0)
    reports.push({
      type: 'results',
      operation_id,
      position: 0,
      results: operation.resources.map(({ module, id, type, identity }) => ({
        module,
        id,
        type,
        identity,
        action: 'none' as const,
        status: 'unchanged' as const,
        changes: [],
        diff: null,
        triggered_by: [],
        corrective: false,
        message: null,
        duration_ms: 0,
        sensitive: false,
      })),
    });
  reports.push({
    type: 'finished',
    operation_id,
    status: 'succeeded',
    summary: { total, unchanged: total, changed: 0, removed: 0, failed: 0, skipped: 0 },
    error: null,
    started_at: now,
    finished_at: now,
  });
  return reports;
}

/** A state engine that immediately reports that an operation changes nothing. It stores nothing on disk. */
class NoOpEngine implements Engine, ReportSpool {
  private entries: SpoolEntry[] = [];
  private last = 0;
  onReports: () => void = () => {};
  onAcknowledged: () => void = () => {};
  lastOperation: OperationMessage | null = null;
  readonly spool: ReportSpool = this;
  readonly output = { take: () => null };
  readonly contents = { next: () => null, received: () => false, refused: () => false, unlinked: () => {} };

  async start(): Promise<void> {}
  async halt(): Promise<void> {}
  cancel(): void {}
  settle(): void {}
  async stop(): Promise<void> {}
  busy(): boolean {
    return false;
  }

  applied(): ReturnType<Engine['applied']> {
    return { applies: 0, watched: new Map() };
  }

  async observe(): ReturnType<Engine['observe']> {
    return null;
  }
  openOperations(): OpenOperation[] {
    return [];
  }

  async accept(operation: OperationMessage): Promise<AcceptOutcome> {
    this.lastOperation = operation;
    this.add(noOpReports(operation));
    return 'accepted';
  }

  add(reports: Report[]): void {
    this.entries.push({ seq: ++this.last, reports, bytes: Buffer.byteLength(JSON.stringify(reports)) });
    this.onReports();
  }

  pending(afterSeq: number): Iterable<SpoolEntry> {
    return this.entries.filter((entry) => entry.seq > afterSeq);
  }

  acknowledge(seq: number): void {
    this.entries = this.entries.filter((entry) => entry.seq > seq);
    if (this.entries.length === 0) this.onAcknowledged();
  }

  lastSeq(): number {
    return this.last;
  }
}

async function newIdentity(): Promise<AgentIdentity> {
  const shown = { key: keyOfPem(newKeyPem(), 'memory'), statement: null, earlier: [] };
  const nodeId = await idOfKey(shown.key.publicKey);
  const none = () => false;
  return {
    nodeId,
    toShow: () => shown,
    inForce: () => shown,
    hasNext: none,
    welcomed: none,
    refused: none,
    unknownTo: () => {},
  };
}

const ignore = () => {};
const bufferedSamples = 64;
/** Seconds between the samples of an agent, by default. */
export const sampleSecs = 30;
const attributes = { platform: 'linux', distro: 'debian', version: '12', arch: 'x86_64', init_system: 'systemd' };

export interface SimulatedTarget {
  port: number;
  /** The orchestrator's public key in hexadecimal. */
  orchestratorKey: string;
  token: string | null;
}

/** An agent with the real connection code but without a machine. */
export class SimulatedAgent {
  private readonly engine = new NoOpEngine();
  private readonly samples: SampleBuffer | null;
  private readonly newConnection: (token: string | null) => Connection;
  private connection: Connection;
  private welcomed: () => void = ignore;

  private constructor(identity: AgentIdentity, target: SimulatedTarget, number: number, sampled: boolean) {
    this.samples = sampled ? new SampleBuffer(bufferedSamples) : null;
    this.newConnection = (token) => this.connectionOf(identity, { ...target, token }, number);
    this.connection = this.newConnection(target.token);
    this.engine.onReports = () => this.connection.reportsReady();
  }

  private connectionOf(identity: AgentIdentity, target: SimulatedTarget, number: number): Connection {
    const log: Log = {
      debug: ignore,
      info: (fields, message) => {
        if (message === 'connected') this.welcomed();
        if (message === 'not connected' && process.env.MUSTER_BENCH_LOG) console.error(fields);
      },
      warn: ignore,
      error: (fields, message) => console.error(message, fields),
    };
    return new Connection({
      identity,
      introduction: {
        agentVersion: 'bench',
        instanceId: randomBytes(16).toString('hex'),
        hostname: `bench-${number}`,
      },
      target: {
        host: '127.0.0.1',
        port: target.port,
        orchestrator_key: target.orchestratorKey,
        token: target.token,
        pinSource: 'flag',
        addresses: [],
        replacedKey: null,
      },
      // Does not store which orchestrator it enrolled with, because each bench creates new agents.
      file: { read: () => null, write: ignore } as unknown as OrchestratorFile,
      engine: this.engine,
      terminals: null,
      samples: this.samples,
      clock: systemClock,
      log,
      random: Math.random,
      attributes: () => attributes,
    });
  }

  /** Creates an agent with a new key. @param sampled whether it sends the samples of `measured` */
  static async create(target: SimulatedTarget, number: number, sampled = false): Promise<SimulatedAgent> {
    return new SimulatedAgent(await newIdentity(), target, number, sampled);
  }

  /** Takes a sample with random values. */
  measured(): void {
    const some = (max: number) => Math.floor(Math.random() * max);
    this.samples?.push({
      collected_at: Math.floor(Date.now() / 1000),
      cpu_usage: Math.random() * 100,
      memory_total: 16e9,
      memory_used: some(16e9),
      swap_used: 0,
      disk_total: 1e12,
      disk_used: some(1e12),
      load1: Math.random() * 4,
      net_rx_bytes: some(1e12),
      net_tx_bytes: some(1e12),
      processes: some(500),
      uptime: some(1e7),
    });
  }

  /** Connects, and reconnects whenever the link is lost. Resolves when the agent is connected for the first time. */
  connect(): Promise<void> {
    return new Promise((resolve) => {
      this.welcomed = resolve;
      this.connection.start();
    });
  }

  /** Disconnects cleanly. The agent can connect again with the same key, without a token. */
  async leave(): Promise<void> {
    await this.connection.stop('the bench disconnects the agent');
    this.connection = this.newConnection(null);
  }

  /** Sends `bytes` bytes of reports as fast as flow control allows. Resolves when all reports are acknowledged. */
  sendReports(bytes: number): Promise<void> {
    const each = 2_000;
    return new Promise((resolve) => {
      this.engine.onAcknowledged = resolve;
      for (let sent = 0; sent < bytes; sent += each)
        this.engine.add([
          {
            type: 'output',
            operation_id: '0'.repeat(26),
            resource: 'bench/bench',
            stdout: 'x'.repeat(each - 200),
            stderr: '',
            exit_code: 0,
            truncated: false,
          },
        ]);
    });
  }

  get lastOperation(): OperationMessage | null {
    return this.engine.lastOperation;
  }
}
