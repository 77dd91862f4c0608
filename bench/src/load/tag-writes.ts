import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@muster/protocol/client';
import { putTag } from '@muster/protocol/http';

/** The type of the event that each write causes. */
export const tagEvent = 'agent.tagged';
const key = 'bench-event';

export interface TagWrites {
  written: number;
  /** Number of failed writes by error message. */
  failures: ReadonlyMap<string, number>;
}

/**
 * Writes a tag of the agents in turn, each time with another value, at a steady rate, without waiting for earlier
 * responses. A failed write is counted, and not repeated.
 * @param calls clients that send the writes in turn
 */
export async function writeTags(
  calls: readonly Client[],
  nodeIds: readonly string[],
  perSecond: number,
  seconds: number,
): Promise<TagWrites> {
  const failures = new Map<string, number>();
  let written = 0;
  const write = async (turn: number) => {
    const params = { node_id: nodeIds[turn % nodeIds.length]!, key };
    try {
      await calls[turn % calls.length]!(putTag, { params, body: { value: `${Date.now()}-${turn}` } });
      written++;
    } catch (error) {
      const { message } = error as Error;
      failures.set(message, (failures.get(message) ?? 0) + 1);
    }
  };
  const writes: Promise<void>[] = [];
  const from = performance.now();
  let due = from;
  for (let turn = 0; due < from + seconds * 1000; turn++) {
    // Exponentially distributed intervals, because requests from independent clients form a Poisson process.
    due += (-Math.log(1 - Math.random()) * 1000) / perSecond;
    const wait = due - performance.now();
    if (wait > 0) await sleep(wait);
    writes.push(write(turn));
  }
  await Promise.all(writes);
  return { written, failures };
}
