import { setTimeout as sleep } from 'node:timers/promises';
import { type Rotation, rotateKey } from './rotate-key.ts';

/** Maximum time to wait for a running agent, which must reconnect, perhaps to a busy orchestrator. */
const waitMs = 30_000;
const exitCodes = { in_force: 0, refused: 1, waiting: 5 } as const;

/**
 * Creates a new key for the agent with this data directory, and prints the result.
 * @returns the exit code
 */
export async function printRotation(dataDir: string, options: { graceSecs: number; json: boolean }): Promise<number> {
  const rotation = await rotateKey(dataDir, options.graceSecs, waitMs, {
    now: () => Math.floor(Date.now() / 1000),
    notify: (pid) => process.kill(pid, 'SIGHUP'),
    sleep: (ms) => sleep(ms),
  });
  process.stdout.write(
    options.json ? `${JSON.stringify(rotation)}\n` : textOf(rotation, Math.floor(Date.now() / 1000)),
  );
  return exitCodes[rotation.state];
}

/**
 * Returns the text for the user.
 * @param now Unix seconds
 */
export function textOf(rotation: Rotation, now: number): string {
  const { node_id, state, key, former_until, was_waiting, agent_runs } = rotation;
  const until =
    former_until > now ? `is valid until ${new Date(former_until * 1000).toISOString()}` : 'is no longer valid';
  const made = was_waiting ? 'A new key was already waiting, so no other key was created.\n' : '';
  if (state === 'in_force') return `${made}Agent ${node_id} has a new key: ${key}\nThe previous key ${until}.\n`;
  if (state === 'refused')
    return `${made}The orchestrator refused the new key; agent ${node_id} keeps its current key. See the agent's log for the reason.\n`;
  const why = agent_runs
    ? "The orchestrator has not accepted it yet: there is no link, a terminal is open on this machine, or the orchestrator is older than protocol version 4. See the agent's log for the reason."
    : 'No agent uses this data directory; the next agent that starts with it presents the key to the orchestrator.';
  return `${made}A new key waits for agent ${node_id}: ${key}\n${why}\n`;
}
