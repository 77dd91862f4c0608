import type { OperationMessage } from '@muster/protocol/wire';
import type { Clock } from '../../../../lib/src/clock.ts';
import { systemClock } from '../../../../lib/src/clock.ts';
import type { EngineOptions } from '../engine.ts';
import { startAgent, type Told } from './agent.ts';

/** An agent that is cut off at a step of the journal, in this process. The one of killed.ts is really killed. */

/** Results that waited too long for others are told in a step more, on a busy machine at another each time: slow. */
export const unhurried: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() / 100 };

/** Comes when an operation takes long, so its place among the steps is another each time. */
export const isStep = (point: string): boolean => !point.startsWith('accepted-report:');

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** One of the durable steps of an operation: by its name, since how many there are before it depends on the clock. */
export interface JournalStep {
  point: string;
  /** Which of those of that name, from 1. */
  nth: number;
}

/** Whether the last of the steps passed is the one meant. */
export function isThere(at: JournalStep | number, points: readonly string[]): boolean {
  if (typeof at === 'number') return points.length === at;
  return points.at(-1) === at.point && points.filter((point) => point === at.point).length === at.nth;
}

interface Cut {
  /** The steps it passed, up to the one it was cut off at. */
  points: string[];
  /** What it told, when it got through. */
  told: Told | null;
}

/**
 * Carries out an operation with an agent that is cut off at a step: nothing it records from there on reaches the disk.
 * What was on its way then gets done, and nothing of it goes on once this resolves: the next agent would meet it, as it
 * never meets a process that is dead.
 * @param at the step, or its number from 1; 0: never
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
  const told = await Promise.race([cutting, agent.run(operation).catch(() => null)]);
  await agent.stop();
  return { points, told };
}
