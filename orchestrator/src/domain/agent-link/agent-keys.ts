import { verify } from 'node:crypto';
import {
  type Hello,
  type KeyStatement,
  keyStatementBytes,
  keyStatementFault,
  keyStatementLimits,
} from '@muster/protocol/wire';
import { idOfRawKey, isUsablePublicKey, publicKeyFromRaw } from '../../identity/ed25519-key.ts';
import {
  agentKey,
  agentKeyBeyond,
  agentKeysAmong,
  agentKeyUnchanged,
  endAgentKey,
  insertAgentKey,
  insertFormerAgentKey,
  shortenAgentKeys,
} from '../../store/queries/agents/agent-keys.ts';
import { agentById, approvedAgent } from '../../store/queries/agents/agents.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { type Context, seconds } from '../shared/context.ts';
import type { Refusal } from './refusal.ts';

/** Determines which agent owns the key that a hello proved, and handles key succession. */

/** An agent's key, and its validity when it was read. */
export interface KeyOf {
  node_id: string;
  /** When the key expires, in Unix seconds; null for the current key and for the key of an unrecorded agent. */
  valid_until: number | null;
  /** The succession to commit if this key replaces the current one; null otherwise. */
  succession: Succession | null;
}

export interface Succession {
  /** The recorded current key, which becomes the previous key; hex. */
  former_key: string;
  /** When the previous key expires, Unix seconds. */
  former_until: number;
  /** Unrecorded keys between the previous key and the new key. The new key replaces them too. */
  between: readonly { public_key: string; valid_until: number }[];
}

export interface OwnKey {
  node_id: string;
  valid_until: number | null;
}

/** A recorded key that a succession statement names, with its agent. */
export interface StoredKey extends OwnKey {
  status: 'pending' | 'approved' | 'rejected';
  first_seen_at: number;
  last_seen_at: number;
}

export interface KnownKeys {
  /** The key in the hello; undefined if it is not recorded. */
  own: OwnKey | undefined;
  /** Recorded keys that the hello's statements name, by hex. Empty if `own` is defined. */
  formers: ReadonlyMap<string, StoredKey>;
  /** Whether an agent already has the id that derives from this key. */
  idTaken: boolean;
}

type Shown = Pick<Hello, 'public_key' | 'key_statement' | 'earlier_statements'>;

const retrySecs = 600;
const replaced = (node_id: string, message: string): { refusal: Refusal; node_id: string } => ({
  refusal: { code: 'key_replaced', message, retry_after_secs: retrySecs },
  node_id,
});
const refused = (
  node_id: string,
  why: string,
  code: 'key_refused' | 'key_unknown' = 'key_refused',
): { refusal: Refusal; node_id: string } => ({
  refusal: { code, message: `the orchestrator refuses the new key: ${why}`, retry_after_secs: null },
  node_id,
});

/**
 * Determines which agent owns the key in a hello.
 * @param now Unix seconds
 * @returns the key with its owner, or a refusal with the id of the agent that owns the key or is named by its
 * statements
 */
export function judgeKey(
  shown: Shown,
  { own, formers, idTaken }: KnownKeys,
  now: number,
): KeyOf | { refusal: Refusal; node_id: string } {
  const { public_key } = shown;
  if (own !== undefined) {
    const { node_id, valid_until } = own;
    if (valid_until !== null && valid_until <= now)
      return replaced(node_id, 'a newer key has replaced this key, which is no longer valid');
    return { node_id, valid_until, succession: null };
  }
  const firstId = idOfRawKey(Buffer.from(public_key, 'hex'));
  // The agent no longer has its first key, so statements about that key have no effect.
  if (idTaken) return replaced(firstId, 'a newer key has replaced this key');
  const statements = statementsOf(shown);
  if (statements.length === 0) return { node_id: firstId, valid_until: null, succession: null };
  const followed = follow(public_key, statements, formers);
  if (followed === 'unsigned') return refused(firstId, 'the key statement is not signed by the previous key');
  // The signing key belongs to another orchestrator, or to a removed agent. On `key_unknown`, the agent tries its
  // other keys, or enrolls as a new agent.
  if (followed === 'unknown')
    return refused(firstId, 'the orchestrator does not know the key that signed the key statement', 'key_unknown');
  const { former, said } = followed;
  const { node_id } = former;
  const first = said.at(-1)!;
  // The agent was removed and enrolled again under an earlier key, for example after its disk was restored.
  if (first.madeAt + keyStatementLimits.clockSkewSecs < former.first_seen_at)
    return refused(node_id, 'the key statement is older than the agent’s enrollment', 'key_unknown');
  // Compares only the first statement with the last use of its key. For unrecorded keys, the last use is unknown.
  const fault =
    keyStatementFault(first, now, former.last_seen_at) ??
    said
      .slice(0, -1)
      .map((each) => keyStatementFault(each, now, 0))
      .find((each) => each !== null);
  if (fault != null) return refused(node_id, fault);
  if (former.valid_until !== null) return refused(node_id, 'the key that signed the key statement has been replaced');
  // Admission refuses a rejected agent under each of its keys, so the agent's key is not replaced.
  if (former.status === 'rejected') return { node_id, valid_until: null, succession: null };
  if (former.status === 'pending') return refused(node_id, 'this agent cannot change its key before it is approved');
  return { node_id, valid_until: null, succession: successionBy(said, formers, now) };
}

const statementsOf = ({ key_statement, earlier_statements }: Shown): ShownStatement[] =>
  key_statement === undefined ? [] : [key_statement, ...(earlier_statements ?? [])];

/**
 * Follows the statements, newest first, to a recorded key. Continues past the key of an unapproved agent, because
 * anyone with a replaced key could have enrolled that agent. Verifies each signature before using the statement,
 * because a client without the key could otherwise impersonate the agent that a statement names, or learn whether that
 * agent exists.
 * @returns the recorded key, and the statements from the hello's key to that key, newest first
 */
function follow(
  public_key: string,
  statements: readonly ShownStatement[],
  formers: KnownKeys['formers'],
): { former: StoredKey; said: KeyStatement[] } | 'unsigned' | 'unknown' {
  const said: KeyStatement[] = [];
  let waiting: { former: StoredKey; said: KeyStatement[] } | null = null;
  const passed = new Set<string>();
  let key = public_key;
  for (const shown of statements) {
    if (!isSaid(key, shown)) return waiting ?? 'unsigned';
    said.push(saidBy(key, shown));
    passed.add(key);
    key = shown.former_key;
    // The statements form a cycle, so one of them is forged.
    if (passed.has(key)) break;
    const former = formers.get(key);
    if (former?.status === 'approved') return { former, said };
    if (former !== undefined) waiting ??= { former, said: [...said] };
  }
  return waiting ?? 'unknown';
}

/**
 * Returns the succession that the statements describe.
 * @param said statements from the new key to the recorded current key, newest first
 */
function successionBy(said: readonly KeyStatement[], formers: KnownKeys['formers'], now: number): Succession {
  let until = Number.POSITIVE_INFINITY;
  const ended = said.map(({ formerKey, madeAt, formerUntil }) => {
    // Converts times to this clock. A key is valid at most as long as its own statement and all newer statements allow.
    until = Math.min(until, Math.max(now, Math.min(formerUntil, now + (formerUntil - madeAt))));
    return { public_key: Buffer.from(formerKey).toString('hex'), valid_until: until };
  });
  const { public_key: former_key, valid_until: former_until } = ended.pop()!;
  return { former_key, former_until, between: ended.filter(({ public_key }) => !formers.has(public_key)) };
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
    // The key is not a valid curve point.
    return false;
  }
}

export async function keyOf(context: Context, hello: Shown): Promise<ReturnType<typeof judgeKey>> {
  const { db } = context;
  const { public_key } = hello;
  const now = seconds(context.now());
  const own = await db.get(agentKey, { public_key });
  if (own !== undefined) return judgeKey(hello, { own, formers: new Map(), idTaken: false }, now);
  const named = statementsOf(hello).map(({ former_key }) => former_key);
  const rows = named.length === 0 ? [] : await db.all(agentKeysAmong, { public_keys: named });
  const formers = new Map(rows.map((row) => [row.public_key, row]));
  const idTaken = (await db.get(agentById, { node_id: idOfRawKey(Buffer.from(public_key, 'hex')) })) !== undefined;
  return judgeKey(hello, { own, formers, idTaken }, now);
}

/** Maximum number of keys per agent over its lifetime. Previous keys are never deleted. */
const maxKeys = 1024;

/** Returns a statement that fails the transaction if the key's owner or validity has changed since the key was read. */
export const unlessKeyChanged = (publicKey: string, { node_id, valid_until }: KeyOf): Statement =>
  statement(
    agentKeyUnchanged,
    { public_key: publicKey, node_id, valid_until: valid_until ?? 0 },
    { expect: 'row', else: 'agent_changed' },
  );

/**
 * Returns the statements that replace the current key and record an audit event.
 * @param label agent name for the audit event
 * @param ip remote address that sent the hello
 */
export function successionStatements(
  context: Context,
  publicKey: string,
  { node_id }: KeyOf,
  { former_key, former_until, between }: Succession,
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
    ...between.map((former) => statement(insertFormerAgentKey, { ...former, node_id })),
    statement(insertAgentKey, { public_key: publicKey, node_id }),
    statement(
      agentKeyBeyond,
      { node_id, capacity: maxKeys },
      {
        expect: 'no_row',
        else: 'invalid_input',
        detail: `the agent’s key was already changed ${maxKeys - 1} times, the maximum`,
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
