import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadAgentIdentity } from '../agent/src/connection/identity.ts';
import { makeNextKey } from '../agent/src/connection/next-key.ts';
import { judgeKey, type KeptKey, type KeyOf } from '../orchestrator/src/domain/agent-keys.ts';

/** What the orchestrator keeps of one agent's keys, as its unit changes it. */
class Table {
  rows = new Map<string, KeptKey>();

  judge(hello: Parameters<typeof judgeKey>[0], now: number) {
    const own = this.rows.get(hello.public_key);
    const former = own ? undefined : this.rows.get(hello.key_statement?.former_key ?? '');
    return judgeKey(hello, { own, former, idTaken: false }, now) satisfies
      | KeyOf
      | { refusal: unknown; node_id: string };
  }

  commit(key: string, { node_id, succession }: KeyOf): void {
    if (succession === null) return;
    for (const [each, row] of this.rows) {
      const valid_until = Math.min(row.valid_until ?? Number.MAX_SAFE_INTEGER, succession.former_until);
      this.rows.set(each, { ...row, valid_until });
    }
    this.rows.set(key, { node_id, valid_until: null, status: 'approved', first_seen_at: 0 });
  }
}

const day = 86_400;
/** How far a hello comes: nothing arrives; it is committed and the answer is lost; welcomed, and killed after so many writes. */
const reach = fc.constantFrom(
  'lost' as const,
  'unanswered' as const,
  0 as const,
  1 as const,
  2 as const,
  'whole' as const,
);
const step = fc.oneof(
  fc.record({ do: fc.constant('make' as const), grace: fc.constantFrom(0, 60, day, 30 * day) }),
  fc.record({ do: fc.constant('hello' as const), reach }),
  fc.record({ do: fc.constant('wait' as const), secs: fc.constantFrom(1, 3600, day, 31 * day) }),
  fc.record({ do: fc.constant('restore' as const) }),
);

test('whatever is cut off, and whenever, an agent has a key that its orchestrator takes, as the agent that it is', async () => {
  const property = fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
    const root = mkdtempSync(join(tmpdir(), 'muster-keys-'));
    try {
      const dir = join(root, 'data');
      const first = await loadAgentIdentity(dir);
      const { nodeId } = first;
      const table = new Table();
      table.rows.set(first.current.publicKey.toString('hex'), {
        node_id: nodeId,
        valid_until: null,
        status: 'approved',
        first_seen_at: 0,
      });
      let now = 1_700_000_000;
      let backup = { rows: new Map(table.rows), changes: 0, at: now };

      const hello = async (how: 'lost' | 'unanswered' | 'whole' | number) => {
        const identity = await loadAgentIdentity(dir);
        const shown = identity.toShow([4]);
        const public_key = shown.key.publicKey.toString('hex');
        const said = { public_key, ...(shown.statement === null ? {} : { key_statement: shown.statement }) };
        const verdict = table.judge(said, now);
        if (how === 'lost') return verdict;
        if ('refusal' in verdict) {
          if (verdict.refusal.code === 'key_refused') identity.refused(shown);
          return verdict;
        }
        if (verdict.succession !== null) backup.changes++;
        table.commit(public_key, verdict);
        if (how === 'unanswered') return verdict;
        const before = join(root, 'before');
        cpSync(dir, before, { recursive: true });
        const isNew = identity.welcomed(shown, verdict.node_id);
        if (isNew && how !== 'whole') {
          for (const name of ['agent-keys.json', 'agent.key'].slice(0, how as number))
            cpSync(join(dir, name), join(before, name));
          rmSync(dir, { recursive: true });
          cpSync(before, dir, { recursive: true });
          chmodSync(dir, 0o700);
        }
        rmSync(before, { recursive: true });
        return verdict;
      };

      for (const each of steps) {
        if (each.do === 'wait') now += each.secs;
        else if (each.do === 'hello') await hello(each.reach);
        else if (each.do === 'make') {
          const identity = await loadAgentIdentity(dir);
          if (!identity.hasNext()) makeNextKey(dir, identity.current, each.grace, now);
        } else {
          // A backup of before one change is as far back as is promised, for a month.
          if (backup.changes <= 1 && now - backup.at <= 30 * day) table.rows = new Map(backup.rows);
          backup = { rows: new Map(table.rows), changes: 0, at: now };
        }
        // What would come of it now: at the latest the second hello is taken, as the first may drop what came too late.
        const verdicts = [await hello('lost')];
        if ('refusal' in verdicts[0]!) {
          await hello('unanswered');
          verdicts.push(await hello('lost'));
        }
        expect(verdicts.at(-1)).toMatchObject({ node_id: nodeId });
        expect(verdicts.at(-1)).not.toHaveProperty('refusal');
        expect((await loadAgentIdentity(dir)).nodeId).toBe(nodeId);
        expect([...table.rows.values()].filter(({ valid_until }) => valid_until === null)).toHaveLength(1);
      }
    } finally {
      rmSync(root, { recursive: true });
    }
  });
  await fc.assert(property, { numRuns: 60 });
});
