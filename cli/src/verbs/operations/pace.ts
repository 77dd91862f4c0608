import type { Command } from 'commander';
import type { Pace } from '../../execution/apply-view.ts';
import { usageError } from '../../exit.ts';
import { parseCount, parseDuration } from '../../text/values.ts';

/** How an apply on many agents is to go: the options of it, and what the API takes for them. */

export interface PaceOptions {
  canary?: string;
  batch?: string;
  maxFailures?: string;
  ttl?: string;
}

const mostAgents = 1_000_000;

export const paceOptions = (command: Command): Command =>
  command
    .option('--canary <n>', 'so many agents first, the others only once all of these have succeeded')
    .option('--batch <n>', 'at most so many agents at one time: a number, or a share such as 25%')
    .option('--max-failures <n>', 'halt when more agents than that have failed');

/** What the options say. @throws CliError (usage) */
export function paceOf({ canary, batch, maxFailures }: PaceOptions): Pace & { max_failures?: number } {
  const share = batch !== undefined && /^([1-9]\d?|100)%$/.test(batch);
  return {
    ...(canary === undefined ? {} : { canary: parseCount('--canary', canary, 1, mostAgents) }),
    ...(batch === undefined ? {} : { batch: share ? batch : parseCount('--batch', batch, 1, mostAgents) }),
    ...(maxFailures === undefined ? {} : { max_failures: parseCount('--max-failures', maxFailures, 0, mostAgents) }),
  };
}

/** What becomes of agents that are away. @throws CliError (usage) */
export function waitOf({ ttl }: PaceOptions, queue: boolean): { offline?: 'queue'; ttl?: number } {
  if (ttl !== undefined && !queue) throw usageError('--ttl is for --queue');
  return {
    ...(queue ? { offline: 'queue' as const } : {}),
    ...(ttl === undefined ? {} : { ttl: parseDuration(ttl) }),
  };
}
