import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { idOfKey, type ResourceResult, summarise } from '@muster/protocol';
import type { Hello, Report } from '@muster/protocol/wire';
import { ManualClock } from '../../lib/test/manual-clock.ts';
import type { Hint } from '../src/bus/bus.ts';
import { createInProcessBus } from '../src/bus/in-process.ts';
import { createAgentLinks, type ReportRules } from '../src/domain/agent-link/agent-link-service.ts';
import { setStatus } from '../src/domain/agents/agents.ts';
import { createPendingList } from '../src/domain/agents/pending-list.ts';
import { createRefusals } from '../src/domain/audit/refusals.ts';
import { createLiveOutput } from '../src/domain/operations/live-output.ts';
import { createWaiting } from '../src/domain/operations/operation-waiting.ts';
import { addOperator } from '../src/domain/operators/operators.ts';
import { createSignIn } from '../src/domain/operators/sign-in.ts';
import { createRunConductor } from '../src/domain/runs/run-conductor.ts';
import { AgentRecords } from '../src/domain/shared/agent-records.ts';
import type { Actor, Context } from '../src/domain/shared/context.ts';
import { createIds } from '../src/domain/shared/ids.ts';
import { createModuleDocuments } from '../src/domain/shared/module-documents.ts';
import { rawPublicKey } from '../src/identity/ed25519-key.ts';
import { SecretKeys } from '../src/identity/secret-keys.ts';
import type { DatabaseFixture } from './databases/databases.ts';

/** The server name to which sign-ins in the domain may be bound. */
export const ownServer = 'origin:https://muster.example:4748';

/** The key with which the domain issues sign-in challenges. */
export const challengeKey = Buffer.alloc(32, 9);

/**
 * Opens the domain with a database. The test controls time, randomness, and agent links.
 * @param options.comparesSent whether results must match the operation's resources, as in production; otherwise, tests
 *   may report any results
 */
export async function openDomain(
  fixture: DatabaseFixture,
  {
    pendingCapacity = 100,
    tokenLifeSecs = 3600,
    requireBound = false,
    dailyBytes = 256 * 1024 * 1024,
    comparesSent = false,
    incarnation = randomUUID().replaceAll('-', ''),
    isReplica = false,
  } = {},
) {
  const clock = new ManualClock();
  const agentRecords = new AgentRecords(await fixture.open());
  const { db } = agentRecords;
  const hints: Hint[] = [];
  const bus = createInProcessBus((error) => {
    throw error;
  });
  bus.subscribe((hint) => hints.push(hint));
  const connected = new Set<string>();
  const clockAheadSecs = new Map<string, number>();
  const silent = () => {};
  let drawn = 0;
  const context: Context = {
    db,
    agentRecords,
    bus,
    incarnation,
    isReplica,
    now: () => clock.now(),
    steadyNow: () => clock.monotonic(),
    ...createIds(() => clock.now()),
    // Returns different bytes on each call, but the sequence is the same in every test run.
    randomBytes: (length) =>
      Buffer.concat([createHash('sha512').update(`${++drawn}`).digest(), Buffer.alloc(64)]).subarray(0, length),
    documents: createModuleDocuments(db),
    secretKeys: new SecretKeys([Buffer.alloc(32, 7)]),
    presence: {
      get count() {
        return connected.size;
      },
      isConnected: (nodeId) => connected.has(nodeId),
      lastContactAt: (nodeId) => (connected.has(nodeId) ? Math.floor(clock.now() / 1000) : null),
      clockAheadSecs: (nodeId) => clockAheadSecs.get(nodeId) ?? 0,
      replicaOf: () => null,
    },
    log: { debug: silent, info: silent, warn: silent, error: silent },
  };
  const refusals = createRefusals(context);
  const liveOutput = createLiveOutput(context);
  const pending = createPendingList(context, pendingCapacity);
  const rules: { -readonly [K in keyof ReportRules]: ReportRules[K] } = {
    dailyBytes,
    space: 'ample',
    ...(comparesSent ? {} : { sentNames: async () => null }),
  };
  const links = createAgentLinks(context, refusals, pending, async () => {}, liveOutput, rules);
  const signInRules = {
    ...{ tokenLifeSecs, requireBound, consoleIdleSecs: 43_200, consoleLifeSecs: 604_800 },
    isOwnServer: (server: string) => server === ownServer,
  };
  const conductor = createRunConductor(context, { maxConcurrent: 1000 });
  return {
    context,
    clock,
    db,
    hints,
    connected,
    clockAheadSecs,
    links,
    pending,
    /** Limits for reports. Tests may change them. */
    rules,
    liveOutput,
    refusals,
    waiting: createWaiting(context),
    conductor,
    signIn: createSignIn(context, refusals, signInRules, challengeKey),
    /** Sign-in rules. Tests may change them. */
    signInRules,
    now: () => Math.floor(clock.now() / 1000),
  };
}
export type Domain = Awaited<ReturnType<typeof openDomain>>;

export interface Key {
  hex: string;
  id: string;
  sign(bytes: Uint8Array): string;
}

export async function newKey(): Promise<Key> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const raw = rawPublicKey(privateKey) as Buffer;
  return {
    hex: raw.toString('hex'),
    id: await idOfKey(raw),
    sign: (bytes) => sign(null, bytes, privateKey).toString('hex'),
  };
}

/** Creates an admin with a key. The test acts as this admin. */
export async function newAdmin({ context }: Domain, username = 'ada'): Promise<{ key: Key; actor: Actor }> {
  const key = await newKey();
  await addOperator(context, { type: 'system', id: '', name: '' }, { public_key: key.hex, username, role: 'admin' });
  return { key, actor: { type: 'operator', id: key.id, name: username } };
}

export function helloOf(key: Key, more: Partial<Hello> = {}): Hello {
  return {
    type: 'hello',
    versions: [1],
    agent_version: '0.1.0',
    public_key: key.hex,
    signature: '00'.repeat(64),
    instance_id: '01'.repeat(16),
    pin_source: 'flag',
    hostname: 'web-1',
    token: null,
    attributes: { platform: 'linux', distro: 'debian', hostname: 'web-1' },
    open_operations: [],
    ...more,
  };
}

/** Admits an agent, as the gateway does. */
export async function connect(domain: Domain, key: Key, more: Partial<Hello> = {}, remoteIp = '192.0.2.7') {
  const admission = await domain.links.admit(helloOf(key, more), {
    node_id: key.id,
    valid_until: null,
    succession: null,
    remote_ip: remoteIp,
    now: domain.now(),
  });
  if (admission.admitted) domain.connected.add(key.id);
  return admission;
}

export async function newAgent(domain: Domain, actor: Actor, name: string, more: Partial<Hello> = {}): Promise<Key> {
  const key = await newKey();
  await connect(domain, key, { hostname: name, ...more });
  await setStatus(domain.context, actor, key.id, { status: 'approved', name });
  return key;
}

export function resultOf(more: Partial<ResourceResult> = {}): ResourceResult {
  return {
    module: 'motd',
    id: 'motd',
    type: 'file-unix',
    identity: '/etc/motd',
    action: 'create',
    status: 'changed',
    changes: [],
    diff: null,
    triggered_by: [],
    corrective: false,
    message: null,
    duration_ms: 1,
    sensitive: false,
    ...more,
  };
}

/** Returns an agent's reports for an entire operation. */
export function reportsOf(
  operationId: string,
  results: ResourceResult[],
  { now, status = 'succeeded' }: { now: number; status?: 'succeeded' | 'failed' | 'cancelled' },
): Report[] {
  return [
    { type: 'accepted', operation_id: operationId },
    ...(results.length > 0 ? [{ type: 'results' as const, operation_id: operationId, position: 0, results }] : []),
    {
      type: 'finished',
      operation_id: operationId,
      status,
      summary: summarise(results),
      error: status === 'failed' ? 'it failed' : null,
      started_at: now,
      finished_at: now,
    },
  ];
}
