import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { lockDirectory } from '../../../lib/src/instance-lock.ts';
import { type AgentKeys, loadAgentIdentity } from './identity.ts';
import { rotateKey } from './rotate-key.ts';
import { textOf } from './rotate-key-output.ts';

const now = 1_700_000_000;
const hex = ({ publicKey }: { publicKey: Buffer }) => publicKey.toString('hex');
let dir: string;
let identity: AgentKeys;
let unlock: () => void;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'muster-rotate-'));
  identity = await loadAgentIdentity(dir);
  unlock = () => {};
});
afterEach(() => {
  unlock();
  rmSync(dir, { recursive: true });
});

/** @param agent acts as the running agent once it is notified, or one poll later */
const rotate = (agent: () => void = () => {}, later: () => void = () => {}) => {
  const nudged: number[] = [];
  const tools = {
    now: () => now,
    notify: (pid: number) => {
      nudged.push(pid);
      agent();
    },
    sleep: async () => later(),
  };
  return rotateKey(dir, 3600, 500, tools).then((rotation) => ({ ...rotation, nudged }));
};

describe('muster agent rotate-key', () => {
  test('leaves one new key for the next start if no agent is running', async () => {
    const first = await rotate();
    expect(first).toMatchObject({
      node_id: identity.nodeId,
      state: 'waiting',
      former_key: hex(identity.current),
      former_until: now + 3600,
      was_waiting: false,
      agent_runs: false,
      nudged: [],
    });
    expect(textOf(first, now)).toContain(
      'No agent uses this data directory; the next agent that starts with it presents the key to the orchestrator.',
    );
    const second = await rotate();
    expect(second).toMatchObject({ key: first.key, was_waiting: true });
    expect(textOf(second, now)).toMatch(/^A new key was already waiting/);
  });

  test('notifies the running agent, and waits until the key is in use', async () => {
    unlock = await lockDirectory(dir, 'agent');
    let polls = 0;
    const done = await rotate(undefined, () => {
      if (++polls === 3) identity.welcomed(identity.toShow([4], ''), undefined);
    });
    expect(done).toMatchObject({ state: 'in_force', nudged: [process.pid], key: hex(identity.current) });
    expect(polls).toBe(3);
    expect(textOf(done, now)).toBe(
      `Agent ${identity.nodeId} has a new key: ${done.key}\nThe previous key is valid until 2023-11-14T23:13:20.000Z.\n`,
    );
    expect(textOf(done, now + 3600)).toContain('The previous key is no longer valid.');
  });

  test('reports a refusal and a timeout', async () => {
    unlock = await lockDirectory(dir, 'agent');
    const refused = await rotate(() => void identity.refused(identity.toShow([4], '')));
    expect(refused.state).toBe('refused');
    expect(textOf(refused, now)).toContain('refused the new key');
    const waits = await rotate();
    expect(waits).toMatchObject({ state: 'waiting', agent_runs: true });
    expect(textOf(waits, now)).toContain('has not accepted it yet');
  });

  test('leaves the key for the next start if the agent is killed before it is notified', async () => {
    unlock = await lockDirectory(dir, 'agent');
    const killed = await rotate(() => {
      throw Object.assign(new Error('kill ESRCH'), { code: 'ESRCH' });
    });
    expect(killed).toMatchObject({ state: 'waiting', agent_runs: false, node_id: identity.nodeId });
    expect(identity.next()).not.toBeNull();
  });

  test('refuses a directory without an agent', async () => {
    const none = join(dir, 'none');
    const tools = { now: () => now, notify: () => {}, sleep: async () => {} };
    await expect(rotateKey(none, 0, 0, tools)).rejects.toThrow('has no agent.key, so no agent has run there');
  });
});
