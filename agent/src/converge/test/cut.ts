import type { OperationMessage } from '@muster/protocol/wire';
import type { Clock } from '../../../../lib/src/clock.ts';
import { systemClock } from '../../../../lib/src/clock.ts';
import type { EngineOptions } from '../converge-engine.ts';
import { type Reported, startAgent } from './agent.ts';

/** Simulates, in this process, an agent that dies at a journal step. killed.ts kills a real process instead. */

/** A slow clock, so that even on a busy machine no results wait long enough to be flushed in an additional step. */
export const unhurried: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() / 100 };

/**
 * Reports whether a crash point counts as a step. `accepted-report` does not, because it occurs only if the operation
 * takes a long time.
 */
export const isStep = (point: string): boolean => !point.startsWith('accepted-report:');

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** A durable step of an operation. Identified by name, because the number of preceding steps depends on the clock. */
export interface JournalStep {
  point: string;
  /** Occurrence of this name, counted from 1. */
  nth: number;
}

/** Reports whether the last completed step is this step. */
export function isThere(at: JournalStep | number, points: readonly string[]): boolean {
  if (typeof at === 'number') return points.length === at;
  return points.at(-1) === at.point && points.filter((point) => point === at.point).length === at.nth;
}

interface Cut {
  /** Steps that the agent completed before it was cut off. */
  points: string[];
  /** The operation's reports; null if the agent was cut off. */
  reported: Reported | null;
}

/**
 * Runs an operation with an agent that is cut off at a step: nothing that it records after the step reaches the disk.
 * Waits for calls in progress, because, unlike the calls of a dead process, they would otherwise interfere with the
 * next agent.
 * @param at the step, or its number from 1; 0 to never cut
 */
export async function cutOff(
  dataDir: string,
  operation: OperationMessage,
  at: JournalStep | number,
  options: Partial<EngineOptions> = {},
): Promise<Cut> {
  const points: string[] = [];
  let isCut = false;
  let cut = () => {};
  const cutting = new Promise<null>((resolve) => {
    cut = () => resolve(null);
  });
  const agent = await startAgent(dataDir, {
    log: silent,
    clock: unhurried,
    ...options,
    crashPoint(point) {
      if (!isCut) {
        if (!isStep(point)) return;
        points.push(point);
        if (!isThere(at, points)) return;
      }
      isCut = true;
      cut();
      throw new Error('cut off');
    },
  });
  const reported = await Promise.race([cutting, agent.run(operation).catch(() => null)]);
  await agent.stop();
  return { points, reported };
}
