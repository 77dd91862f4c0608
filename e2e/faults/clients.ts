import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasEnded } from '@muster/protocol';
import { type Client, createClient } from '@muster/protocol/client';
import {
  applyAgent,
  applyAssignment,
  getAgent,
  getOperation,
  getRun,
  type Operation,
  putTag,
  type Run,
  uploadModule,
} from '@muster/protocol/http';
import { type Operator, signIn, transportTo } from '../client.ts';
import type { FaultStage } from './fault-stage.ts';
import type { Recorder } from './recorder.ts';

/** Clients that work while replicas fail. */

/** Timeout of a request, in milliseconds. */
const patienceMs = 10_000;
const retryMs = 200;
/** Milliseconds after which a pausing client notices that it is stopped. */
const stopLookMs = 500;

/** Returns a new signal that aborts a request at its timeout. */
export const patience = () => AbortSignal.timeout(patienceMs);

export class Clients {
  readonly recorder: Recorder;
  readonly stage: FaultStage;
  readonly operator: Operator;
  /** Token of the operator's session. */
  token = '';
  #stopped = false;
  readonly #loops: Promise<void>[] = [];
  #turn = 0;

  constructor(stage: FaultStage, recorder: Recorder) {
    this.stage = stage;
    this.recorder = recorder;
    this.operator = stage.replicas[0]!.orchestrator.operator;
  }

  async signIn(): Promise<void> {
    this.token = await signIn(this.throughBalancer(null), this.operator);
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  #transport() {
    const { dataDir } = this.stage.replicas[0]!.orchestrator;
    return transportTo(() => readFileSync(join(dataDir, 'api.crt'), 'utf8'));
  }

  get balancerUrl(): string {
    return `https://127.0.0.1:${this.stage.apiPort}`;
  }

  /** Creates a client with its own connections. @param token default: the token of the operator's session */
  throughBalancer(token: string | null = this.token): Client {
    return createClient({ url: this.balancerUrl, token: async () => token, transport: this.#transport() });
  }

  /** Creates clients that address the replicas directly. */
  atReplicas(token: string = this.token): { name: string; call: Client }[] {
    return this.stage.replicas.map(({ orchestrator }, index) => ({
      name: String.fromCharCode('a'.charCodeAt(0) + index),
      call: createClient({ url: orchestrator.url, token: async () => token, transport: this.#transport() }),
    }));
  }

  /** Returns one of the elements, in turn. */
  next<T>(of: readonly T[]): T {
    return of[this.#turn++ % of.length]!;
  }

  /** Repeats `act` with a pause until the clients are stopped. */
  repeat(pauseMs: number, act: () => Promise<unknown>): void {
    const loop = async () => {
      while (!this.#stopped) {
        await act();
        for (let left = pauseMs; left > 0 && !this.#stopped; left -= stopLookMs)
          await sleep(Math.min(left, stopLookMs));
      }
    };
    this.#loops.push(loop());
  }

  /** Stops all clients after their current requests. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#loops);
  }

  /** Repeats an idempotent request until it succeeds. @returns null if the clients were stopped first */
  async insist<T>(send: () => Promise<T>): Promise<T | null> {
    while (!this.#stopped) {
      try {
        return await send();
      } catch {
        await sleep(retryMs);
      }
    }
    return null;
  }
}

/** Writes unique values to tags, and reads them at all replicas. */
export function writeTags(clients: Clients, nodes: readonly string[], writers: number): string[] {
  const { recorder } = clients;
  const keys = Array.from({ length: writers }, (_, index) => `${nodes[index % nodes.length]} k${index}`);
  const replicas = clients.atReplicas();
  for (const [index, key] of keys.entries()) {
    const call = clients.throughBalancer();
    const [node_id, name] = key.split(' ') as [string, string];
    let count = 0;
    clients.repeat(100, async () => {
      const value = `w${index}-${count++}`;
      await recorder.call(`writer ${index}`, 'balancer', { kind: 'write', key, value }, () =>
        call(putTag, { params: { node_id, key: name }, body: { value }, signal: patience() }),
      );
      await readTag(clients, clients.next(replicas), key);
    });
  }
  return keys;
}

/** Reads a tag at a replica. */
export async function readTag(
  clients: Clients,
  replica: { name: string; call: Client },
  key: string,
): Promise<boolean> {
  const [node_id, name] = key.split(' ') as [string, string];
  const answer = await clients.recorder.call(
    'reader',
    replica.name,
    { kind: 'read', key },
    () => replica.call(getAgent, { params: { node_id }, signal: patience() }),
    ({ tags }) => ({ value: tags[name] ?? null }),
  );
  return answer !== null;
}

const moduleOf = (name: string, apply: string): string =>
  JSON.stringify({
    name,
    supports: [{ platform: 'linux' }],
    resources: [{ id: 'effect', resource: { script: { program: 'sh', manages: 'effect', apply } } }],
  });

/** Applies modules on a real agent, each of which appends its own token to a file once. */
export function applyTokens(
  clients: Clients,
  agent: { nodeId: string; effects: string },
  index: number,
  everyMs: number,
): void {
  const call = clients.throughBalancer();
  const replicas = clients.atReplicas();
  const { nodeId: node } = agent;
  let count = 0;
  clients.repeat(everyMs, async () => {
    const token = `t${index}-${count++}`;
    const content = moduleOf(token, `echo ${token} >> '${agent.effects}'`);
    const body = { name: token, content };
    if ((await clients.insist(() => call(uploadModule, { body, signal: patience() }))) === null) return;
    const queued = await clients.recorder.call(
      `applier ${index}`,
      'balancer',
      { kind: 'apply', node, token },
      () =>
        call(applyAgent, {
          params: { node_id: node },
          body: { modules: [token] },
          respondAsync: true,
          signal: patience(),
        }),
      ({ operation_id }) => ({ id: operation_id }),
    );
    if (queued === null) return;
    const params = { operation_id: queued.operation_id };
    for (let status = queued.status; !hasEnded(status) && !clients.stopped; await sleep(retryMs)) {
      const replica = clients.next(replicas);
      const at = clients.recorder.now;
      const seen = await replica.call(getOperation, { params, signal: patience() }).catch(() => null);
      if (seen === null) continue;
      recordOperation(clients.recorder, replica.name, at, seen);
      status = seen.status;
    }
  });
}

/** @param at when the request was sent */
export const recordOperation = (
  recorder: Recorder,
  replica: string,
  at: number,
  { operation_id, node_id, run_id, status, finished_at }: Omit<Operation, 'resources'>,
): void =>
  recorder.record({
    type: 'operation',
    at,
    answered: recorder.now,
    replica,
    operation: operation_id,
    node: node_id,
    run: run_id,
    status,
    finished: finished_at,
  });

/** @param at when the request was sent */
export const recordRun = (recorder: Recorder, replica: string, at: number, run: Run): void =>
  recorder.record({
    type: 'run',
    at,
    replica,
    run: run.run_id,
    status: run.status,
    finished: run.finished_at !== null,
    results: run.results.map(({ node_id, operation_id, status }) => ({
      node: node_id,
      operation: operation_id,
      status,
    })),
  });

/** Applies an assignment every `everyMs` milliseconds, and reads each run at all replicas until the run ends. */
export function startRuns(clients: Clients, assignment: string, everyMs: number): void {
  const call = clients.throughBalancer();
  const replicas = clients.atReplicas();
  clients.repeat(everyMs, async () => {
    const run = await clients.recorder.call(
      'runner',
      'balancer',
      { kind: 'run', assignment },
      () => {
        const body = { offline: 'queue' as const, batch: '50%' };
        return call(applyAssignment, { params: { name: assignment }, body, respondAsync: true, signal: patience() });
      },
      ({ run_id }) => ({ id: run_id }),
    );
    let finished = run === null;
    while (!finished && !clients.stopped) {
      const replica = clients.next(replicas);
      const at = clients.recorder.now;
      const seen = await replica
        .call(getRun, { params: { run_id: run!.run_id }, signal: patience() })
        .catch(() => null);
      finished = seen !== null && seen.finished_at !== null;
      if (finished) recordRun(clients.recorder, replica.name, at, seen!);
      await sleep(retryMs);
    }
  });
}
