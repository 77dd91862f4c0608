import { join } from 'node:path';
import { holderOf } from '../../../lib/src/instance-lock.ts';
import { otherOwner, readPrivateFile } from '../../../lib/src/private-file.ts';
import { hexOf } from './agent-key.ts';
import { loadAgentIdentity } from './identity.ts';
import { makeNextKey, type NextKey, readNextKey } from './next-key.ts';

/**
 * `waiting`: the orchestrator has not responded yet. `refused`: the orchestrator refused the new key, which was
 * dropped.
 */
export type RotationState = 'in_force' | 'waiting' | 'refused';

export interface Rotation {
  node_id: string;
  state: RotationState;
  /** The new key in hexadecimal. */
  key: string;
  former_key: string;
  /** Unix seconds. */
  former_until: number;
  /** Whether an earlier call created the key. */
  was_waiting: boolean;
  /** Whether an agent is using the directory and was notified. */
  agent_runs: boolean;
}

export interface RotationTools {
  /** Unix seconds. */
  now(): number;
  /** Notifies the running agent of the new key. @throws Error with code ESRCH if the process has exited */
  notify(pid: number): void;
  sleep(ms: number): Promise<void>;
}

/** Milliseconds between checks of the key's state. */
const pollMs = 100;

/**
 * Creates a new key for the agent with this data directory, and waits until it is the current key. A key that is
 * already pending is not replaced, because the orchestrator may have accepted it.
 * @param graceSecs how long the previous key stays valid after the change
 * @param waitMs maximum time to wait for a running agent
 * @throws Error if the directory has no agent or belongs to another user
 */
export async function rotateKey(
  dataDir: string,
  graceSecs: number,
  waitMs: number,
  { now, notify, sleep }: RotationTools,
): Promise<Rotation> {
  if (readPrivateFile(join(dataDir, 'agent.key')) === null)
    throw new Error(
      `${dataDir} has no agent.key, so no agent has run there; specify the agent's data directory with --data-dir`,
    );
  const owner = otherOwner(dataDir);
  if (owner !== null) throw new Error(`${dataDir} belongs to user ${owner}; run this command as that user`);
  const identity = await loadAgentIdentity(dataDir);
  const waited = identity.next();
  const next = waited ?? makeOrRead(dataDir, () => makeNextKey(dataDir, identity.current, graceSecs, now()));
  const agentRuns = notifyHolder(dataDir, notify);
  let state: RotationState = 'waiting';
  for (let left = agentRuns ? waitMs : 0; left > 0 && state === 'waiting'; left -= pollMs) {
    await sleep(pollMs);
    state = await stateOf(dataDir, next);
  }
  return {
    node_id: identity.nodeId,
    state,
    key: hexOf(next.key),
    former_key: next.statement.former_key,
    former_until: next.statement.former_until,
    was_waiting: waited !== null,
    agent_runs: agentRuns,
  };
}

/**
 * Notifies the agent that is using the directory.
 * @returns false if there is none
 */
function notifyHolder(dataDir: string, notify: (pid: number) => void): boolean {
  const pid = holderOf(dataDir, 'agent');
  if (pid === null) return false;
  try {
    notify(pid);
    return true;
  } catch (error) {
    // The agent has exited since `holderOf` found it.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

/** Creates a key, or reads the key that a concurrent call has just created. */
function makeOrRead(dataDir: string, make: () => NextKey): NextKey {
  try {
    return make();
  } catch (error) {
    const other = (error as NodeJS.ErrnoException).code === 'EEXIST' ? readNextKey(dataDir) : null;
    if (other === null) throw error;
    return other;
  }
}

async function stateOf(dataDir: string, { key }: NextKey): Promise<RotationState> {
  // Checks the pending key first, because the agent switches to the key before it removes the file.
  if (readNextKey(dataDir)?.key.publicKey.equals(key.publicKey) === true) return 'waiting';
  const { current } = await loadAgentIdentity(dataDir);
  return current.publicKey.equals(key.publicKey) ? 'in_force' : 'refused';
}
