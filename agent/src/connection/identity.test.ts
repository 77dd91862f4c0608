import { createPublicKey, verify } from 'node:crypto';
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { idOfKey } from '@muster/protocol';
import { keyStatementBytes } from '@muster/protocol/wire';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { rawEd25519Key } from './agent-key.ts';
import { type AgentKeys, loadAgentIdentity } from './identity.ts';
import { makeNextKey } from './next-key.ts';

const now = 1_700_000_000;
const versions = [5, 4, 3];
const orchestrator = 'cd'.repeat(32);

let root: string;
let dir: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'muster-identity-'));
  dir = join(root, 'data');
});
afterEach(() => rmSync(root, { recursive: true }));

const hex = ({ current }: AgentKeys) => current.publicKey.toString('hex');
const prepared = async () => {
  const identity = await loadAgentIdentity(dir);
  return { identity, former: identity.current, next: makeNextKey(dir, identity.current, 3600, now) };
};

describe('the keys of a data directory', () => {
  test('switches to a new key, signed by the current key, after the welcome, and keeps the identity', async () => {
    const { identity, former, next } = await prepared();
    const nodeId = await idOfKey(former.publicKey);
    expect(identity.hasNext()).toBe(true);
    expect(statSync(join(dir, 'agent.key.next')).mode & 0o777).toBe(0o600);
    const shown = identity.toShow(versions, orchestrator);
    expect(shown.key.publicKey).toEqual(next.key.publicKey);
    const { former_key, made_at, former_until, signature } = shown.statement!;
    expect({ former_key, made_at, former_until }).toEqual({
      former_key: former.publicKey.toString('hex'),
      made_at: now,
      former_until: now + 3600,
    });
    const bytes = keyStatementBytes({
      formerKey: former.publicKey,
      key: next.key.publicKey,
      madeAt: made_at,
      formerUntil: former_until,
    });
    const formerKey = createPublicKey(former.pem);
    expect(rawEd25519Key(formerKey)).toEqual(former.publicKey);
    expect(verify(null, bytes, formerKey, Buffer.from(signature, 'hex'))).toBe(true);
    // An orchestrator that does not support key changes receives the key that it already has.
    expect(identity.toShow([3, 2], orchestrator)).toEqual({ key: former, statement: null, earlier: [] });

    expect(identity.welcomed(shown, nodeId)).toBe(true);
    for (const keys of [identity, await loadAgentIdentity(dir)]) {
      expect(hex(keys)).toBe(next.key.publicKey.toString('hex'));
      expect(keys.nodeId).toBe(nodeId);
      expect(keys.hasNext()).toBe(false);
      // The orchestrator may be restored from a backup that predates the change.
      expect(keys.toShow(versions, orchestrator).statement).toEqual(shown.statement);
    }
    expect(readFileSync(join(dir, 'agent.key'), 'utf8')).toBe(next.key.pem);
    expect(statSync(join(dir, 'agent.key')).mode & 0o777).toBe(0o600);
  });

  test('keeps a valid identity if it is killed at any write during the switch to a new key', async () => {
    const { identity, former } = await prepared();
    identity.welcomed(identity.toShow(versions, orchestrator), undefined);
    const nodeId = await idOfKey(former.publicKey);
    // After the second change, the node ID is the hash of neither key.
    const next = makeNextKey(dir, identity.current, 0, now);
    const before = join(root, 'before');
    cpSync(dir, before, { recursive: true });
    identity.welcomed(identity.toShow(versions, orchestrator), undefined);
    // Checks the ID and the key, and that the new key's file is removed, after the process is killed at each write.
    const steps = [[], ['agent-keys.json'], ['agent-keys.json', 'agent.key']];
    for (const written of steps) {
      const killed = join(root, `killed-${written.length}`);
      cpSync(before, killed, { recursive: true });
      chmodSync(killed, 0o700);
      for (const name of written) cpSync(join(dir, name), join(killed, name));
      const again = await loadAgentIdentity(killed);
      expect(again.nodeId, `after ${written}`).toBe(nodeId);
      expect(again.toShow(versions, orchestrator).key.publicKey).toEqual(next.key.publicKey);
      again.welcomed(again.toShow(versions, orchestrator), nodeId);
      const later = await loadAgentIdentity(killed);
      expect([later.nodeId, hex(later)]).toEqual([nodeId, next.key.publicKey.toString('hex')]);
      expect(existsSync(join(killed, 'agent.key.next'))).toBe(false);
    }
  });

  test('keeps the identity of the agent after a second key change', async () => {
    const { identity, former } = await prepared();
    identity.welcomed(identity.toShow(versions, orchestrator), undefined);
    makeNextKey(dir, identity.current, 0, now);
    const again = await loadAgentIdentity(dir);
    again.welcomed(again.toShow(versions, orchestrator), undefined);
    expect((await loadAgentIdentity(dir)).nodeId).toBe(await idOfKey(former.publicKey));
  });

  test('keeps the current key when the new key is refused and dropped', async () => {
    const { identity, former } = await prepared();
    const shown = identity.toShow(versions, orchestrator);
    expect(identity.refused(shown)).toBe(true);
    expect(identity.hasNext()).toBe(false);
    expect(identity.toShow(versions, orchestrator)).toEqual({ key: former, statement: null, earlier: [] });
    // A newer key is not dropped.
    makeNextKey(dir, identity.current, 0, now);
    expect(identity.refused(shown)).toBe(true);
    expect(identity.hasNext()).toBe(true);
  });

  test('sends no statements to an orchestrator that has none of the keys', async () => {
    const { identity } = await prepared();
    const shown = identity.toShow(versions, orchestrator);
    identity.welcomed(shown, undefined);
    expect(identity.refused(identity.toShow(versions, orchestrator))).toBe(false);
    expect(identity.toShow(versions, orchestrator)).toMatchObject({ statement: shown.statement });
    identity.unknownTo(orchestrator);
    expect(identity.toShow(versions, orchestrator)).toEqual({ key: identity.current, statement: null, earlier: [] });
    expect(identity.toShow(versions, 'ef'.repeat(32))).toMatchObject({ statement: shown.statement });
    // The next new key is presented with all statements.
    const next = makeNextKey(dir, identity.current, 0, now);
    expect(identity.toShow(versions, orchestrator)).toMatchObject({
      statement: next.statement,
      earlier: [shown.statement],
    });
    expect(identity.refused(identity.toShow(versions, orchestrator))).toBe(true);
    // The orchestrator may be restored from a more recent backup.
    expect((await loadAgentIdentity(dir)).toShow(versions, orchestrator)).toMatchObject({ statement: shown.statement });
  });

  test('presents as many statements of earlier changes as fit in a hello', async () => {
    const { identity } = await prepared();
    const statements = [identity.toShow(versions, orchestrator).statement!];
    identity.welcomed(identity.toShow(versions, orchestrator), undefined);
    for (let change = 2; change <= 12; change++) {
      const next = makeNextKey(dir, identity.current, 0, now + change);
      statements.unshift(next.statement);
      const again = await loadAgentIdentity(dir);
      const expected = { key: next.key.publicKey, statement: next.statement, earlier: statements.slice(1, 9) };
      for (const keys of [identity, again]) {
        const { key, statement, earlier } = keys.toShow(versions, orchestrator);
        expect({ key: key.publicKey, statement, earlier }).toEqual(expected);
        expect(keys.toShow([4, 3], orchestrator).earlier).toEqual([]);
      }
      identity.welcomed(identity.toShow(versions, orchestrator), undefined);
      const { key, statement, earlier } = (await loadAgentIdentity(dir)).toShow(versions, orchestrator);
      expect({ key: key.publicKey, statement, earlier }).toEqual(expected);
    }
  });

  test('presents the statements of the current key if the process was killed before the new key was refused', async () => {
    const { identity } = await prepared();
    const first = identity.toShow(versions, orchestrator);
    identity.welcomed(first, undefined);
    makeNextKey(dir, identity.current, 0, now);
    const before = join(root, 'before');
    cpSync(dir, before, { recursive: true });
    chmodSync(before, 0o700);
    identity.welcomed(identity.toShow(versions, orchestrator), undefined);
    cpSync(join(dir, 'agent-keys.json'), join(before, 'agent-keys.json'));
    const killed = await loadAgentIdentity(before);
    const shown = killed.toShow(versions, orchestrator);
    expect(shown.earlier).toEqual([first.statement]);
    killed.refused(shown);
    expect(killed.toShow(versions, orchestrator)).toMatchObject({ statement: first.statement, earlier: [] });
  });

  test('adopts the ID that another orchestrator assigns', async () => {
    const { identity } = await prepared();
    identity.welcomed(identity.toShow(versions, orchestrator), undefined);
    const elsewhere = 'ab'.repeat(16);
    expect(identity.welcomed(identity.toShow(versions, orchestrator), elsewhere)).toBe(false);
    expect((await loadAgentIdentity(dir)).nodeId).toBe(elsewhere);
  });

  test('switches to a new key even if its file is missing', async () => {
    const { identity, next } = await prepared();
    const shown = identity.toShow(versions, orchestrator);
    rmSync(join(dir, 'agent.key.next'));
    identity.welcomed(shown, undefined);
    expect(hex(await loadAgentIdentity(dir))).toBe(next.key.publicKey.toString('hex'));
  });

  test('presents keys without statements if the history is damaged', async () => {
    const { identity } = await prepared();
    identity.welcomed(identity.toShow(versions, orchestrator), undefined);
    const path = join(dir, 'agent-keys.json');
    const history = JSON.parse(readFileSync(path, 'utf8'));
    writeFileSync(path, JSON.stringify({ ...history, statement: { ...history.statement, former_key: 'x' } }));
    const again = await loadAgentIdentity(dir);
    expect(again.toShow(versions, orchestrator)).toEqual({ key: again.current, statement: null, earlier: [] });
    expect(again.nodeId).toBe(identity.nodeId);
  });

  test('creates one new key at a time, and never overwrites a pending key', async () => {
    const { identity, next } = await prepared();
    expect(() => makeNextKey(dir, identity.current, 0, now)).toThrow(/EEXIST/);
    expect(identity.toShow(versions, orchestrator).key.publicKey).toEqual(next.key.publicKey);
    for (const grace of [-1, 1.5, 31 * 86_400])
      expect(() => makeNextKey(join(root, 'none'), identity.current, grace, now)).toThrow(RangeError);
  });

  test('reports a damaged file of a pending key', async () => {
    const { identity } = await prepared();
    const path = join(dir, 'agent.key.next');
    const { private_key, statement } = JSON.parse(readFileSync(path, 'utf8'));
    // Without this check, the last two files would result in an invalid hello that locks the agent out permanently.
    const damaged = [
      '{"private_key":',
      JSON.stringify({ private_key, statement: { ...statement, signature: `${statement.signature.slice(1)}z` } }),
      JSON.stringify({ private_key, statement: { ...statement, made_at: -1 } }),
    ];
    for (const text of damaged) {
      writeFileSync(path, text, { mode: 0o600 });
      expect(() => identity.toShow(versions, orchestrator)).toThrow(/agent.key.next is damaged; remove it/);
    }
    // The agent starts despite a damaged history.
    writeFileSync(join(dir, 'agent-keys.json'), 'x', { mode: 0o600 });
    expect((await loadAgentIdentity(dir)).nodeId).toBe(identity.nodeId);
  });
});
