import { type Fault, MusterError } from '@muster/protocol';
import type { Agent, SecretRestriction } from '@muster/protocol/http';
import { secretNames } from '@muster/protocol/module';
import { isEmpty as isEmptySelector, matchesSelector, parseSelector } from '@muster/protocol/selector';
import { fromJson, type JsonText } from '../../store/json-text.ts';
import { sealedSecrets, secretTerms } from '../../store/queries/secrets.ts';
import type { Payload } from '../modules/desired-set.ts';
import type { Context } from '../shared/context.ts';
import { openValue, type SealedFor } from './secret-seal.ts';

/** Decides which agents may have which secrets, and reads values at dispatch. */

type Holder = Pick<Agent, 'node_id' | 'tags' | 'attributes'>;

/**
 * Reports whether a restriction allows an agent. A null restriction allows any agent. Otherwise, every part that is
 * set must match. An empty part matches no agent.
 */
function mayHave(restriction: SecretRestriction | null, agent: Holder): boolean {
  if (restriction === null) return true;
  const { node_ids, tags } = restriction;
  if (node_ids !== null && !node_ids.includes(agent.node_id)) return false;
  if (tags === null) return true;
  const parsed = parseSelector(tags);
  return parsed.ok && !isEmptySelector(parsed.selector) && matchesSelector(parsed.selector, agent);
}

interface Terms {
  key_id: string;
  expires_at_ms: number | null;
  restriction: JsonText<SecretRestriction> | null;
}

/** Returns the reason why an agent cannot have a secret now; null if it can. */
function denial(
  { secretKeys, now }: Pick<Context, 'secretKeys' | 'now'>,
  name: string,
  terms: Terms | undefined,
  agent: Holder,
): string | null {
  if (terms === undefined) return `there is no secret "${name}"`;
  if (terms.expires_at_ms !== null && terms.expires_at_ms <= now())
    return `the secret "${name}" expired at ${new Date(terms.expires_at_ms).toISOString()}`;
  if (!mayHave(fromJson(terms.restriction), agent)) return `the secret "${name}" is not allowed for this agent`;
  if (secretKeys.find(terms.key_id) === null) return lost(name);
  return null;
}

const lost = (name: string): string =>
  `the secret "${name}" cannot be decrypted: the key that encrypted it is not in the key file or the configuration`;

/** Checks the secrets in payloads for one request or wave. Reads each secret only once. */
export interface SecretAccess {
  /**
   * Checks that an agent may have the secrets in a payload.
   * @returns the version of each secret by name; 0 if a default is used. Versions are never reused, not even by a new
   * secret with the same name, so equal versions mean equal values
   * @throws MusterError module_unresolved, naming each required secret that is missing, expired, or not allowed for
   * the agent
   */
  allow(payload: Payload, agent: Holder): Promise<Record<string, number>>;
}

export function createSecretAccess(context: Pick<Context, 'db' | 'secretKeys' | 'now'>): SecretAccess {
  const known = new Map<string, (Terms & { version: number }) | undefined>();
  const names = new WeakMap<Payload, ReturnType<typeof secretNames>>();
  const namesIn = (payload: Payload) => {
    const found = names.get(payload) ?? secretNames([...payload.resources, ...(payload.verify ?? [])]);
    names.set(payload, found);
    return found;
  };
  return {
    async allow(payload, agent) {
      const { used, required } = namesIn(payload);
      const missing = used.filter((name) => !known.has(name));
      if (missing.length > 0) {
        for (const name of missing) known.set(name, undefined);
        for (const row of await context.db.all(secretTerms, { names: missing })) known.set(row.name, row);
      }
      const denied = new Map(used.map((name) => [name, denial(context, name, known.get(name), agent)]));
      const faults: Fault[] = required.flatMap((name) => {
        const message = denied.get(name) ?? null;
        return message === null ? [] : [{ path: `/secrets/${name}`, message }];
      });
      if (faults.length > 0)
        throw new MusterError('module_unresolved', faults.map(({ message }) => message).join('; '), faults);
      return Object.fromEntries(
        used.map((name) => [name, denied.get(name) === null ? (known.get(name)?.version ?? 0) : 0]),
      );
    },
  };
}

/** An encrypted value that was sent to an agent. Used to recognize the value in the agent's reports. */
export interface SentSecret extends SealedFor {
  readonly key_id: string;
  readonly sealed: string;
}

export interface SecretValues {
  values: ReadonlyMap<string, string>;
  /** The reason for each secret that the agent cannot have, by name. */
  denied: ReadonlyMap<string, string>;
  sent: SentSecret[];
}

/**
 * Returns the current values of secrets for a single message to an agent. The values are never stored.
 * @param names the secrets that a payload uses
 */
export async function secretValues(
  context: Pick<Context, 'db' | 'secretKeys' | 'now'>,
  names: readonly string[],
  agent: Holder,
): Promise<SecretValues> {
  const rows = await context.db.all(sealedSecrets, { names: [...names] });
  const byName = new Map(rows.map((row) => [row.name, row]));
  const values = new Map<string, string>();
  const denied = new Map<string, string>();
  const sent: SentSecret[] = [];
  for (const name of names) {
    const row = byName.get(name);
    const reason = denial(context, name, row, agent);
    if (reason !== null || row === undefined) {
      denied.set(name, reason ?? '');
      continue;
    }
    const value = openSent(context, row);
    if (value === null) {
      denied.set(name, `the secret "${name}" cannot be decrypted: its stored value was altered; set it again`);
      continue;
    }
    values.set(name, value);
    sent.push({ name, version: row.version, key_id: row.key_id, sealed: row.sealed });
  }
  return { values, denied, sent };
}

/** Decrypts a secret that was sent to an agent. Returns null if its key is missing. */
export function openSent({ secretKeys }: Pick<Context, 'secretKeys'>, secret: SentSecret): string | null {
  const key = secretKeys.find(secret.key_id);
  return key === null ? null : openValue(key, secret, secret.sealed);
}
