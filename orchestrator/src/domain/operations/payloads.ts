import {
  fillSecrets,
  fillVerifications,
  type ResolvedResource,
  SecretBudget,
  secretNames,
} from '@muster/protocol/module';
import type { Verification } from '@muster/protocol/wire';
import { fromJson } from '../../store/json-text.ts';
import { agentById } from '../../store/queries/agents/agents.ts';
import { payloadByDigest, payloadSeen, putPayload } from '../../store/queries/operations/payloads.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import type { EncodedPayload, Payload } from '../modules/desired-set.ts';
import { type SentSecret, secretValues } from '../secrets/secret-access.ts';
import type { Context } from '../shared/context.ts';

/**
 * Returns the statements that store a payload, for the transaction that writes its operation. An existing payload is
 * kept: the statement reads it, so that PostgreSQL aborts either this transaction or a concurrent one that deletes the
 * payload.
 */
export const keepPayload = ({ digest, text }: EncodedPayload): Statement[] => [
  statement(putPayload, { digest, payload: text }),
  statement(payloadSeen, { digest }, { expect: 'row', else: 'storage_unavailable' }),
];

/**
 * Caches resolved desired states, because a run sends the same desired state to thousands of agents. They contain no
 * secrets; dispatch adds the secrets for each agent.
 */
export interface Payloads {
  /** Returns the payload to send to the agent, or the reason why it cannot be sent. */
  load(digest: string | null, nodeId: string): Promise<Loaded>;
  /** Returns the names of the secrets that a payload uses; an empty list if the payload is no longer stored. */
  secretsOf(digest: string): Promise<readonly string[]>;
  /** Returns the desired state without secret values; null if it is no longer stored. */
  setOf(digest: string): Promise<Payload | null>;
}

export type Loaded =
  | {
      ok: true;
      resources: ResolvedResource[];
      keep_modules: string[];
      verify: Verification[];
      secrets: readonly SentSecret[];
    }
  | { ok: false; error: string };

interface CacheEntry {
  payload: Payload;
  secrets: { used: string[]; required: string[] };
  /** The payload if it is the same for every agent; null if the payload contains secrets. */
  common: Loaded | null;
  length: number;
}

/** Maximum number of characters of JSON in the cache. A larger payload is read and parsed again for each agent. */
const maxCacheLength = 32 * 1024 * 1024;
const nothing: Loaded = { ok: true, resources: [], keep_modules: [], verify: [], secrets: [] };

export function createPayloads(context: Pick<Context, 'db' | 'secretKeys' | 'now'>): Payloads {
  const { db } = context;
  const cache = new Map<string, CacheEntry>();
  let length = 0;

  async function find(digest: string): Promise<CacheEntry | null> {
    const known = cache.get(digest);
    if (known) return known;
    const row = await db.get(payloadByDigest, { digest });
    if (!row) return null;
    const payload = fromJson(row.payload) as Payload;
    const secrets = secretNames([...payload.resources, ...(payload.verify ?? [])]);
    const common = secrets.used.length === 0 ? fill(payload, new Map(), []) : null;
    const found = { payload, secrets, common, length: row.payload.length };
    if (cache.has(digest)) return found;
    for (const [oldest, entry] of cache) {
      if (length + found.length <= maxCacheLength) break;
      cache.delete(oldest);
      length -= entry.length;
    }
    if (length + found.length <= maxCacheLength) {
      cache.set(digest, found);
      length += found.length;
    }
    return found;
  }

  return {
    async load(digest, nodeId) {
      if (digest === null) return nothing;
      const found = await find(digest);
      if (!found) return { ok: false, error: 'the desired state is no longer stored; request the operation again' };
      const { payload, secrets, common } = found;
      if (common !== null) return common;
      const agent = await db.get(agentById, { node_id: nodeId });
      if (!agent) return { ok: false, error: 'the agent was removed' };
      const labels = { node_id: nodeId, tags: fromJson(agent.tags), attributes: fromJson(agent.attributes) };
      const { values, denied, sent } = await secretValues(context, secrets.used, labels);
      const refused = secrets.required.flatMap((name) => denied.get(name) ?? []);
      if (refused.length > 0) return { ok: false, error: refused.join('; ') };
      return fill(payload, values, sent);
    },
    secretsOf: async (digest) => (await find(digest))?.secrets.used ?? [],
    setOf: async (digest) => (await find(digest))?.payload ?? null,
  };
}

function fill(payload: Payload, values: ReadonlyMap<string, string>, secrets: readonly SentSecret[]): Loaded {
  const budget = new SecretBudget();
  const filled = fillSecrets(payload.resources, (name) => values.get(name), budget);
  const verify = fillVerifications(payload.verify ?? [], (name) => values.get(name), budget);
  if (filled.ok && verify.ok)
    return {
      ok: true,
      resources: filled.resources,
      keep_modules: payload.keep_modules,
      verify: verify.verify,
      secrets,
    };
  const faults = [filled, verify].flatMap((part) => (part.ok ? [] : part.faults));
  return { ok: false, error: faults.map(({ message }) => message).join('; ') };
}
