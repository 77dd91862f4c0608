import type { Hello, OperationMessage, Report } from '@muster/protocol/wire';
import type { Clock } from '../host/clock.ts';
import { isRunning, killProcessGroup, type ProcessIdentity } from '../host/processes/run-command.ts';
import { Journal } from '../journal/journal.ts';
import { JournalFailure } from '../journal/log.ts';
import type { OperationRecord } from '../journal/state.ts';
import type { ProviderLimits } from '../resources/provider/provider.ts';
import { watchedPaths } from '../resources/provider/registry.ts';
import { abandon, execute } from './execute.ts';
import { appliedResources, lookAt } from './observe.ts';
import { type Attempt, type ExecutionContext, firstAttempt, Stopped } from './progress.ts';
import { LiveOutput, type OutputTail } from './report/live-output.ts';
import { Publisher } from './report/publisher.ts';

/**
 * The face of the state engine towards the connection. The engine takes operations, carries them out one at a time and
 * leaves what is to be told in the spool; it knows nothing of links. All methods but `start`, `accept` and `stop`
 * answer at once from memory.
 */
export interface Engine {
  /**
   * Opens the journal, recovers, and carries on with what was unfinished. Called once, before anything else.
   * Resolves when the journal is read; unfinished operations go on in the background.
   * @throws when the data directory is unusable or has too loose a mode
   */
  start(): Promise<void>;
  /**
   * Takes an operation. Resolves once it is in the journal, on disk.
   * `known`: this id was taken before; it is not executed again, what there is to tell about it is (again) in the
   * spool. `full`: 64 operations are open; nothing was taken, it may be sent again later.
   */
  accept(operation: OperationMessage): Promise<AcceptOutcome>;
  /** Ends an operation between two resources; one that has not begun ends at once. An unknown id is ignored. */
  cancel(operationId: string): void;
  /** What the hello states: everything whose end is not acknowledged. */
  openOperations(): OpenOperation[];
  readonly spool: ReportSpool;
  /** What the program that is running has printed and nobody was told yet. */
  readonly output: OutputTail;
  /**
   * The orchestrator already holds the end of these operations: they are no longer open. One that has not begun is
   * dropped, one that runs ends between two resources.
   */
  settle(operationIds: readonly string[]): void;
  /** True while an operation runs or waits. */
  busy(): boolean;
  /** What applies have put in place, by key the paths whose change may mean that it differs now; with how many there were. */
  applied(): { applies: number; watched: ReadonlyMap<string, readonly string[]> };
  /**
   * Looks at some of it as a drift check would, and tells nobody.
   * @returns how each looks, by key, as `measured` has it; null when an operation runs or came between
   */
  look(keys: ReadonlySet<string>): Promise<ReadonlyMap<string, string> | null>;
  /** Lets the current resource end (up to a limit) and begins no other. Acknowledgements are taken as before. */
  halt(): Promise<void>;
  /** Halts, and closes the journal: nothing may be asked of it any more. What is unfinished goes on at the next start. */
  stop(): Promise<void>;
}

export type AcceptOutcome = 'accepted' | 'known' | 'full';
export type OpenOperation = Hello['open_operations'][number];

/** What must reach the orchestrator. An entry is synced to disk before it can be seen here. */
export interface ReportSpool {
  /** Entries with a sequence number above `afterSeq`, oldest first. Safe to abandon half way. */
  pending(afterSeq: number): Iterable<SpoolEntry>;
  /** Everything up to and including `seq` is committed by the orchestrator and is forgotten here. */
  acknowledge(seq: number): void;
  /** Highest sequence number given so far, 0 before the first. */
  lastSeq(): number;
}

export interface SpoolEntry {
  seq: number;
  reports: Report[];
  /** Length in bytes of the JSON text of `reports`. */
  bytes: number;
}

export interface EngineLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface EngineOptions {
  /** The agent's data directory, 0700; the engine keeps its files in `state/` below it. */
  dataDir: string;
  clock: Clock;
  log: EngineLog;
  /** Called after new entries have been added to the spool, never from inside `accept`. */
  onReports(): void;
  /** Called when there is something in `output` to take. */
  onOutput?(): void;
  /** An operation has ended. @param succeeded it was an apply, and did */
  onEnded?: (succeeded: boolean, kind: OperationMessage['kind']) => void;
  /** A drift check has ended that looked at all there is: how each resource looks, by key; empty: as applied. */
  onMeasured?: (looks: ReadonlyMap<string, string>) => void;
  /** For tests that kill the agent: called with its name at each durable step. */
  crashPoint?: (name: string) => void;
  limits?: ProviderLimits;
  /** Under which plans are summed up; the same for as long as its plans are to be known again. */
  planKey?: Uint8Array;
  /** Bytes of reports that are kept; beyond it, output of scripts is given up. */
  spoolBytes?: number;
}

/** How many operations may be open at a time: what a hello has room for. */
const maxOpen = 64;
/** `accepted` is told alone when the operation takes longer than this. Milliseconds. */
const acceptedAloneMs = 200;
/** How long a script may go on when the agent stops. Milliseconds. */
const stopGraceMs = 20_000;
/** An operation that met so many faults of the agent itself is given up. */
const maxFaults = 3;
/** Pause before the disk is tried again. Milliseconds. */
const retryMs = 5_000;

export const defaultLimits: ProviderLimits = {
  scriptMs: 30 * 60_000,
  checkMs: 2 * 60_000,
  outputBytes: 192 * 1024,
  packageMs: 60 * 60_000,
  packageLockMs: 10 * 60_000,
};

/** Builds an engine; nothing is touched before `start`. */
export function createEngine(options: EngineOptions): Engine {
  return new ConvergeEngine(options);
}

class ConvergeEngine implements Engine {
  readonly #options: EngineOptions;
  #journal: Journal | null = null;
  #publisher: Publisher | null = null;
  #stopping = false;
  readonly #stop = new AbortController();
  /** The operation being carried out, if any. */
  #current: Promise<void> | null = null;
  /** Operations being carried out: the current one, and those that wait no longer because they are cancelled. */
  readonly #executing = new Set<string>();
  /** How often an operation met a fault of the agent itself. */
  readonly #faults = new Map<string, number>();
  /** What this process knows of the operations it has begun to carry out. */
  readonly #attempts = new Map<string, Attempt>();
  #process: ProcessIdentity | null = null;
  /** What was started last to look at something, for which operation: a `check` or `validate`. It may have ended. */
  #looking: { id: string; process: ProcessIdentity } | null = null;
  /** Nothing that is started may go on: the agent has waited long enough with its stop. */
  #overdue = false;
  /** What waits to try the disk again. */
  readonly #wakes = new Set<() => void>();
  /** What was refused by the disk and is tried again: the journal is rewritten first. */
  #suspect = false;
  readonly spool: ReportSpool;
  readonly output: LiveOutput;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.output = new LiveOutput(() => options.onOutput?.());
    const journal = () => this.#opened();
    this.spool = {
      *pending(afterSeq) {
        const { state } = journal();
        for (const entry of state.spool.values()) {
          if (entry.seq > journal().visibleSeq) return;
          if (entry.seq > afterSeq) yield entry;
        }
      },
      acknowledge: (seq) => this.#acknowledge(seq),
      lastSeq: () => journal().visibleSeq,
    };
  }

  async start(): Promise<void> {
    const { dataDir, log, crashPoint = () => {}, onReports, spoolBytes } = this.#options;
    this.#journal = await Journal.open(dataDir, crashPoint, (detail) => log.error({}, detail));
    this.#publisher = new Publisher(this.#journal, onReports, spoolBytes);
    this.#next();
  }

  async accept(operation: OperationMessage): Promise<AcceptOutcome> {
    const journal = this.#opened();
    const { operation_id: id } = operation;
    const { state } = journal;
    // Nothing else may be about to mend it.
    await this.#mend();
    const known = state.operations.get(id);
    if (known !== undefined) {
      // Its line may still be on its way to the disk.
      await journal.sync();
      return 'known';
    }
    const past = state.past.get(id);
    if (past !== undefined) {
      await this.#publisherOf().publish('again', [past]);
      return 'known';
    }
    if (state.operations.size >= maxOpen || this.#stopping) return 'full';
    journal.record('accepted', [{ t: 'accepted', message: operation }]);
    try {
      await journal.sync();
    } catch (error) {
      // It is on record, and may outlive the agent: it is carried out as soon as that is sure.
      this.#next();
      throw error;
    }
    this.#options.crashPoint?.('accepted:synced');
    this.#options.clock.after(acceptedAloneMs, () => this.#reportAccepted(id));
    this.#next();
    return 'accepted';
  }

  cancel(operationId: string): void {
    const journal = this.#opened();
    const operation = journal.state.operations.get(operationId);
    if (operation === undefined || operation.state === 'finished' || operation.cancelled) return;
    this.#guard('cancel', () => journal.record('cancelled', [{ t: 'cancelled', id: operationId }]));
    // What only looks is not waited for; nothing is left half done.
    if (this.#looking?.id === operationId) killIfRunning(this.#looking.process);
    // One that waits does not wait for its turn to end.
    if (operation.cancelled && !this.#executing.has(operationId)) this.#carryOut(operation).finally(() => this.#next());
  }

  openOperations(): OpenOperation[] {
    return [...this.#opened().state.operations.values()].map(({ message, state }) => ({
      operation_id: message.operation_id,
      state,
    }));
  }

  settle(operationIds: readonly string[]): void {
    const journal = this.#opened();
    for (const id of operationIds) this.cancel(id);
    this.#guard('settle', () => journal.record('settled', [{ t: 'settled', ids: [...operationIds] }]));
  }

  busy(): boolean {
    return this.#current !== null || this.#waiting() !== null;
  }

  applied(): ReturnType<Engine['applied']> {
    if (this.#journal === null) return { applies: 0, watched: new Map() };
    const { state } = this.#journal;
    const watched = appliedResources(state).map((resource) => [resource.key, watchedPaths(resource)] as const);
    return { applies: state.applies, watched: new Map(watched) };
  }

  async look(keys: ReadonlySet<string>): Promise<ReadonlyMap<string, string> | null> {
    const { state } = this.#journal ?? {};
    if (state === undefined || this.#stopping || this.busy()) return null;
    const { applies } = state;
    const resources = appliedResources(state).filter(({ key }) => keys.has(key));
    const context = this.#context('');
    this.#attempts.delete('');
    return await lookAt(resources, {
      ...context,
      stopping: () => this.#stopping || this.busy() || state.applies !== applies,
    });
  }

  async halt(): Promise<void> {
    this.#stopping = true;
    this.#stop.abort();
    for (const wake of this.#wakes) wake();
    const giveUp = this.#options.clock.after(stopGraceMs, () => {
      this.#overdue = true;
      if (this.#process !== null) killProcessGroup(this.#process.pid);
      if (this.#looking !== null) killIfRunning(this.#looking.process);
    });
    await this.#current;
    giveUp();
  }

  async stop(): Promise<void> {
    await this.halt();
    await this.#journal?.close();
    this.#journal = null;
  }

  #opened(): Journal {
    if (this.#journal === null) throw new Error('the engine is not running');
    return this.#journal;
  }

  #publisherOf(): Publisher {
    if (this.#publisher === null) throw new Error('the engine is not running');
    return this.#publisher;
  }

  #waiting(): OperationRecord | null {
    for (const operation of this.#opened().state.operations.values())
      if (operation.state !== 'finished' && !this.#executing.has(operation.message.operation_id)) return operation;
    return null;
  }

  /** Carries out what waits, one after the other, unless that is being done already. */
  #next(): void {
    if (this.#current !== null || this.#stopping) return;
    const operation = this.#waiting();
    if (operation === null) return;
    this.#current = this.#carryOut(operation).finally(() => {
      this.#current = null;
      if (!this.#stopping) this.#next();
      const { message, finished } = operation;
      this.#options.onEnded?.(message.kind === 'apply' && finished?.status === 'succeeded', message.kind);
    });
  }

  async #carryOut(operation: OperationRecord): Promise<void> {
    const id = operation.message.operation_id;
    this.#executing.add(id);
    try {
      if (this.#suspect || this.#opened().isBroken) {
        await this.#opened().compact();
        this.#suspect = false;
      }
      await execute(operation, this.#context(id));
      await this.#tidy(operation.message.kind);
    } catch (error) {
      if (!(error instanceof Stopped)) await this.#failed(operation, error);
    } finally {
      this.#executing.delete(id);
      this.output.forget(id);
      const attempt = this.#attempts.get(id);
      if (operation.state === 'finished') this.#attempts.delete(id);
      else if (attempt !== undefined) attempt.again = true;
    }
  }

  /** Between operations: makes the journal short again, and removes copies of what has come back. */
  async #tidy(kind: OperationMessage['kind']): Promise<void> {
    // A cancelled operation ends while another is carried out, which may be about to refer to a copy.
    if (this.#executing.size > 1) return;
    const journal = this.#opened();
    if (journal.wantsCompaction) return journal.compact();
    if (kind !== 'apply') return;
    try {
      journal.dropUnusedCopies();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.log.warn({ error: reason }, 'copies that are needed no more could not be removed');
    }
  }

  /** What must not happen happened: the disk refused, or there is a fault in here. The operation goes on later. */
  async #failed(operation: OperationRecord, error: unknown): Promise<void> {
    const { log } = this.#options;
    const id = operation.message.operation_id;
    const detail = error instanceof Error ? error.stack : String(error);
    log.error({ operation_id: id, error: detail }, 'operation interrupted, it is tried again');
    if (error instanceof JournalFailure) this.#suspect = true;
    else {
      const faults = (this.#faults.get(id) ?? 0) + 1;
      this.#faults.set(id, faults);
      if (faults === maxFaults) {
        this.#faults.delete(id);
        const reason = error instanceof Error ? error.message : String(error);
        await abandon(operation, this.#context(id), reason).catch(() => {});
        return;
      }
    }
    await this.#pause();
    // Its end is on record and cannot be told: nothing would come to it again.
    while (operation.state === 'finished' && this.#opened().isBroken && !this.#stopping)
      await this.#mend().catch(() => this.#pause());
  }

  /** Until the disk is tried again, or the agent is to stop. */
  async #pause(): Promise<void> {
    if (this.#stopping) return;
    await new Promise<void>((resolve) => {
      this.#wakes.add(resolve);
      this.#options.clock.after(retryMs, () => {
        this.#wakes.delete(resolve);
        resolve();
      });
    });
  }

  /**
   * After the disk refused: what is recorded is written anew, and told.
   * @throws JournalFailure when it still refuses
   */
  async #mend(): Promise<void> {
    const journal = this.#opened();
    if (!journal.isBroken) return;
    await journal.rewrite();
    if (await journal.sync()) this.#options.onReports();
  }

  #context(operationId: string): ExecutionContext {
    const attempt = this.#attempts.get(operationId) ?? firstAttempt();
    this.#attempts.set(operationId, attempt);
    const { clock, crashPoint = () => {}, limits = defaultLimits, planKey = new Uint8Array() } = this.#options;
    return {
      journal: this.#opened(),
      publisher: this.#publisherOf(),
      clock,
      limits,
      planKey,
      crashPoint,
      attempt,
      stopping: () => this.#stopping,
      stop: this.#stop.signal,
      running: (process) => {
        this.#process = process;
      },
      looking: (id, process) => {
        this.#looking = { id, process };
        // It may have been cancelled just before there was a process.
        if (this.#overdue || this.#journal?.state.operations.get(id)?.cancelled) killIfRunning(process);
      },
      printed: (source, stream, piece) => this.output.add(source, stream, piece),
      warn: (fields, message) => this.#options.log.warn(fields, message),
      measured: (looks) => this.#options.onMeasured?.(looks),
    };
  }

  #reportAccepted(id: string): void {
    const operation = this.#journal?.state.operations.get(id);
    if (operation === undefined || operation.acceptedReported || operation.state === 'finished') return;
    this.#publisherOf()
      .publish('accepted-report', [{ type: 'accepted', operation_id: id }])
      .catch((error: unknown) => this.#options.log.warn({ error: String(error) }, 'the journal did not take a report'));
  }

  #acknowledge(seq: number): void {
    const journal = this.#opened();
    const { state } = journal;
    this.#guard('acknowledge', () => {
      if (seq <= state.lastSeq) {
        journal.record('acknowledged', [{ t: 'acknowledged', seq }]);
        return;
      }
      // It has more from this agent than the agent ever numbered: the data directory was lost, or is an old copy.
      // What is here is new to it, under whatever number.
      journal.record('renumbered', [{ t: 'renumbered', above: seq }]);
      journal
        .sync()
        .then(() => this.#options.onReports())
        .catch(() => {});
    });
  }

  /** What is only remembered for later may be lost without harm: it is told again. */
  #guard(what: string, record: () => void): void {
    try {
      record();
    } catch (error) {
      if (!(error instanceof JournalFailure)) throw error;
      this.#suspect = true;
      this.#options.log.warn({ error: error.message }, `the journal did not take: ${what}`);
    }
  }
}

/** Its number may be another's by now. */
function killIfRunning(process: ProcessIdentity): void {
  if (isRunning(process)) killProcessGroup(process.pid);
}
