import { mkdirSync, rmSync } from 'node:fs';
import type { OperationMessage } from '@muster/protocol/wire';
import { systemClock } from '../../host/clock.ts';
import { startAgent, type TestAgent, type Told } from './agent.ts';

/** One of the durable steps of an operation: by its name, since how many there are before it depends on the clock. */
export interface JournalStep {
  point: string;
  /** Which of those of that name, from 1. */
  nth: number;
}

/** An agent as the provider contract drives it, in this process or in a machine of its own. */
export interface ContractAgent {
  /** Carries out an operation to its end. */
  run(operation: OperationMessage): Promise<Told>;
  /** It loses all that it knows; the machine stays as it is. */
  forget(): Promise<void>;
  /**
   * Has it killed in the middle of an operation, started again, and sent the operation again.
   * @param at the step it dies at, or its number from 1; 0: it is not killed. One that this time does not come kills nobody
   * @returns the steps it passed, up to the one it died at
   */
  killedAt(operation: OperationMessage, at: JournalStep | number): Promise<{ points: string[]; told: Told }>;
  stop(): Promise<void>;
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };

function isThere(at: JournalStep | number, points: readonly string[]): boolean {
  if (typeof at === 'number') return points.length === at;
  return points.at(-1) === at.point && points.filter((point) => point === at.point).length === at.nth;
}

/** @param dataDir made anew: what is there is lost */
export async function contractAgent(dataDir: string): Promise<ContractAgent> {
  const fresh = () => {
    rmSync(dataDir, { recursive: true, force: true });
    mkdirSync(dataDir, { mode: 0o700 });
    return startAgent(dataDir);
  };
  let agent: TestAgent = await fresh();
  return {
    run: (operation) => agent.run(operation),
    stop: () => agent.stop(),
    async forget() {
      await agent.stop();
      agent = await fresh();
    },
    async killedAt(operation, at) {
      await agent.stop();
      const points: string[] = [];
      let dead = () => {};
      const died = new Promise<'cut'>((resolve) => {
        dead = () => resolve('cut');
      });
      let isDead = false;
      const doomed = await startAgent(dataDir, {
        log: silent,
        clock: {
          ...systemClock,
          // A dead one does not try again after a while.
          after: (ms, action) => systemClock.after(ms, () => isDead || action()),
          // Slow: results that waited too long for others are told in a step more, on a busy machine at another each time.
          monotonic: () => systemClock.monotonic() / 100,
        },
        // From that step on, nothing it records reaches the disk: to the next agent it was killed there.
        crashPoint(point) {
          if (!isDead) points.push(point);
          isDead ||= isThere(at, points);
          if (!isDead) return;
          dead();
          throw new Error('cut off');
        },
      });
      const whole = doomed.run(operation).catch(() => null);
      const isWhole = (await Promise.race([died, whole])) !== 'cut';
      if (isWhole) await doomed.stop();
      agent = await startAgent(dataDir);
      await agent.engine.accept(operation);
      return { points, told: await agent.ended(operation.operation_id) };
    },
  };
}
