import { hash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from '@muster/protocol/client';
import { statusText } from '../../../client/src/status-text.ts';
import type { Context } from '../context/context.ts';
import { readProfiles } from '../context/profile.ts';
import { cacheDirectory, writePrivateFile } from '../directories.ts';
import type { Candidate, Source } from './completion.ts';

/** Maximum age of a cached response that can be used without a new request, in seconds. */
const freshSecs = 20;
/** Page size. Small, because the user waits for completions. */
const maxCandidates = '500';

const named = (value: string, about = ''): Candidate => ({ value, about });
const recent = { query: { limit: '50' } };

/**
 * Requests for candidates with an ID or a description. Routes are imported on demand, so that the program starts
 * quickly.
 */
const asks: Readonly<Record<Source, (call: Client) => Promise<Candidate[]>>> = {
  agents: async (call) => {
    const { listAgents } = await import('@muster/protocol/http');
    const agents = await call(listAgents, { query: { sort: 'name', limit: maxCandidates } });
    return agents.map(({ name, node_id, status, connected, initial_hostname }) =>
      named(name ?? node_id, name === null ? `${status}, ${initial_hostname}` : connected ? status : 'offline'),
    );
  },
  assignments: async (call) => {
    const { listAssignments } = await import('@muster/protocol/http');
    return (await call(listAssignments, {})).map(({ name, selector }) => named(name, selector));
  },
  secrets: async (call) => {
    const { listSecrets } = await import('@muster/protocol/http');
    return (await call(listSecrets, { query: { limit: maxCandidates } })).map(({ name, description }) =>
      named(name, description ?? ''),
    );
  },
  channels: async (call) => {
    const { listChannels } = await import('@muster/protocol/http');
    return (await call(listChannels, {})).map(({ name, channel_type }) => named(name, channel_type));
  },
  windows: async (call) => {
    const { listWindows } = await import('@muster/protocol/http');
    return (await call(listWindows, recent)).map(({ id, reason }) => named(id, reason));
  },
  operations: async (call) => {
    const { listOperations } = await import('@muster/protocol/http');
    const { operations } = await call(listOperations, recent);
    return operations.map(({ operation_id, kind, status }) => named(operation_id, `${kind} ${statusText(status)}`));
  },
  runs: async (call) => {
    const { listRuns } = await import('@muster/protocol/http');
    return (await call(listRuns, recent)).map(({ run_id, assignment, status }) =>
      named(run_id, `${assignment ?? ''} ${statusText(status)}`.trim()),
    );
  },
  sessions: async (call) => {
    const { listTerminals } = await import('@muster/protocol/http');
    return (await call(listTerminals, recent)).map(({ session_id, status }) => named(session_id, status));
  },
  'sign-in sessions': async (call) => {
    const { listSessions } = await import('@muster/protocol/http');
    return (await call(listSessions, {})).map(({ id, kind, current, user_agent }) =>
      named(id, [current ? `${kind}, this one` : kind, user_agent].filter(Boolean).join(', ')),
    );
  },
  tokens: async (call) => {
    const { listEnrolmentTokens } = await import('@muster/protocol/http');
    return (await call(listEnrolmentTokens, {})).map(({ id, name }) => named(id, name ?? ''));
  },
  operators: async (call) => {
    const { listOperators } = await import('@muster/protocol/http');
    return (await call(listOperators, {})).map(({ username, role }) => named(username, role));
  },
};

/** Returns the names in a noun's list. */
async function namesOf(call: Client, noun: string): Promise<Candidate[]> {
  const { listKinds, routes } = await import('@muster/protocol/http');
  const id = `list-${noun}`.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  const route = routes.find((each) => each.id === id);
  if (route === undefined) return [];
  // The items of all nouns that are not in `asks` have a `name`, as the items of `kinds` do.
  const rows: readonly { name?: string }[] = await call(route as typeof listKinds, {});
  return rows.flatMap(({ name }) => (name === undefined ? [] : [named(name)]));
}

interface CachedCandidates {
  at: number;
  candidates: Candidate[];
}

async function read(path: string): Promise<CachedCandidates | null> {
  try {
    // Ignores a file to which other users can write, because the shell would see its content.
    const { mode, uid } = await stat(path);
    if ((mode & 0o022) !== 0 || uid !== process.getuid?.()) return null;
    const { at, candidates } = JSON.parse(await readFile(path, 'utf8')) as CachedCandidates;
    return typeof at === 'number' && Array.isArray(candidates) ? { at, candidates } : null;
  } catch {
    return null;
  }
}

/**
 * Returns the candidates of a kind, from the orchestrator or from the cache.
 * @param limitMs time limit for the orchestrator in milliseconds, after which older cached candidates are used
 */
export async function live(context: Context, source: Source, limitMs: number): Promise<Candidate[]> {
  const { env, now } = context;
  if (source === 'profiles')
    return Object.entries((await readProfiles(env)).profiles).map(([name, { url }]) => named(name, url));
  const { url, keyFile } = await context.target();
  const id = hash('sha256', `${url}\n${keyFile}\n${source}`).slice(0, 32);
  const path = join(cacheDirectory(env), 'completion', `${id}.json`);
  const cached = await read(path);
  if (cached !== null && Math.abs(now() - cached.at) < freshSecs) return cached.candidates;
  const request = (async () => {
    const { call, session } = await context.connect();
    // Does not sign in for a completion, because the key may require a touch and the audit log records each sign-in.
    if (!(await session.isOpen())) return null;
    const candidates = (await (asks[source]?.(call) ?? namesOf(call, source))).filter(({ value }) =>
      /^[^-]/.test(value),
    );
    await writePrivateFile(path, JSON.stringify({ at: now(), candidates } satisfies CachedCandidates));
    return candidates;
  })();
  const late = new Promise<null>((resolve) => setTimeout(resolve, limitMs, null).unref());
  return (await Promise.race([request, late]).catch(() => null)) ?? cached?.candidates ?? [];
}
