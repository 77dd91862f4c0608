/**
 * Decides which agents in a run start next. The rows are authoritative: the caller decides again after every change,
 * and after a restart.
 */

export interface WaveRules {
  /** Maximum number of agents that have an operation in the run at the same time. */
  readonly limit: number;
  /** Number of canaries: the agents at the first positions. The other agents start only if all canaries succeed. */
  readonly canary: number;
  /** Maximum number of failures, beyond which the run is halted; null for no limit. */
  readonly maxFailures: number | null;
  /**
   * How to handle an agent that is offline at its turn. `report` ends its turn as offline, but only when
   * no connected agent waits. `queue` queues an operation that takes no slot. `hold` skips the agent until it
   * connects.
   */
  readonly absent: 'report' | 'queue' | 'hold';
}

export interface Candidate {
  readonly node_id: string;
  readonly position: number;
  readonly connected: boolean;
}

export interface RunPicture {
  /** Agents that have not had their turn, by position. */
  readonly waiting: Iterable<Candidate>;
  /** Number of slots in use. */
  readonly taken: number;
  /** Number of agents that did not succeed, including those that were disconnected for too long. */
  readonly failures: number;
  /** Canaries with an unfinished operation. */
  readonly canariesOpen: number;
  /** Canaries that ended without success. */
  readonly canariesFailed: number;
}

export type Wave =
  | { readonly verdict: 'halt'; readonly reason: string }
  | {
      readonly verdict: 'go';
      /** Agents that get an operation now. */
      readonly queue: readonly string[];
      /** Agents to report as offline. */
      readonly report: readonly string[];
      /** Whether few slots are free and more agents wait, so that a larger wave is worth a short wait. */
      readonly isSmall: boolean;
    };

/** Maximum number of agents that get their turn in one transaction. */
const turnsAtOnce = 500;
/** Share of the limit below which a wave counts as small. Most slots stay in use while such a wave waits. */
const smallShare = 1 / 4;

const agents = (count: number) => (count === 1 ? '1 agent' : `${count} agents`);

export function nextWave(rules: WaveRules, picture: RunPicture): Wave {
  if (picture.canariesFailed > 0) return { verdict: 'halt', reason: 'a canary did not succeed' };
  if (rules.maxFailures !== null && picture.failures > rules.maxFailures)
    return {
      verdict: 'halt',
      reason: `${agents(picture.failures)} failed, and the maximum is ${rules.maxFailures}`,
    };
  let slots = Math.max(0, rules.limit - picture.taken);
  let canariesOnly = picture.canariesOpen > 0;
  let noneLeft = true;
  let isFull = false;
  const queue: string[] = [];
  const absent: string[] = [];
  for (const { node_id, position, connected } of picture.waiting) {
    const isCanary = position < rules.canary;
    canariesOnly ||= isCanary;
    if (canariesOnly && !isCanary) break;
    if ((connected && slots === 0) || queue.length === turnsAtOnce) {
      noneLeft = false;
      isFull = queue.length < turnsAtOnce;
      break;
    }
    if (connected) slots--;
    if (connected || rules.absent === 'queue') queue.push(node_id);
    else if (rules.absent === 'report') absent.push(node_id);
  }
  // Does not report absent agents while a connected agent waits, because they may still reconnect.
  const report = noneLeft ? absent.slice(0, turnsAtOnce - queue.length) : [];
  return { verdict: 'go', queue, report, isSmall: isFull && queue.length < rules.limit * smallShare };
}
