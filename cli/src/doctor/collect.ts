import { type Stats, statfsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import {
  type AgentAddress,
  addressText,
  distinctAddresses,
  maxAgentAddresses,
  parseAgentAddress,
} from '@muster/protocol/agent-address';
import { ApiError, type Client } from '@muster/protocol/client';
import type { AnswerOf, listAudit } from '@muster/protocol/http';
import type { Context } from '../context/context.ts';
import type { Target } from '../context/profile.ts';
import { cacheDirectory, configDirectory } from '../directories.ts';
import { unreachable } from '../transport/client.ts';
import { explain } from '../transport/explain.ts';
import type { Disk, PathFacts } from './finding.ts';
import type { HereFacts } from './here.ts';
import type { MachineFacts } from './machine.ts';
import type { FleetFacts, ReachFacts } from './orchestrator.ts';

/** Collects facts, which here.ts, machine.ts, and orchestrator.ts evaluate. */

const limitMs = 5_000;

async function statOf(path: string): Promise<Stats | null> {
  return stat(path).catch(() => null);
}

async function pathFactsOf(path: string, what: string): Promise<PathFacts> {
  const found = await statOf(path);
  return {
    path,
    what,
    isDirectory: found?.isDirectory() === true,
    mode: found === null ? null : found.mode & 0o777,
    uid: found?.uid ?? 0,
  };
}

export async function collectHere(context: Context): Promise<HereFacts> {
  const { env } = context;
  const configuration = await context.target().then(
    () => null,
    (error: unknown) => explain(error),
  );
  const target = configuration === null ? await context.target() : null;
  const key = await context.key().catch((error: unknown) => explain(error));
  const sessions = join(cacheDirectory(env), 'sessions');
  const tokens = await readdir(sessions).catch(() => []);
  const pathFacts = [
    pathFactsOf(configDirectory(env), 'your key and trusted certificates'),
    pathFactsOf(join(configDirectory(env), 'profiles.json'), 'trusted certificates'),
    pathFactsOf(sessions, 'session tokens'),
    ...tokens.slice(0, 100).map((name) => pathFactsOf(join(sessions, name), 'a session token')),
    // `readKey` has already refused a key that other users can access.
    ...('publicKey' in key && key.storage !== 'agent' ? [pathFactsOf(key.path, 'your operator key')] : []),
  ];
  return {
    uid: process.getuid?.() ?? 0,
    pathFacts: await Promise.all(pathFacts),
    configuration: configuration === null ? null : { message: configuration.message, remedy: configuration.remedy },
    key:
      'publicKey' in key
        ? { path: key.path, publicKey: key.publicKey, storage: key.storage }
        : { path: target?.keyFile ?? null, message: key.message, remedy: key.remedy },
    variables: ['NODE_TLS_REJECT_UNAUTHORIZED', 'MUSTER_INSECURE_SKIP_VERIFY'].filter((name) => env[name]),
  };
}

interface Raw {
  status: number;
  date: string | undefined;
  text: string;
  certificate: ReachFacts['certificate'];
}

/** Sends a request that contains no operator data and accepts any certificate. */
function ask(url: URL, limit: number): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) =>
      reject(error.name === 'AbortError' ? Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' }) : error);
    const secure = url.protocol === 'https:';
    const request = (secure ? secureRequest : plainRequest)(
      url,
      // Limits the duration of the whole request, because a server that sends one byte at a time would never reach an
      // idle timeout.
      { agent: false, signal: AbortSignal.timeout(limit), ...(secure ? { rejectUnauthorized: false } : {}) },
      (answer) => {
        answer.on('error', fail);
        const socket = answer.socket as TLSSocket;
        const seen = secure ? socket.getPeerX509Certificate() : undefined;
        const certificate = seen
          ? {
              fingerprint: seen.fingerprint256.replaceAll(':', '').toLowerCase(),
              validFrom: Date.parse(seen.validFrom) / 1000,
              validTo: Date.parse(seen.validTo) / 1000,
              vouched: socket.authorized,
            }
          : null;
        let text = '';
        answer.setEncoding('utf8').on('data', (piece: string) => {
          text += piece;
          if (text.length > 65_536) request.destroy(new Error('the answer is too long'));
        });
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, date: answer.headers.date, text, certificate }),
        );
      },
    );
    request.on('error', fail);
    request.end();
  });
}

function statusIn(text: string): (ReachFacts['status'] & { public_key?: unknown }) | null {
  try {
    const { status, version, protocol_version, reasons, public_key } = JSON.parse(text);
    if (typeof status !== 'string' || typeof version !== 'string') return null;
    return {
      status,
      version,
      protocol_version,
      reasons: Array.isArray(reasons) ? reasons.map(String) : [],
      public_key,
    };
  } catch {
    return null;
  }
}

/**
 * Collects the facts that require no sign-in.
 * @param limit milliseconds to wait for a response
 * @returns the facts, and the public key that the orchestrator reports
 */
export async function collectReach(
  { now, env }: Pick<Context, 'now' | 'env'>,
  target: Target,
  own: ReachFacts['own'],
  limit = limitMs,
): Promise<{ facts: ReachFacts; publicKey: string | null }> {
  const { url } = target;
  const proxies = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'].filter(
    (name) => env[name],
  );
  const expected = target.given ?? target.stored;
  const nothing = { certificate: null, serverTime: null, status: null, ready: null };
  const insecure = target.insecure && target.given === null;
  const base = { url, now: now(), expected, insecure, proxies, own };
  try {
    const answer = await ask(new URL(`${url}/api/v1/status`), limit);
    const ready = await ask(new URL(`${url}/readyz`), limit).then(
      ({ status }) => status,
      () => null,
    );
    const status = statusIn(answer.text);
    if (status === null)
      return {
        facts: {
          ...base,
          ...nothing,
          unreachable: {
            message: `the server at ${url} is not an orchestrator`,
            remedy: 'Specify the address with --url.',
          },
        },
        publicKey: null,
      };
    const time = Date.parse(answer.date ?? '') / 1000;
    return {
      facts: {
        ...base,
        now: now(),
        unreachable: null,
        certificate: answer.certificate,
        serverTime: Number.isNaN(time) ? null : time,
        status,
        ready,
      },
      publicKey: typeof status.public_key === 'string' ? status.public_key : null,
    };
  } catch (error) {
    const { message, remedy } = unreachable(new URL(url), error as Error);
    return { facts: { ...base, ...nothing, unreachable: { message, remedy } }, publicKey: null };
  }
}

/**
 * Tries to connect.
 * @returns null if the connection succeeds, otherwise the reason for the failure
 */
function dial(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
      resolve('invalid port');
      return;
    }
    const socket = connectTcp({ host, port, timeout: limitMs });
    const end = (why: string | null) => {
      socket.destroy();
      resolve(why);
    };
    socket.on('connect', () => end(null));
    socket.on('timeout', () => end('no answer within the time limit'));
    socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
}

type AuditPage = AnswerOf<typeof listAudit>;

/** Maximum number of pages of sign-ins to read, with 500 sign-ins each. */
const maxPages = 20;

/** Collects the sign-ins of the last seven days whose signatures did not name a server. */
async function collectSignInsWithoutServer(call: Client, now: number): Promise<FleetFacts['signInsWithoutServer']> {
  const { listAudit } = await import('@muster/protocol/http');
  const after = new Date((now - 7 * 86_400) * 1000).toISOString();
  const usernames = new Set<string>();
  let count = 0;
  let cursor: string | null = null;
  for (let page = 0; page < maxPages; page++) {
    const query = { event_type: 'auth.signed_in', after, limit: '500', ...(cursor === null ? {} : { cursor }) };
    const found: AuditPage = await call(listAudit, { query });
    for (const { metadata, actor } of found.events) {
      if (metadata.bound !== false) continue;
      count++;
      usernames.add(actor.name);
    }
    cursor = found.next_cursor;
    if (cursor === null) break;
  }
  return { count, usernames: [...usernames].sort() };
}

/**
 * Queries the orchestrator as the operator.
 * @throws any error from the requests
 */
export async function collectFleet(
  context: Context,
  version: string | null,
  options: { audit?: boolean },
): Promise<FleetFacts> {
  const http = await import('@muster/protocol/http');
  const { call, target } = await context.connect();
  // Sends this request before the parallel ones, because it signs in.
  const health = await call(http.getHealth, {});
  const [replicas, agents, secrets, notifications] = await Promise.all([
    call(http.listReplicas, {}).catch((error: unknown) => {
      // The orchestrator's release has no replicas.
      if (error instanceof ApiError && error.problem.status === 404) return [];
      throw error;
    }),
    call(http.listAgents, { query: { sort: 'name' } }),
    call(http.listSecrets, { query: { limit: '1000' } }),
    call(http.listNotifications, { query: { limit: '100', unread: 'true' } }),
  ]);
  // Skipped for other roles, because only admins may read settings and a refused request would be recorded in the audit
  // log.
  const { operatorId } = await context.key();
  const { role } = await call(http.getOperator, { params: { operator_id: operatorId } });
  const settings = role === 'admin' ? (await call(http.getSettings, {})).settings : null;
  const port = settings?.agent_port;
  const host = typeof settings?.advertised_host === 'string' ? settings.advertised_host : new URL(target.url).hostname;
  const audit = options.audit ? await call(http.verifyAudit, {}) : null;
  return {
    now: context.now(),
    version,
    replicas,
    bus: health.bus ?? null,
    agents,
    secrets,
    disk: health.disk,
    secretsReadable: health.secrets_readable,
    database: health.database,
    unreadCritical: notifications.notifications.filter(({ severity }) => severity === 'critical').length,
    channel:
      typeof port === 'number' && port !== 0
        ? { address: `${host}:${port}`, error: await dial(host.replace(/^\[|\]$/g, ''), port) }
        : null,
    signInsWithoutServer: await collectSignInsWithoutServer(call, context.now()),
    audit: audit && { ok: audit.ok, verified: audit.verified, fault: audit.fault?.message ?? null },
  };
}

function fieldsIn(text: string): Record<string, unknown> {
  try {
    return (JSON.parse(text) ?? {}) as Record<string, unknown>;
  } catch {
    return {};
  }
}

async function unitOf(name: string): Promise<MachineFacts['unit']> {
  const { execFile } = await import('node:child_process');
  try {
    const { stdout } = await promisify(execFile)(
      'systemctl',
      ['show', name, '--property=LoadState,ActiveState,UnitFileState'],
      { timeout: limitMs },
    );
    const value = (property: string) => new RegExp(`^${property}=(.*)$`, 'm').exec(stdout)?.[1] ?? '';
    if (value('LoadState') !== 'loaded') return null;
    return { name, state: value('ActiveState'), enabled: value('UnitFileState') };
  } catch {
    return null;
  }
}

function diskOf(path: string): Disk | null {
  try {
    const { bsize, blocks, bavail } = statfsSync(path);
    return { path, size: bsize * blocks, free: bsize * bavail };
  } catch {
    return null;
  }
}

const dataFiles: Readonly<Record<MachineFacts['program'], readonly [name: string, what: string][]>> = {
  agent: [
    ['agent.key', 'the key of this machine'],
    ['orchestrator.json', 'the agent’s orchestrator'],
  ],
  orchestrator: [
    ['identity.key', 'its identity, which agents pin'],
    ['secrets.keys', 'the keys that secrets are encrypted under'],
    ['api.key', 'the key of its certificate'],
    ['muster.db', 'the database'],
  ],
};

export const defaultDirectories = {
  agent: '/var/lib/muster-agent',
  orchestrator: '/var/lib/muster-orchestrator',
} as const;

const defaultConfig = '/etc/muster/orchestrator.yml';

const defaultPorts = [
  { port: 4747, what: 'for agents' },
  { port: 4748, what: 'for the API' },
];

/**
 * Collects the facts about Muster's programs on this machine.
 * @param isNamed whether to report a missing program too
 */
export async function collectMachine(
  program: MachineFacts['program'],
  directory: string,
  isNamed: boolean,
  orchestratorKey: string | null,
): Promise<MachineFacts | null> {
  let closed = false;
  const [unit, found] = await Promise.all([
    unitOf(`muster-${program}`),
    stat(directory).catch((error: NodeJS.ErrnoException) => {
      closed = error.code === 'EACCES';
      return null;
    }),
  ]);
  if (!isNamed && unit === null && found === null) return null;
  const inside = await readdir(directory).catch(() => null);
  const pathFacts = found === null ? [] : [await pathFactsOf(directory, `the data of the ${program}`)];
  for (const [name, what] of inside === null ? [] : dataFiles[program])
    pathFacts.push(await pathFactsOf(join(directory, name), what));
  const facts: MachineFacts = {
    program,
    directory,
    uid: process.getuid?.() ?? 0,
    readable: inside !== null,
    closed,
    owner: found?.uid ?? null,
    pathFacts,
    config: null,
    unit,
    disk: found === null ? null : diskOf(directory),
    belongs: null,
    damaged: false,
    orchestratorKey,
    ports: [],
  };
  if (program === 'orchestrator') {
    const config = await statOf(defaultConfig);
    if (config !== null) facts.config = { path: defaultConfig, mode: config.mode & 0o777 };
    facts.ports = await Promise.all(
      defaultPorts.map(async ({ port, what }) => ({ port, what, listening: (await dial('127.0.0.1', port)) === null })),
    );
  } else {
    const text = await readFile(join(directory, 'orchestrator.json'), 'utf8').catch(() => null);
    const { host, port, orchestrator_key, addresses } = text === null ? {} : fieldsIn(text);
    facts.damaged = text !== null && (typeof host !== 'string' || typeof port !== 'number');
    if (typeof host === 'string' && typeof port === 'number')
      facts.belongs = {
        addresses: await Promise.all(
          distinctAddresses([{ host, port }, ...namedAddresses(addresses)]).map(async (each) => ({
            address: addressText(each),
            error: await dial(each.host, each.port),
          })),
        ),
        key: typeof orchestrator_key === 'string' ? orchestrator_key : null,
      };
  }
  return facts;
}

/** Returns the addresses that the orchestrator named to the agent; null for each one that is invalid. */
const namedAddresses = (addresses: unknown): (AgentAddress | null)[] =>
  Array.isArray(addresses) ? addresses.slice(0, maxAgentAddresses).map((text) => parseAgentAddress(String(text))) : [];
