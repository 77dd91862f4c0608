import { setTimeout as sleep } from 'node:timers/promises';
import { type Rotation, rotateKey } from './rotate-key.ts';

/** A running agent is waited for so long: its link begins anew, and an orchestrator under load lets it wait. */
const waitMs = 30_000;
const exitCodes = { in_force: 0, refused: 1, waiting: 5 } as const;

/**
 * Gives the agent of a data directory a new key and prints what came of it.
 * @returns the exit code
 */
export async function sayRotation(dataDir: string, wish: { graceSecs: number; json: boolean }): Promise<number> {
  const rotation = await rotateKey(dataDir, wish.graceSecs, waitMs, {
    now: () => Math.floor(Date.now() / 1000),
    nudge: (pid) => process.kill(pid, 'SIGHUP'),
    sleep: (ms) => sleep(ms),
  });
  process.stdout.write(wish.json ? `${JSON.stringify(rotation)}\n` : textOf(rotation, Math.floor(Date.now() / 1000)));
  return exitCodes[rotation.state];
}

/** @param now Unix seconds */
export function textOf(rotation: Rotation, now: number): string {
  const { node_id, state, key, former_until, was_waiting, agent_runs } = rotation;
  const until = former_until > now ? `is good until ${new Date(former_until * 1000).toISOString()}` : 'is good no more';
  const made = was_waiting ? 'A new key was waiting already, as it was made then; no other was made.\n' : '';
  if (state === 'in_force') return `${made}Agent ${node_id} has a new key: ${key}\nThe former one ${until}.\n`;
  if (state === 'refused')
    return `${made}The orchestrator did not take the new key; agent ${node_id} keeps the one it has. Its log says why.\n`;
  const why = agent_runs
    ? 'The agent has not been welcomed under it yet: there is no link, a terminal is open on this machine, or the orchestrator is of a release before 4 of the protocol. Its log says which.'
    : 'No agent runs on this directory: it is shown at the next start.';
  return `${made}A new key waits for agent ${node_id}: ${key}\n${why}\n`;
}
