import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase } from 'pg';

/**
 * Replicas that have a row but hold no lock: killed replicas, and live replicas that have lost their lock and may not
 * have detected the loss yet. Live replicas without a lock must not write while another replica runs a migration that
 * is not compatible with them.
 */

/** Default milliseconds without a heartbeat after which replicas close each other. */
const stillMs = 10_000;
const pauseMs = 250;

interface UnlockedReplica {
  readonly incarnation: string;
  readonly name: string;
  /** A bigint, which the driver returns as text. */
  readonly beat: string;
}

/** @param locked names of the replicas that hold the lock */
export async function unlockedReplicas(client: ClientBase, locked: readonly string[]): Promise<UnlockedReplica[]> {
  const table = await client.query<{ there: boolean }>(`select to_regclass('replicas') is not null as there`);
  if (!table.rows[0]?.there) return [];
  const { rows } = await client.query<UnlockedReplica>(
    'select incarnation, name, beat from replicas where not name = any ($1)',
    [locked],
  );
  return rows;
}

/**
 * Waits until all replicas with a row hold the lock, and closes replicas without a heartbeat, as replicas do for each
 * other. Returns after at most twice the given time, even if some replicas still do not hold the lock.
 * @param lockedNames returns the names of the replicas that hold the lock
 */
export async function closeUnlocked(
  client: ClientBase,
  lockedNames: () => Promise<readonly string[]>,
  closeAfterMs = stillMs,
): Promise<void> {
  const startedAt = performance.now();
  let seen = new Map<string, { beat: string; since: number }>();
  for (;;) {
    const at = performance.now();
    const unlocked = await unlockedReplicas(client, await lockedNames());
    if (unlocked.length === 0 || at - startedAt > 2 * closeAfterMs) return;
    const former = seen;
    seen = new Map();
    for (const { incarnation, beat } of unlocked) {
      const known = former.get(incarnation);
      const now = known?.beat === beat ? known : { beat, since: at };
      seen.set(incarnation, now);
      if (at - now.since >= closeAfterMs)
        await client.query('delete from replicas where incarnation = $1 and beat = $2', [incarnation, beat]);
    }
    await sleep(pauseMs);
  }
}
