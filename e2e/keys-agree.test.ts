import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type AgentKey, hexOf } from '../agent/src/connection/agent-key.ts';
import { type AgentKeys, loadAgentIdentity } from '../agent/src/connection/identity.ts';
import { makeNextKey } from '../agent/src/connection/next-key.ts';
import { judgeKey, type KeyOf, type StoredKey } from '../orchestrator/src/domain/agent-link/agent-keys.ts';

type Rows = ReadonlyMap<string, Readonly<StoredKey>>;

/** The orchestrator's records of agent keys, with the same rules as its database transaction. */
class Table {
  rows: Rows;

  constructor(rows: Rows) {
    this.rows = rows;
  }

  judge(hello: Parameters<typeof judgeKey>[0], now: number) {
    return judgeKey(hello, { own: this.rows.get(hello.public_key), formers: this.rows, idTaken: false }, now);
  }

  commit(key: string, { node_id, succession }: KeyOf, now: number): void {
    const rows = new Map(this.rows);
    if (succession !== null) {
      const { former_key, former_until, between } = succession;
      const former = rows.get(former_key)!;
      for (const [each, row] of rows)
        if (row.node_id === node_id)
          rows.set(each, { ...row, valid_until: Math.min(row.valid_until ?? Number.MAX_SAFE_INTEGER, former_until) });
      for (const { public_key, valid_until } of between) rows.set(public_key, { ...former, valid_until });
      rows.set(key, { ...former, valid_until: null });
    } else if (!rows.has(key))
      rows.set(key, { node_id, valid_until: null, status: 'pending', first_seen_at: now, last_seen_at: now });
    for (const [each, row] of rows) if (row.node_id === node_id) rows.set(each, { ...row, last_seen_at: now });
    this.rows = rows;
  }

  /** Returns how many of the agent's keys do not expire. */
  current(nodeId: string): number {
    return [...this.rows.values()].filter((row) => row.node_id === nodeId && row.valid_until === null).length;
  }
}

const day = 86_400;
/**
 * Outcome of a hello: the hello is lost; the orchestrator commits it but the reply is lost; the agent receives the
 * reply; or the agent receives the reply and is killed after this number of file writes.
 */
type Reach = 'lost' | 'unanswered' | 'whole' | 0 | 1 | 2;
type Step =
  | { do: 'make'; grace: number }
  | { do: 'hello'; reach: Reach }
  | { do: 'wait'; secs: number }
  | { do: 'backup' }
  /** `back` is the index of the backup, starting with 0 for the newest. */
  | { do: 'restore'; back: number }
  /** An attacker copies the agent's data directory. */
  | { do: 'steal' }
  /**
   * The attacker connects with a copy, possibly without key statements. `back` is the index of the copy, starting with
   * 0 for the newest.
   */
  | { do: 'intrude'; back: number; withoutStatements: boolean };

const reach = fc.constantFrom<Reach>('lost', 'unanswered', 0, 1, 2, 'whole');
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('make' as const), grace: fc.constantFrom(0, 60, day, 30 * day) }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant('hello' as const), reach }) },
  fc.record({ do: fc.constant('wait' as const), secs: fc.constantFrom(1, 3600, day, 31 * day, 400 * day) }),
  fc.record({ do: fc.constant('backup' as const) }),
  fc.record({ do: fc.constant('restore' as const), back: fc.nat(3) }),
  fc.record({ do: fc.constant('steal' as const) }),
  fc.record({ do: fc.constant('intrude' as const), back: fc.nat(3), withoutStatements: fc.boolean() }),
);

/**
 * Executes the steps and verifies that the agent keeps its identity after each of them, even if messages are lost and
 * backups restored. Once the agent has connected with a key, a copy of an earlier key is refused or can connect only
 * until that key expires, and cannot register another key. After a restore, a copy may act as the agent until the agent
 * reconnects, as the decision record states; the sequence stops there.
 */
async function checkSteps(steps: readonly Step[]): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'muster-keys-'));
  try {
    const dir = join(root, 'data');
    const { nodeId, current } = await loadAgentIdentity(dir);
    let now = 1_700_000_000;
    const first = {
      node_id: nodeId,
      valid_until: null,
      status: 'approved',
      first_seen_at: now,
      last_seen_at: now,
    } as const;
    /** The agent's public keys, oldest first. */
    const order = [hexOf(current)];
    const rank = (key: AgentKey) => order.indexOf(hexOf(key));
    const table = new Table(new Map([[hexOf(current), first]]));
    /** Index in `order` of the latest key that the agent itself has presented to the orchestrator. */
    let known = 0;
    const backups = [{ rows: table.rows, known }];
    const stolen: string[] = [];

    const shownBy = (identity: AgentKeys) => {
      const shown = identity.toShow([5, 4], 'orchestrator');
      const said = {
        public_key: hexOf(shown.key),
        ...(shown.statement === null ? {} : { key_statement: shown.statement }),
        ...(shown.earlier.length === 0 ? {} : { earlier_statements: [...shown.earlier] }),
      };
      return { shown, said };
    };
    const hello = async (how: Reach) => {
      const identity = await loadAgentIdentity(dir);
      const { shown, said } = shownBy(identity);
      const verdict = table.judge(said, now);
      if (how === 'lost') return verdict;
      if ('refusal' in verdict) {
        if (verdict.refusal.code.startsWith('key_')) identity.refused(shown);
        return verdict;
      }
      table.commit(said.public_key, verdict, now);
      if (!order.includes(said.public_key)) order.push(said.public_key);
      known = rank(shown.key);
      if (how === 'unanswered') return verdict;
      const before = join(root, 'before');
      cpSync(dir, before, { recursive: true });
      const isNew = identity.welcomed(shown, verdict.node_id);
      if (isNew && how !== 'whole') {
        for (const name of ['agent-keys.json', 'agent.key'].slice(0, how)) cpSync(join(dir, name), join(before, name));
        rmSync(dir, { recursive: true });
        cpSync(before, dir, { recursive: true });
        chmodSync(dir, 0o700);
      }
      rmSync(before, { recursive: true });
      return verdict;
    };
    /**
     * Connects with a copy.
     * @returns whether the copy can now act as the agent, in which case the guarantee no longer holds
     */
    const intrude = async (copy: string, withoutStatements: boolean): Promise<boolean> => {
      const identity = await loadAgentIdentity(copy);
      const { shown, said } = withoutStatements
        ? { shown: identity.inForce(), said: { public_key: hexOf(identity.current) } }
        : shownBy(identity);
      const verdict = table.judge(said, now);
      // A key that was never presented ranks like the key that signed it.
      const ranked = rank(shown.key) >= 0 ? rank(shown.key) : rank(identity.current);
      const isLatest = ranked === order.length - 1;
      if ('refusal' in verdict) return false;
      if (ranked < known && verdict.node_id === nodeId) {
        expect(table.rows.get(said.public_key)?.valid_until).toBeGreaterThan(now);
        expect(verdict.succession).toBeNull();
        return false;
      }
      table.commit(said.public_key, verdict, now);
      return isLatest || verdict.node_id === nodeId;
    };

    for (const each of steps) {
      if (each.do === 'wait') now += each.secs;
      else if (each.do === 'hello') await hello(each.reach);
      else if (each.do === 'make') {
        const identity = await loadAgentIdentity(dir);
        if (!identity.hasNext()) makeNextKey(dir, identity.current, each.grace, now);
      } else if (each.do === 'backup') backups.push({ rows: table.rows, known });
      else if (each.do === 'restore') {
        const backup = backups.at(-1 - each.back) ?? backups[0]!;
        table.rows = backup.rows;
        known = backup.known;
      } else if (each.do === 'steal') {
        stolen.push(join(root, `stolen-${stolen.length}`));
        cpSync(dir, stolen.at(-1)!, { recursive: true });
        chmodSync(stolen.at(-1)!, 0o700);
      } else {
        const copy = stolen.at(-1 - each.back);
        if (copy !== undefined && (await intrude(copy, each.withoutStatements))) return;
      }
      // The orchestrator accepts the agent on its second hello at the latest, because a refused first hello may make
      // the agent drop a key.
      const verdicts = [await hello('lost')];
      if ('refusal' in verdicts[0]!) {
        await hello('unanswered');
        verdicts.push(await hello('lost'));
      }
      expect(verdicts.at(-1)).not.toHaveProperty('refusal');
      expect(verdicts.at(-1)).toMatchObject({ node_id: nodeId });
      expect((await loadAgentIdentity(dir)).nodeId).toBe(nodeId);
      expect(table.current(nodeId)).toBe(1);
    }
  } finally {
    rmSync(root, { recursive: true });
  }
}

/** Regression sequences, each with the seed that found it. */
const found: [Step[]][] = [
  // Seed 1952978794, path 14:4:3:6:7:14:14.
  [
    [
      { do: 'make', grace: 0 },
      { do: 'hello', reach: 2 },
      { do: 'restore', back: 0 },
      { do: 'wait', secs: 31 * day },
    ],
  ],
];
/** Seeds that run every time. When another seed fails, add it here and its sequence to `found`. */
const seeds = [1952978794, 20, 2026];

const check = (seed: number, numRuns: number) =>
  fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 16 }), checkSteps), {
    seed,
    numRuns,
    examples: found,
  });

for (const seed of seeds)
  test(`an agent keeps its identity after any lost message or restore, and a copy of a previous key gives no access: seed ${seed}`, () =>
    check(seed, 40));

// A failure prints the seed. For a longer search, MUSTER_KEY_RUNS sets the number of sequences.
test(
  'an agent keeps its identity after any lost message or restore, and a copy of a previous key gives no access: a random seed',
  () => check(Date.now() | 0, Number(process.env.MUSTER_KEY_RUNS ?? 60)),
  3_600_000,
);
