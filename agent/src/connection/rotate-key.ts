import { join } from 'node:path';
import { otherOwner, readPrivateFile } from '../host/files/private-file.ts';
import { holderOf } from '../host/processes/instance-lock.ts';
import { hexOf } from './agent-key.ts';
import { loadAgentIdentity } from './identity.ts';
import { makeNextKey, type NextKey, readNextKey } from './next-key.ts';

/** What came of it: `waiting`: the agent has not shown the new key, or nobody has answered; `refused`: it is dropped. */
export type RotationState = 'in_force' | 'waiting' | 'refused';

export interface Rotation {
  node_id: string;
  state: RotationState;
  /** Hex of the new key. */
  key: string;
  former_key: string;
  /** Unix seconds. */
  former_until: number;
  /** Another call had made it already. */
  was_waiting: boolean;
  /** An agent runs on the directory, and was told. */
  agent_runs: boolean;
}

export interface RotationTools {
  /** Unix seconds. */
  now(): number;
  /** Tells the running agent to look. */
  nudge(pid: number): void;
  sleep(ms: number): Promise<void>;
}

/** Between two looks at what the agent has made of it. */
const lookMs = 100;

/**
 * Makes a new key for the agent of this directory, and waits until it is in force. A key that waits already is not
 * replaced: the orchestrator may have taken it.
 * @param graceSecs how long the former key is good after the change
 * @param waitMs    how long to wait for a running agent
 * @throws Error when there is no agent, or the directory is another user's
 */
export async function rotateKey(
  dataDir: string,
  graceSecs: number,
  waitMs: number,
  { now, nudge, sleep }: RotationTools,
): Promise<Rotation> {
  if (readPrivateFile(join(dataDir, 'agent.key')) === null)
    throw new Error(`${dataDir} has no agent.key: no agent ever ran there; name its directory with --data-dir`);
  const owner = otherOwner(dataDir);
  if (owner !== null) throw new Error(`${dataDir} belongs to user ${owner}: run this as that one`);
  const identity = await loadAgentIdentity(dataDir);
  const waited = identity.next();
  const next = waited ?? made(dataDir, () => makeNextKey(dataDir, identity.current, graceSecs, now()));
  const pid = holderOf(dataDir);
  if (pid !== null) nudge(pid);
  let state: RotationState = 'waiting';
  for (let left = pid === null ? 0 : waitMs; left > 0 && state === 'waiting'; left -= lookMs) {
    await sleep(lookMs);
    state = await stateOf(dataDir, next);
  }
  return {
    node_id: identity.nodeId,
    state,
    key: hexOf(next.key),
    former_key: next.statement.former_key,
    former_until: next.statement.former_until,
    was_waiting: waited !== null,
    agent_runs: pid !== null,
  };
}

/** Another call may have made one in this moment. */
function made(dataDir: string, make: () => NextKey): NextKey {
  try {
    return make();
  } catch (error) {
    const other = (error as NodeJS.ErrnoException).code === 'EEXIST' ? readNextKey(dataDir) : null;
    if (other === null) throw error;
    return other;
  }
}

async function stateOf(dataDir: string, { key }: NextKey): Promise<RotationState> {
  // First whether it waits: the agent puts it in force before it takes that away.
  if (readNextKey(dataDir)?.key.publicKey.equals(key.publicKey) === true) return 'waiting';
  const { current } = await loadAgentIdentity(dataDir);
  return current.publicKey.equals(key.publicKey) ? 'in_force' : 'refused';
}
