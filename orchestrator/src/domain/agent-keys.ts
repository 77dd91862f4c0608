import { verify } from 'node:crypto';
import {
  type Hello,
  type KeyStatement,
  keyStatementBytes,
  keyStatementFault,
  keyStatementLimits,
} from '@muster/protocol/wire';
import { idOfRawKey, isUsablePublicKey, publicKeyFromRaw } from '../identity/ed25519-key.ts';
import {
  agentKey,
  agentKeyBeyond,
  agentKeyStands,
  endAgentKey,
  insertAgentKey,
  shortenAgentKeys,
} from '../store/agent-keys.ts';
import { agentById, approvedAgent } from '../store/agents.ts';
import { type Statement, statement } from '../store/unit.ts';
import type { Refusal } from './agent-link.ts';
import { audited } from './audit.ts';
import { type Context, seconds } from './context.ts';

/** Whose key it is that a hello proved, and how an agent's key gives its place to another. */

/** A key that may speak for an agent, as it was when it was read. */
export interface KeyOf {
  node_id: string;
  /** Until when it is good, Unix seconds; null: it is the current one, or that of an agent nobody knows yet. */
  valid_until: number | null;
  /** It is to take the place of the current one. */
  succession: Succession | null;
}

export interface Succession {
  former_key: string;
  /** Until when that is still good. */
  former_until: number;
}

/** A key on record, and the agent it is of. */
export interface KeptKey {
  node_id: string;
  valid_until: number | null;
  status: 'pending' | 'approved' | 'rejected';
  /** When the agent was put on record, Unix seconds. */
  first_seen_at: number;
}

/** What is on record for a hello. */
export interface KnownKeys {
  /** The key of the hello. */
  own: KeptKey | undefined;
  /** The key that its statement names, looked for only where its own is not known. */
  former: KeptKey | undefined;
  /** An agent has the id that the key would have if it were a first one. */
  idTaken: boolean;
}

type Shown = Pick<Hello, 'public_key' | 'key_statement'>;

const retrySecs = 600;
const replaced = (node_id: string, message: string): { refusal: Refusal; node_id: string } => ({
  refusal: { code: 'key_replaced', message, retry_after_secs: retrySecs },
  node_id,
});
const refused = (node_id: string, why: string): { refusal: Refusal; node_id: string } => ({
  refusal: { code: 'key_refused', message: `the new key is not taken: ${why}`, retry_after_secs: null },
  node_id,
});

/**
 * Whose key it is, given what is on record.
 * @param now Unix seconds
 * @returns the refusal with the agent whose key it is, or that it claims to follow
 */
export function judgeKey(
  { public_key, key_statement: shown }: Shown,
  { own, former, idTaken }: KnownKeys,
  now: number,
): KeyOf | { refusal: Refusal; node_id: string } {
  if (own !== undefined) {
    const { node_id, valid_until } = own;
    if (valid_until !== null && valid_until <= now)
      return replaced(node_id, 'another key has taken the place of this one, and it is good no more');
    return { node_id, valid_until, succession: null };
  }
  const firstId = idOfRawKey(Buffer.from(public_key, 'hex'));
  // Whatever is said of a key that is not known, it was the first of this agent and is not on its record.
  if (idTaken) return replaced(firstId, 'another key has taken the place of this one');
  if (shown === undefined) return { node_id: firstId, valid_until: null, succession: null };
  // Before anything is said of the key that it names: nobody else speaks for the agent of that, or hears whether there is one.
  if (!isSaid(public_key, shown)) return refused(firstId, 'the former key has not signed it');
  // Of another orchestrator, or of an agent that was removed. It may have another key that is known here; if it has none, it
  // comes without the statement, as a new agent.
  if (former === undefined) return refused(firstId, 'the key that signed it is not known here');
  const { node_id } = former;
  const fault = keyStatementFault(saidBy(public_key, shown), now);
  if (fault !== null) return refused(node_id, fault);
  if (former.valid_until !== null)
    return refused(node_id, 'the key that signed it had been replaced itself, and cannot name another');
  // The agent was removed since, and let in anew under an earlier key, as after its disk was put back.
  if (shown.made_at + keyStatementLimits.clockSkewSecs < former.first_seen_at)
    return refused(node_id, 'it was made before this agent was let in');
  // It is told so under any of its keys, and keeps both.
  if (former.status === 'rejected') return { node_id, valid_until: null, succession: null };
  if (former.status === 'pending')
    return refused(node_id, 'this agent waits for approval, and keeps its key until then');
  const grace = shown.former_until - shown.made_at;
  return {
    node_id,
    valid_until: null,
    // By our clock, and no longer than was said.
    succession: {
      former_key: shown.former_key,
      former_until: Math.max(now, Math.min(shown.former_until, now + grace)),
    },
  };
}

type ShownStatement = NonNullable<Shown['key_statement']>;

const saidBy = (public_key: string, { former_key, made_at, former_until }: ShownStatement): KeyStatement => ({
  formerKey: Buffer.from(former_key, 'hex'),
  key: Buffer.from(public_key, 'hex'),
  madeAt: made_at,
  formerUntil: former_until,
});

function isSaid(public_key: string, shown: ShownStatement): boolean {
  const said = saidBy(public_key, shown);
  return isUsablePublicKey(said.formerKey) && isSigned(said.formerKey, keyStatementBytes(said), shown.signature);
}

function isSigned(key: Uint8Array, bytes: Uint8Array, signature: string): boolean {
  try {
    return verify(null, bytes, publicKeyFromRaw(key), Buffer.from(signature, 'hex'));
  } catch {
    // A key that is not a point of the curve.
    return false;
  }
}

/** {@link judgeKey} by what the database has. */
export async function keyOf(context: Context, hello: Shown): Promise<ReturnType<typeof judgeKey>> {
  const { db } = context;
  const { public_key, key_statement } = hello;
  const own = await db.get(agentKey, { public_key });
  const isKnown = own !== undefined;
  const former =
    isKnown || key_statement === undefined
      ? undefined
      : await db.get(agentKey, { public_key: key_statement.former_key });
  const idTaken =
    !isKnown && (await db.get(agentById, { node_id: idOfRawKey(Buffer.from(public_key, 'hex')) })) !== undefined;
  return judgeKey(hello, { own, former, idTaken }, seconds(context.now()));
}

/** An agent has no more keys than this in all its life: former ones stay on record. */
const mostKeys = 1024;

/** For a unit: it stands only while the key is what it was taken for. */
export const keyStands = (publicKey: string, { node_id, valid_until }: KeyOf): Statement =>
  statement(
    agentKeyStands,
    { public_key: publicKey, node_id, valid_until: valid_until ?? 0 },
    { expect: 'row', else: 'agent_changed' },
  );

/**
 * The statements that put a key in the place of the current one, with what is said of it.
 * @param label the agent's name
 * @param ip    where it was shown from
 */
export function successionStatements(
  context: Context,
  publicKey: string,
  { node_id }: KeyOf,
  { former_key, former_until }: Succession,
  { label, ip }: { label: string; ip: string },
): Statement[] {
  const agent = { type: 'agent', id: node_id, name: label } as const;
  return [
    statement(approvedAgent, { node_id }, { expect: 'row', else: 'agent_changed' }),
    statement(
      endAgentKey,
      { public_key: former_key, node_id, valid_until: former_until },
      { expect: 'changed', else: 'agent_changed' },
    ),
    statement(shortenAgentKeys, { node_id, valid_until: former_until }),
    statement(insertAgentKey, { public_key: publicKey, node_id }),
    statement(
      agentKeyBeyond,
      { node_id, capacity: mostKeys },
      {
        expect: 'no_row',
        else: 'invalid_input',
        detail: `its key was changed ${mostKeys - 1} times, which is the most`,
      },
    ),
    audited(context, {
      type: 'agent.key_rotated',
      actor: agent,
      target: agent,
      summary: `agent ${label} has a new key`,
      metadata: { key: publicKey, former_key, former_until, ip },
    }),
  ];
}
