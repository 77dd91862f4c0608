import type { Hello } from '@muster/protocol/wire';
import { keyStatementBytes } from '@muster/protocol/wire';
import { expect, test } from 'vitest';
import { type DatabaseFixture, describeAnyDatabase } from '../../../test/databases/databases.ts';
import { connect, helloOf, type Key, newAdmin, newAgent, newKey, openDomain } from '../../../test/domain.ts';
import { removeAgent, setStatus } from '../agents/agents.ts';
import { listAudit } from '../audit/audit.ts';

const day = 86_400;

async function open(fixture: DatabaseFixture) {
  const domain = await openDomain(fixture);
  const { actor } = await newAdmin(domain);
  const first = await newAgent(domain, actor, 'web-1');
  /** Returns a statement in which the owner of `former` names `next` as its successor. */
  const said = (former: Key, next: Key, graceSecs = day, made_at = domain.now()): Hello['key_statement'] => {
    const formerUntil = made_at + graceSecs;
    const bytes = keyStatementBytes({
      formerKey: Buffer.from(former.hex, 'hex'),
      key: Buffer.from(next.hex, 'hex'),
      madeAt: made_at,
      formerUntil,
    });
    return { former_key: former.hex, made_at, former_until: formerUntil, signature: former.sign(bytes) };
  };
  /** Returns the agent's id, or the refusal code. */
  const hello = async (key: Key, ...statements: Hello['key_statement'][]) => {
    const [key_statement, ...earlier] = statements.filter((each) => each !== undefined);
    const hello = helloOf(key, {
      versions: [5, 4],
      ...(key_statement === undefined ? {} : { key_statement }),
      ...(earlier.length === 0 ? {} : { earlier_statements: earlier }),
    });
    const found = await domain.links.keyOf(hello);
    if ('refusal' in found) return found.refusal.code;
    const admission = await domain.links.admit(hello, { ...found, remote_ip: '192.0.2.7', now: domain.now() });
    return admission.admitted ? found.node_id : admission.refusal.code;
  };
  const rotations = async () =>
    (await listAudit(domain.context, { limit: 100 })).events.filter(
      ({ event_type }) => event_type === 'agent.key_rotated',
    );
  return { domain, actor, first, said, hello, rotations };
}

describeAnyDatabase('agent keys', (fixture) => {
  test('accepts the previous key until the stated time after a key change', async () => {
    const { domain, first, said, hello, rotations } = await open(fixture);
    const second = await newKey();
    const statement = said(first, second);
    expect(await hello(second, statement)).toBe(first.id);
    // The agent did not receive the welcome message, so it sends the statement again.
    expect(await hello(second, statement)).toBe(first.id);
    expect(await hello(second)).toBe(first.id);
    expect(await hello(first)).toBe(first.id);
    const [event, ...others] = await rotations();
    expect(others).toEqual([]);
    expect(event).toMatchObject({
      severity: 'warning',
      actor: { type: 'agent', id: first.id },
      target: { type: 'agent', id: first.id, name: 'web-1' },
      metadata: { key: second.hex, former_key: first.hex, former_until: domain.now() + day, ip: '192.0.2.7' },
    });
    domain.clock.advance((day - 1) * 1000);
    expect(await hello(first)).toBe(first.id);
    domain.clock.advance(1000);
    expect(await hello(first)).toBe('key_replaced');
    expect(await hello(second)).toBe(first.id);
    domain.clock.advance(400 * day * 1000);
    expect(await hello(first)).toBe('key_replaced');
    expect(await hello(first, said(second, first))).toBe('key_replaced');
    expect(await hello(second)).toBe(first.id);
  });

  test('accepts a new key only with a statement by the current key', async () => {
    const { first, said, hello, rotations } = await open(fixture);
    const [second, thief] = [await newKey(), await newKey()];
    await hello(second, said(first, second));
    expect(await hello(thief, said(first, thief))).toBe('key_refused');
    expect(await hello(second)).toBe(first.id);
    expect(await rotations()).toHaveLength(1);
  });

  test('invalidates all previous keys immediately when the statement grants no grace period', async () => {
    const { first, said, hello } = await open(fixture);
    const [second, third] = [await newKey(), await newKey()];
    await hello(second, said(first, second, 20 * day));
    expect(await hello(first)).toBe(first.id);
    expect(await hello(third, said(second, third, 0))).toBe(first.id);
    expect(await hello(first)).toBe('key_replaced');
    expect(await hello(second)).toBe('key_replaced');
    // A client with a copy of the second key replays the statement that introduced the key.
    expect(await hello(second, said(first, second))).toBe('key_replaced');
    expect(await hello(third)).toBe(first.id);
  });

  test('refuses a key statement with a wrong signature, key, or time', async () => {
    const { domain, actor, first, said, hello, rotations } = await open(fixture);
    const other = await newAgent(domain, actor, 'web-2');
    const next = await newKey();
    const good = said(first, next)!;
    const bad: Hello['key_statement'][] = [
      { ...good, signature: '00'.repeat(64) },
      { ...good, former_until: good.former_until + 1 },
      // The first agent's key signs the statement, which names the second agent's key.
      { ...good, former_key: other.hex },
      said(first, other),
      said(first, next, day, domain.now() + 3600),
      said(first, next, 31 * day),
    ];
    for (const statement of bad) expect(await hello(next, statement)).toBe('key_refused');
    // The refusal is the same as for an unknown key, so that it reveals nothing about the agent.
    expect(await hello(next, said(first, next, day, domain.now() - 31 * day))).toBe('key_unknown');
    expect(await rotations()).toEqual([]);
    // A key of one agent cannot move to another agent.
    expect(await hello(other, said(first, other))).toBe(other.id);
    expect(await hello(first)).toBe(first.id);
    expect(await hello(next, good)).toBe(first.id);
  });

  test('does not change keys of pending, rejected, or removed agents', async () => {
    const { domain, actor, first, said, hello, rotations } = await open(fixture);
    const waiting = await newKey();
    await connect(domain, waiting);
    const next = await newKey();
    expect(await hello(next, said(waiting, next))).toBe('key_refused');
    await setStatus(domain.context, actor, 'web-1', { status: 'rejected' });
    expect(await hello(next, said(first, next))).toBe('rejected');
    await removeAgent(domain.context, actor, first.id);
    // Neither key is known, so the client is recorded as a new pending agent under its own id.
    expect(await hello(next, said(first, next))).toBe('key_unknown');
    expect(await hello(next)).toBe(next.id);
    expect(await hello(first)).toBe(first.id);
    expect(await rotations()).toEqual([]);
  });

  test('refuses a key statement that is older than the agent’s last enrollment', async () => {
    const { domain, actor, first, said, hello, rotations } = await open(fixture);
    const stolen = await newKey();
    const early = said(first, stolen);
    domain.clock.advance(day * 1000);
    // After its disk is restored, the agent connects with its first key and gets its first id again.
    await setStatus(domain.context, actor, 'web-1', { status: 'rejected' });
    await removeAgent(domain.context, actor, first.id);
    expect(await hello(first)).toBe(first.id);
    await setStatus(domain.context, actor, first.id, { status: 'approved', name: 'web-1' });
    expect(await hello(stolen, early)).toBe('key_unknown');
    expect(await rotations()).toEqual([]);
    const next = await newKey();
    expect(await hello(next, said(first, next, day, domain.now() - 600))).toBe(first.id);
  });

  test('reveals nothing about an agent to a client whose key statement has an invalid signature', async () => {
    const { domain, first, said } = await open(fixture);
    const [stranger, unknown] = [await newKey(), await newKey()];
    const forged = (former: Key) => ({ ...said(former, stranger)!, signature: '00'.repeat(64) });
    const answers = [];
    for (const former of [first, unknown])
      answers.push(await domain.links.keyOf(helloOf(stranger, { key_statement: forged(former) })));
    expect(answers[0]).toEqual(answers[1]);
    expect(answers[0]).toMatchObject({ node_id: stranger.id, refusal: { code: 'key_refused' } });
  });

  test('creates no record for a replaced key if the agent is removed concurrently', async () => {
    const { domain, actor, first, said, hello } = await open(fixture);
    const second = await newKey();
    await hello(second, said(first, second));
    const shown = helloOf(second, { versions: [4] });
    const early = await domain.links.keyOf(shown);
    if ('refusal' in early) throw new Error('refused');
    await setStatus(domain.context, actor, 'web-1', { status: 'rejected' });
    await removeAgent(domain.context, actor, first.id);
    const from = { ...early, remote_ip: '192.0.2.7', now: domain.now() };
    expect(await domain.links.admit(shown, from)).toMatchObject({
      admitted: false,
      refusal: { code: 'unavailable', retry_after_secs: 1 },
    });
    expect(await domain.links.standing(first.id)).toBeNull();
    expect(await hello(second)).toBe(second.id);
  });

  test('accepts only one of several successors to a key', async () => {
    const { first, said, hello, rotations } = await open(fixture);
    const keys = await Promise.all([newKey(), newKey(), newKey()]);
    const outcomes = await Promise.all(keys.map((key) => hello(key, said(first, key))));
    expect(outcomes.filter((outcome) => outcome === first.id)).toHaveLength(1);
    expect(await rotations()).toHaveLength(1);
    const winner = keys[outcomes.indexOf(first.id)]!;
    for (const key of keys) expect(await hello(key, said(first, key))).toBe(key === winner ? first.id : 'key_refused');
  });

  test('refuses a key that was replaced between the lookup and the commit', async () => {
    const { domain, first, said, hello } = await open(fixture);
    const second = await newKey();
    const early = await domain.links.keyOf(helloOf(first));
    if ('refusal' in early) throw new Error('refused');
    await hello(second, said(first, second));
    const from = { ...early, remote_ip: '192.0.2.7', now: domain.now() };
    await expect(domain.links.admit(helloOf(first), from)).rejects.toMatchObject({ code: 'agent_changed' });
  });

  test('follows a chain of key changes from the recorded key after a restore', async () => {
    const { domain, actor, first, said, hello, rotations } = await open(fixture);
    const keys = [first, await newKey(), await newKey(), await newKey()];
    const statements: Hello['key_statement'][] = [];
    // The orchestrator has no record of these key changes, as if it had been restored from a backup.
    for (const [i, grace] of [30 * day, 0, 20 * day].entries()) {
      domain.clock.advance(100 * day * 1000);
      statements.unshift(said(keys[i]!, keys[i + 1]!, grace));
    }
    const [latest] = keys.slice(-1) as [Key];
    expect(await hello(latest)).toBe(latest.id);
    await setStatus(domain.context, actor, latest.id, { status: 'rejected' });
    await removeAgent(domain.context, actor, latest.id);
    domain.clock.advance(10 * day * 1000);
    expect(await hello(latest, ...statements)).toBe(first.id);
    expect(await hello(latest)).toBe(first.id);
    expect(await rotations()).toMatchObject([{ metadata: { key: latest.hex, former_key: first.hex } }]);
    // Only the newest previous key is still valid.
    expect(await hello(keys[2]!)).toBe(first.id);
    expect(await hello(keys[1]!)).toBe('key_replaced');
    expect(await hello(first)).toBe('key_replaced');
    const thief = await newKey();
    for (const key of keys.slice(0, 3)) expect(await hello(thief, said(key, thief))).toBe('key_refused');
    expect(await hello(keys[1]!, statements[2])).toBe('key_replaced');
    domain.clock.advance(10 * day * 1000);
    expect(await hello(keys[2]!)).toBe('key_replaced');
    expect(await hello(keys[2]!, ...statements.slice(1))).toBe('key_replaced');
    expect(await rotations()).toHaveLength(1);
  });

  test('follows key statements beyond a previous key that someone enrolled after the restore', async () => {
    const { domain, actor, first, said, hello } = await open(fixture);
    const [second, third] = [await newKey(), await newKey()];
    const statements = [said(second, third), said(first, second)];
    expect(await hello(second)).toBe(second.id);
    expect(await hello(third, statements[0])).toBe('key_refused');
    expect(await hello(third, ...statements)).toBe(first.id);
    expect(await domain.links.standing(second.id)).toMatchObject({ status: 'pending' });
    await setStatus(domain.context, actor, second.id, { status: 'rejected' });
    const fourth = await newKey();
    expect(await hello(fourth, said(third, fourth), ...statements)).toBe(first.id);
  });

  test('refuses a chain of key statements if one of them is forged, repeats a key, or is from the future', async () => {
    const { domain, first, said, hello, rotations } = await open(fixture);
    const [second, third] = [await newKey(), await newKey()];
    const [last, before] = [said(second, third)!, said(first, second)!];
    const forged = { ...before, signature: '00'.repeat(64) };
    expect(await hello(third, last, forged)).toBe('key_refused');
    expect(await hello(third, last, said(second, third))).toBe('key_refused');
    expect(await hello(third, said(second, third, day, domain.now() + 3600), before)).toBe('key_refused');
    expect(await hello(third, said(second, third, 31 * day), before)).toBe('key_refused');
    // These statements form a cycle.
    expect(await hello(third, last, said(third, second), said(second, third))).toBe('key_unknown');
    expect(await hello(third, last, said(third, second), last, before)).toBe('key_unknown');
    expect(await rotations()).toEqual([]);
    expect(await hello(third, last, before)).toBe(first.id);
  });

  test('refuses a key statement over a month old if the previous key was used since', async () => {
    const { domain, first, said, hello } = await open(fixture);
    const abandoned = await newKey();
    const early = said(first, abandoned);
    domain.clock.advance(31 * day * 1000);
    expect(await hello(first)).toBe(first.id);
    expect(await hello(abandoned, early)).toBe('key_refused');
    expect(await hello(first)).toBe(first.id);
  });
});
