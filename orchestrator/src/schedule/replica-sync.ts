import type { Clock } from '../../../lib/src/clock.ts';
import { type FollowerParts, ReplicaFollower } from '../domain/presence/follow-replicas.ts';

/** Follows other replicas about once a second. */

const intervalMs = 1_000;

export interface ReplicaSync {
  stop(): Promise<void>;
}

export function startReplicaSync(parts: FollowerParts & { readonly clock: Clock }): ReplicaSync {
  const { context, clock } = parts;
  const work = new ReplicaFollower(parts);
  let stopped = false;
  let cancelTimer = () => {};
  let running: Promise<void> = Promise.resolve();
  const schedule = (ms: number) => {
    cancelTimer = clock.after(ms, () => {
      const startedAt = clock.monotonic();
      running = work.turn().then(() => {
        if (!stopped) schedule(Math.max(0, intervalMs - (clock.monotonic() - startedAt)));
      });
    });
  };
  schedule(intervalMs);
  context.log.info({}, 'sharing the database with other replicas');
  return {
    async stop() {
      stopped = true;
      cancelTimer();
      await running;
    },
  };
}
