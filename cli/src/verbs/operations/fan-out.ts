import type { Command } from 'commander';
import type { FanOut } from '../../execution/apply-view.ts';
import { usageError } from '../../exit.ts';
import { parseCount, parseDuration } from '../../text/values.ts';

/** Options that pace an apply on many agents, and their values in the API. */

export interface FanOutOptions {
  canary?: string;
  batch?: string;
  maxFailures?: string;
  ttl?: string;
}

const maxAgents = 1_000_000;

export const fanOutOptions = (command: Command): Command =>
  command
    .option('--canary <n>', 'Agents to apply to first; continue if all succeed')
    .option('--batch <n>', 'Agents at a time: a number, or a share such as 25%')
    .option('--max-failures <n>', 'Halt after more failures than this');

/** Parses the pacing options. @throws CliError (usage) */
export function fanOutOf({ canary, batch, maxFailures }: FanOutOptions): FanOut & { max_failures?: number } {
  const share = batch !== undefined && /^([1-9]\d?|100)%$/.test(batch);
  return {
    ...(canary === undefined ? {} : { canary: parseCount('--canary', canary, 1, maxAgents) }),
    ...(batch === undefined ? {} : { batch: share ? batch : parseCount('--batch', batch, 1, maxAgents) }),
    ...(maxFailures === undefined ? {} : { max_failures: parseCount('--max-failures', maxFailures, 0, maxAgents) }),
  };
}

/** Parses the options for offline agents. @throws CliError (usage) */
export function waitOf({ ttl }: FanOutOptions, queue: boolean): { offline?: 'queue'; ttl?: number } {
  if (ttl !== undefined && !queue) throw usageError('--ttl needs --queue');
  return {
    ...(queue ? { offline: 'queue' as const } : {}),
    ...(ttl === undefined ? {} : { ttl: parseDuration(ttl) }),
  };
}
