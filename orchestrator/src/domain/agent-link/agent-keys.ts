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
  agentKeyStands,
  agentKeysAmong,
  endAgentKey,
  insertAgentKey,
  insertFormerAgentKey,
  shortenAgentKeys,
} from '../../store/queries/agent-keys.ts';
import { agentById, approvedAgent } from '../../store/queries/agents.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { type Context, seconds } from '../shared/context.ts';
import type { Refusal } from './refusal.ts';

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
  /** The current key on record. */
  former_key: string;
  /** Until when that is still good. */
  former_until: number;
  /** Keys that came after it and were replaced as well, none of them on record. */
  between: readonly { public_key: string; valid_until: number }[];
}

/** A key on record. */
export interface OwnKey {
  node_id: string;
  valid_until: number | null;
}

/** A key that a statement names, and the agent that it is of. */
export interface KeptKey extends OwnKey {
  status: 'pending' | 'approved' | 'rejected';
  /** When the agent was put on record, Unix seconds. */
  first_seen_at: number;
  /** When it was last heard, Unix seconds. */
  last_seen_at: number;
}

/** What is on record for a hello. */
export interface KnownKeys {
  /** The key of the hello. */
  own: OwnKey | undefined;
  /** The keys that its statements name, as far as they are on record, by hex; looked for only where its own is not known. */
  formers: ReadonlyMap<string, KeptKey>;
  /** An agent has the id that the key would have if it were a first one. */
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
  refusal: { code, message: `the new key is not taken: ${why}`, retry_after_secs: null },
  node_id,
});

/**
 * Whose key it is, given what is on record.
 * @param now Unix seconds
 * @returns the refusal with the agent whose key it is, or that it claims to follow
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
      return replaced(node_id, 'another key has taken the place of this one, and it is good no more');
    return { node_id, valid_until, succession: null };
  }
  const firstId = idOfRawKey(Buffer.from(public_key, 'hex'));
  // Whatever is said of a key that is not known, it was the first of this agent and is not on its record.
  if (idTaken) return replaced(firstId, 'another key has taken the place of this one');
  const statements = statementsOf(shown);
  if (statements.length === 0) return { node_id: firstId, valid_until: null, succession: null };
  const followed = follow(public_key, statements, formers);
  if (followed === 'unsigned') return refused(firstId, 'the former key has not signed it');
  // Of another orchestrator, or of an agent that was removed. It may have another key that is known here; if it has none, it
  // comes without the statement, as a new agent.
  if (followed === 'unknown') return refused(firstId, 'the key that signed it is not known here', 'key_unknown');
  const { former, said } = followed;
  const { node_id } = former;
  const first = said.at(-1)!;
  // The agent was removed since, and let in anew under an earlier key, as after its disk was put back.
  if (first.madeAt + keyStatementLimits.clockSkewSecs < former.first_seen_at)
    return refused(node_id, 'it was made before this agent was let in', 'key_unknown');
  // What keys say that are not known here has no age: nothing is known of when they were last used.
  const fault =
    keyStatementFault(first, now, former.last_seen_at) ??
    said
      .slice(0, -1)
      .map((each) => keyStatementFault(each, now, 0))
      .find((each) => each !== null);
  if (fault != null) return refused(node_id, fault);
  if (former.valid_until !== null)
    return refused(node_id, 'the key that signed it had been replaced itself, and cannot name another');
  // It is told so under any of its keys, and keeps both.
  if (former.status === 'rejected') return { node_id, valid_until: null, succession: null };
  if (former.status === 'pending')
    return refused(node_id, 'this agent waits for approval, and keeps its key until then');
  return { node_id, valid_until: null, succession: successionBy(said, formers, now) };
}

/** @returns all statements of a hello, newest first */
const statementsOf = ({ key_statement, earlier_statements }: Shown): ShownStatement[] =>
  key_statement === undefined ? [] : [key_statement, ...(earlier_statements ?? [])];

/**
 * Goes from statement to statement, newest first, to a key on record; past one of an agent that is not approved, since
 * anybody can have that who has a copy of a key that was replaced. No statement is believed, or answered for, before its
 * signature is checked: nobody else speaks for the agent of the key that it names, or hears whether there is one.
 * @returns the key, and the statements up to its own, newest first
 */
function follow(
  public_key: string,
  statements: readonly ShownStatement[],
  formers: KnownKeys['formers'],
): { former: KeptKey; said: KeyStatement[] } | 'unsigned' | 'unknown' {
  const said: KeyStatement[] = [];
  let waiting: { former: KeptKey; said: KeyStatement[] } | null = null;
  const passed = new Set<string>();
  let key = public_key;
  for (const shown of statements) {
    if (!isSaid(key, shown)) return waiting ?? 'unsigned';
    said.push(saidBy(key, shown));
    passed.add(key);
    key = shown.former_key;
    // Keys that name each other in a circle are made up.
    if (passed.has(key)) break;
    const former = formers.get(key);
    if (former?.status === 'approved') return { former, said };
    if (former !== undefined) waiting ??= { former, said: [...said] };
  }
  return waiting ?? 'unknown';
}

/** @param said from the new key to the current one on record, newest first */
function successionBy(said: readonly KeyStatement[], formers: KnownKeys['formers'], now: number): Succession {
  let until = Number.POSITIVE_INFINITY;
  const ended = said.map(({ formerKey, madeAt, formerUntil }) => {
    // By our clock, no longer than was said, and no longer than any later statement lets a former key be good.
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
    // A key that is not a point of the curve.
    return false;
  }
}

/** {@link judgeKey} by what the database has. */
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
