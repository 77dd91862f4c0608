/**
 * Who gets its turn next in a run: decided here, from values alone. Rows are what counts; this is asked again whenever
 * something has changed, and after a restart.
 */

export interface WaveRules {
  /** At most so many agents have an operation of the run at one time. */
  readonly limit: number;
  /** Agents at positions below it go first, and the others only once all of those have succeeded. */
  readonly canary: number;
  /** With more failures the run is halted; null: however many. */
  readonly maxFailures: number | null;
  /**
   * What becomes of an agent that is not connected at its turn: `report` ends it, once nobody who is there waits;
   * `queue` gives it an operation that waits, without taking a place; `hold` passes it over until it is there.
   */
  readonly absent: 'report' | 'queue' | 'hold';
}

export interface Candidate {
  readonly node_id: string;
  readonly position: number;
  readonly connected: boolean;
}

export interface RunPicture {
  /** Who has not had its turn, by position. */
  readonly waiting: Iterable<Candidate>;
  /** How many places are taken. */
  readonly taken: number;
  /** How many did not succeed, with those that have been out of sight for too long. */
  readonly failures: number;
  /** Canaries that have an operation and no end of it yet. */
  readonly canariesOpen: number;
  /** Canaries that have ended otherwise than by success. */
  readonly canariesFailed: number;
}

export type Wave =
  | { readonly verdict: 'halt'; readonly reason: string }
  | {
      readonly verdict: 'go';
      /** Who gets an operation now. */
      readonly queue: readonly string[];
      /** Who is told of as not connected. */
      readonly report: readonly string[];
    };

/** Agents that get their turn in one unit. */
const turnsAtOnce = 500;

const agents = (count: number) => (count === 1 ? '1 agent' : `${count} agents`);

export function nextWave(rules: WaveRules, picture: RunPicture): Wave {
  if (picture.canariesFailed > 0) return { verdict: 'halt', reason: 'a canary did not succeed' };
  if (rules.maxFailures !== null && picture.failures > rules.maxFailures)
    return {
      verdict: 'halt',
      reason: `${agents(picture.failures)} failed, and at most ${rules.maxFailures} may`,
    };
  let places = Math.max(0, rules.limit - picture.taken);
  let canariesOnly = picture.canariesOpen > 0;
  let everybodySeen = true;
  const queue: string[] = [];
  const absent: string[] = [];
  for (const { node_id, position, connected } of picture.waiting) {
    const isCanary = position < rules.canary;
    canariesOnly ||= isCanary;
    if (canariesOnly && !isCanary) break;
    if ((connected && places === 0) || queue.length === turnsAtOnce) {
      everybodySeen = false;
      break;
    }
    if (connected) places--;
    if (connected || rules.absent === 'queue') queue.push(node_id);
    else if (rules.absent === 'report') absent.push(node_id);
  }
  // As long as somebody who is there waits, those who are away may come back.
  return { verdict: 'go', queue, report: everybodySeen ? absent.slice(0, turnsAtOnce - queue.length) : [] };
}
