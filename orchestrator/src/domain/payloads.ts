import { fillSecrets, type ResolvedResource } from '@muster/protocol/module';
import { fromJson } from '../store/json-text.ts';
import { payloadByDigest } from '../store/operations.ts';
import type { Context } from './context.ts';
import type { Payload } from './desired-set.ts';

/** Resolved desired sets ready to be sent. A fan-out sends the same one to thousands of agents: it is read once. */
export interface Payloads {
  /** @returns what the agent is sent, or why it cannot be */
  load(digest: string | null): Promise<Loaded>;
}

export type Loaded = { ok: true; resources: ResolvedResource[]; keep_modules: string[] } | { ok: false; error: string };

/** Characters of JSON that are kept parsed; what is larger than that is read for each agent. */
const keptLength = 32 * 1024 * 1024;
const nothing: Loaded = { ok: true, resources: [], keep_modules: [] };

export function createPayloads({ db }: Pick<Context, 'db'>): Payloads {
  const kept = new Map<string, { loaded: Loaded; length: number }>();
  let length = 0;
  return {
    async load(digest) {
      if (digest === null) return nothing;
      const known = kept.get(digest);
      if (known) return known.loaded;
      const row = await db.get(payloadByDigest, { digest });
      if (!row) throw new Error(`the payload ${digest} is not there`);
      const payload = fromJson(row.payload) as Payload;
      const filled = fillSecrets(payload.resources, () => undefined);
      const loaded: Loaded = filled.ok
        ? { ok: true, resources: filled.resources, keep_modules: payload.keep_modules }
        : { ok: false, error: filled.faults.map(({ message }) => message).join('; ') };
      // One with secrets is not kept: the next agent may not be allowed what this one is.
      if (payload.resources.some(({ deferred }) => deferred.length > 0)) return loaded;
      for (const [oldest, entry] of kept) {
        if (length + row.payload.length <= keptLength) break;
        kept.delete(oldest);
        length -= entry.length;
      }
      if (length + row.payload.length <= keptLength) {
        kept.set(digest, { loaded, length: row.payload.length });
        length += row.payload.length;
      }
      return loaded;
    },
  };
}
