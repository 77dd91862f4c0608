import type { Hint } from '../../bus/bus.ts';
import { runBasis, runById, trackedResults } from '../../store/queries/runs.ts';
import type { Placement } from '../replicas/placement.ts';
import { type Context, seconds } from '../shared/context.ts';
import { optionsIn, type RunTerms, rulesOf, termsOf } from './run-basis.ts';
import type { HeldShard } from './run-shards.ts';
import { RunTrack } from './run-track.ts';
import type { WaveRules } from './run-waves.ts';

/**
 * Grace period after a startup or a takeover, in seconds. Agents reconnect during this time, so none counts as absent.
 */
const returnSecs = 60;

/** The in-memory state of an unfinished run. */
export interface RunState {
  /**
   * Null if the run was stopped, or was started by an earlier release. The conductor then only waits for the run to
   * end.
   */
  readonly terms: RunTerms | null;
  readonly track: RunTrack;
  /** The shard under which the state was built. */
  readonly shard: HeldShard;
  readonly rules: WaveRules;
  /** When the grace period ends, in Unix seconds. */
  readonly graceUntil: number;
  /** Whether the track was built during the grace period, in which every agent with an operation takes a slot. */
  readonly inGracePeriod: boolean;
  /** When another process last ended before the state was loaded, in monotonic milliseconds. */
  readonly peerLeftAt: number;
  /** Whether the run changed after the last sweep. */
  moved: boolean;
  /** The timer of a small wave that waits for more free slots; null if none is waiting. */
  gathering: { over: boolean } | null;
}

/** Returns the rules for the grace period, during which absent agents are held. */
export const withGracePeriod = (rules: WaveRules): WaveRules => ({ ...rules, absent: 'hold' });

/** The unfinished runs, built from their rows. */
export class RunStates {
  readonly #context: Context;
  readonly #maxConcurrent: number;
  readonly #placement: Placement;
  readonly #states = new Map<string, RunState>();
  /** Runs whose rows other code changed. */
  readonly #changed = new Set<string>();
  /** Runs that this process began. */
  readonly #started = new Set<string>();

  /**
   * @param maxConcurrent maximum number of agents in a run that have an operation at the same time, unless the run sets
   * a lower number
   * @param placement reports whether other processes record outcomes
   */
  constructor(context: Context, maxConcurrent: number, placement: Placement) {
    this.#context = context;
    this.#maxConcurrent = maxConcurrent;
    this.#placement = placement;
  }

  /** Marks the run as begun by this process, so that it has no grace period. */
  markStarted(runId: string): void {
    this.#started.add(runId);
  }

  /** Marks the run's rows as changed by other code. The next call to {@link current} returns null. */
  changed(runId: string): void {
    this.#changed.add(runId);
  }

  /** Records that an operation of a run ended, if the run's state is in memory. */
  operationEnded(runId: string, { node_id, operation_id, status }: Extract<Hint, { type: 'operation_ended' }>): void {
    const state = this.#states.get(runId);
    if (state === undefined) return;
    state.track.ended(node_id, operation_id, status);
    state.moved = true;
  }

  /**
   * Returns the in-memory state; null if it must be loaded. It must be loaded each time while other processes record
   * outcomes, whose hints may not reach this process, and once after those processes have ended.
   */
  current(runId: string, shard: HeldShard): RunState | null {
    const known = this.#states.get(runId);
    if (known === undefined || known.shard !== shard || this.#changed.has(runId) || this.#placement.shared) return null;
    return known.peerLeftAt === this.#placement.peerLeftAt ? known : null;
  }

  forget(runId: string): void {
    this.#states.delete(runId);
    this.#changed.delete(runId);
    this.#started.delete(runId);
  }

  /**
   * Builds the state from the run's rows.
   * @param shard the run's shard. Nothing is kept from a state that was built before another process may have held it
   * @returns null if the run has ended
   */
  async load(runId: string, shard: HeldShard): Promise<RunState | null> {
    const { db } = this.#context;
    const { peerLeftAt } = this.#placement;
    this.#changed.delete(runId);
    const row = await db.get(runById, { run_id: runId });
    const former = this.#states.get(runId);
    const known = former?.shard === shard ? former : undefined;
    if (!row || row.finished_at !== null) {
      this.#states.delete(runId);
      this.#started.delete(runId);
      return null;
    }
    const startedHere = this.#started.delete(runId) || row.started_at > shard.since;
    const graceUntil = known?.graceUntil ?? (startedHere ? 0 : shard.since + returnSecs);
    const inGracePeriod = this.#now() < graceUntil;
    const basis = row.status === 'running' ? await db.get(runBasis, { run_id: runId }) : undefined;
    const rules = rulesOf(optionsIn(row.options), this.#maxConcurrent);
    const track = await this.#track(runId, inGracePeriod ? withGracePeriod(rules) : rules, known?.track);
    const state: RunState = {
      terms: basis ? (known?.terms ?? termsOf(row, basis.basis)) : null,
      track,
      shard,
      rules,
      graceUntil,
      inGracePeriod,
      peerLeftAt,
      moved: true,
      gathering: known?.gathering ?? null,
    };
    this.#states.set(runId, state);
    return state;
  }

  async #track(runId: string, rules: WaveRules, known: RunTrack | undefined): Promise<RunTrack> {
    const { db, bus, presence } = this.#context;
    const ends: Parameters<RunTrack['ended']>[] = [];
    const unsubscribe = bus.subscribe((hint) => {
      if (hint.type === 'operation_ended' && hint.run_id === runId)
        ends.push([hint.node_id, hint.operation_id, hint.status]);
    });
    const rows = await db.all(trackedResults, { run_id: runId }).finally(unsubscribe);
    const track = new RunTrack(runId, rules, rows, (nodeId) => presence.isConnected(nodeId));
    if (known) track.inherit(known);
    // The rows may lack operations that ended while they were being read.
    for (const end of ends) track.ended(...end);
    return track;
  }

  #now(): number {
    return seconds(this.#context.now());
  }
}
