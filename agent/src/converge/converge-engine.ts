import type { OperationMessage } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import { errorMessage } from '../../../lib/src/error-message.ts';
import type { Log } from '../../../lib/src/log.ts';
import { isRunning, type ProcessIdentity } from '../../../lib/src/process-identity.ts';
import type { Link } from '../host/firewall/trial.ts';
import { killProcessGroup } from '../host/processes/run-command.ts';
import { Journal } from '../journal/journal.ts';
import { JournalFailure } from '../journal/log.ts';
import type { OperationRecord } from '../journal/state.ts';
import type { ProviderLimits } from '../resources/provider/provider.ts';
import { watchedPaths } from '../resources/registry.ts';
import { Downloads } from './downloads.ts';
import type { AcceptOutcome, Engine, OpenOperation, ReportSpool } from './engine.ts';
import { abandon, execute } from './execute.ts';
import { type Attempt, type ExecutionContext, firstAttempt, Stopped } from './execution-context.ts';
import { appliedResources, observeResources } from './observe.ts';
import { LiveOutput } from './report/live-output.ts';
import { Publisher } from './report/publisher.ts';
import { WantedContents } from './wanted-contents.ts';

export interface EngineOptions {
  /** The agent's data directory, mode 0700. The engine stores its files in `state/` below it. */
  dataDir: string;
  clock: Clock;
  log: Log;
  /** Called after new entries were added to the spool, never from inside `accept`. */
  onReports(): void;
  onOutput?(): void;
  /** Called when an operation is waiting for content that the link must request. */
  onContentsWanted?(): void;
  /** Called when an operation has finished. `succeeded` is true only for an apply that succeeded. */
  onEnded?: (succeeded: boolean, kind: OperationMessage['kind']) => void;
  /**
   * Called after a complete drift check with a fingerprint of each resource's state, by key; empty if the resource is
   * as applied.
   */
  onMeasured?: (fingerprints: ReadonlyMap<string, string>) => void;
  /** Returns the agent's link to its orchestrator; null if it has none. */
  link?: () => Link | null;
  /** Called with the name of each durable step, for tests that kill the agent. */
  crashPoint?: (name: string) => void;
  limits?: ProviderLimits;
  /** Environment variables that specify proxies for downloads. Defaults to those of this process. */
  environment?: Readonly<Record<string, string | undefined>>;
  /** Key for plan digests. Must not change while a plan with a digest that uses this key may be applied. */
  planKey?: Uint8Array;
  /** Maximum size of stored reports, in bytes. Above it, the oldest script output is dropped. */
  spoolBytes?: number;
}

/** Maximum number of open operations. Equals the maximum number in a hello. */
const maxOpen = 64;
/** Milliseconds after which an operation that has not finished is reported as accepted. */
const acceptedAloneMs = 200;
/** Milliseconds for which a program may continue after the agent has begun to stop. */
const stopGraceMs = 20_000;
/** Number of attempts that fail because of a bug after which an operation is abandoned. */
const maxFaults = 3;
/** Milliseconds to wait after a failure before an operation is retried. */
const retryMs = 5_000;

export const defaultLimits: ProviderLimits = {
  scriptMs: 30 * 60_000,
  checkMs: 2 * 60_000,
  outputBytes: 192 * 1024,
  packageMs: 60 * 60_000,
  packageLockMs: 10 * 60_000,
};

/** The engine of the agent. Accesses no files before `start`. */
export class ConvergeEngine implements Engine {
  readonly #options: EngineOptions;
  #journal: Journal | null = null;
  #publisher: Publisher | null = null;
  #stopping = false;
  readonly #stop = new AbortController();
  #current: Promise<void> | null = null;
  /** IDs of the operations being executed: the current one, and canceled ones that are closed before their turn. */
  readonly #executing = new Set<string>();
  /** Number of attempts that failed because of a bug, by operation ID. */
  readonly #faults = new Map<string, number>();
  /** State of started operations that is not yet in the journal, by operation ID. */
  readonly #attempts = new Map<string, Attempt>();
  #process: ProcessIdentity | null = null;
  /** The last `check` or `validate` process, which may have exited, and its operation. */
  #observing: { id: string; process: ProcessIdentity } | null = null;
  /** Whether the grace period of a stop has passed. If so, observing processes are killed as soon as they start. */
  #overdue = false;
  /** Callbacks that cut short the wait before a retry. */
  readonly #wakes = new Set<() => void>();
  /** Whether a write failed, so that the journal must be rewritten before the retry. */
  #needsRewrite = false;
  readonly spool: ReportSpool;
  readonly output: LiveOutput;
  readonly contents: WantedContents;
  readonly #downloads: Downloads;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.output = new LiveOutput(() => options.onOutput?.());
    const journal = () => this.#opened();
    this.contents = new WantedContents(
      () => journal().contents,
      options.clock,
      () => options.onContentsWanted?.(),
    );
    this.#downloads = new Downloads(() => journal().contents, options.clock, options.environment ?? process.env);
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
    this.#journal = await Journal.open(dataDir, this.#options.clock, crashPoint, (detail) => log.error({}, detail));
    this.#publisher = new Publisher(this.#journal, onReports, spoolBytes);
    this.#next();
  }

  async accept(operation: OperationMessage): Promise<AcceptOutcome> {
    const journal = this.#opened();
    const { operation_id: id } = operation;
    const { state } = journal;
    // Awaited before the following checks, so that no other call runs between the checks and `record`.
    await this.#repairJournal();
    const known = state.operations.get(id);
    if (known !== undefined) {
      // The journal entry of the operation may not have reached the disk yet.
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
      // The record may survive a restart, so the operation is executed once the record is synced.
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
    if (operation.cancelled) this.contents.cancel(operationId);
    // An observation can be killed immediately, because it changes nothing.
    if (this.#observing?.id === operationId) killIfRunning(this.#observing.process);
    // Closes a waiting operation without waiting for its turn.
    if (operation.cancelled && !this.#executing.has(operationId))
      this.#executeOne(operation).finally(() => this.#next());
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

  async observe(keys: ReadonlySet<string>): Promise<ReadonlyMap<string, string> | null> {
    const { state } = this.#journal ?? {};
    if (state === undefined || this.#stopping || this.busy()) return null;
    const { applies } = state;
    const context = this.#context('');
    this.#attempts.delete('');
    return await observeResources(appliedResources(state), keys, {
      ...context,
      stopping: () => this.#stopping || this.busy() || state.applies !== applies,
    });
  }

  async halt(): Promise<void> {
    this.#stopping = true;
    this.#stop.abort(new Stopped());
    this.contents.stop(new Stopped());
    this.#downloads.stop(new Stopped());
    for (const wake of this.#wakes) wake();
    const giveUp = this.#options.clock.after(stopGraceMs, () => {
      this.#overdue = true;
      if (this.#process !== null) killProcessGroup(this.#process.pid);
      if (this.#observing !== null) killIfRunning(this.#observing.process);
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

  /** Executes waiting operations one at a time. Does nothing if one is already running. */
  #next(): void {
    if (this.#current !== null || this.#stopping) return;
    const operation = this.#waiting();
    if (operation === null) return;
    this.#current = this.#executeOne(operation).finally(() => {
      this.#current = null;
      if (!this.#stopping) this.#next();
      const { message, finished } = operation;
      this.#options.onEnded?.(message.kind === 'apply' && finished?.status === 'succeeded', message.kind);
    });
  }

  async #executeOne(operation: OperationRecord): Promise<void> {
    const id = operation.message.operation_id;
    this.#executing.add(id);
    try {
      if (this.#needsRewrite || this.#opened().isBroken) {
        await this.#opened().compact();
        this.#needsRewrite = false;
      }
      await execute(operation, this.#context(id));
      await this.#cleanUp(operation.message.kind);
    } catch (error) {
      if (!(error instanceof Stopped)) await this.#failed(operation, error);
    } finally {
      this.#executing.delete(id);
      this.output.forget(id);
      const attempt = this.#attempts.get(id);
      if (operation.state === 'finished') this.#attempts.delete(id);
      else if (attempt !== undefined) attempt.isRetry = true;
    }
  }

  /** Compacts the journal or removes unused copies of file contents. Called between operations. */
  async #cleanUp(kind: OperationMessage['kind']): Promise<void> {
    // Another operation may be running and about to reference a copy.
    if (this.#executing.size > 1) return;
    const journal = this.#opened();
    if (journal.needsCompaction) await journal.rewrite();
    // Retains content that a plan fetched, for the apply that may follow.
    if (kind !== 'apply' || this.#executing.size > 1) return;
    try {
      journal.dropUnusedCopies();
      journal.dropUnusedContents(this.#downloads.incomplete);
    } catch (error) {
      const reason = errorMessage(error);
      this.#options.log.warn({ error: reason }, 'failed to remove unused copies of file contents');
    }
  }

  /**
   * Handles an unexpected failure: a disk error or a bug. The operation is retried later, or abandoned after too many
   * bugs.
   */
  async #failed(operation: OperationRecord, error: unknown): Promise<void> {
    const { log } = this.#options;
    const id = operation.message.operation_id;
    const detail = error instanceof Error ? error.stack : String(error);
    const isBug = !(error instanceof JournalFailure);
    const faults = (this.#faults.get(id) ?? 0) + 1;
    const isLast = isBug && faults === maxFaults;
    const next = isLast ? `giving up after ${maxFaults} failures` : 'will retry';
    log.error({ operation_id: id, error: detail }, `failed to run an operation; ${next}`);
    if (isLast) {
      this.#faults.delete(id);
      const reason = errorMessage(error);
      await abandon(operation, this.#context(id), reason).catch(() => {});
      return;
    }
    if (isBug) this.#faults.set(id, faults);
    else this.#needsRewrite = true;
    await this.#pause();
    // The outcome of the operation is journaled but not reported, and no later event would report it.
    while (operation.state === 'finished' && this.#opened().isBroken && !this.#stopping)
      await this.#repairJournal().catch(() => this.#pause());
  }

  /** Waits before a retry. Returns early if the agent stops. */
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
   * Rewrites the journal after a disk error, and publishes its reports.
   * @throws JournalFailure if the disk still fails
   */
  async #repairJournal(): Promise<void> {
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
      observing: (id, process) => {
        this.#observing = { id, process };
        // The operation may have been canceled before the process was registered.
        if (this.#overdue || this.#journal?.state.operations.get(id)?.cancelled) killIfRunning(process);
      },
      printed: (source, stream, piece) => this.output.add(source, stream, piece),
      contents: this.contents,
      downloads: this.#downloads,
      environment: this.#options.environment ?? process.env,
      warn: (fields, message) => this.#options.log.warn(fields, message),
      link: this.#options.link?.() ?? null,
      measured: (fingerprints) => this.#options.onMeasured?.(fingerprints),
    };
  }

  #reportAccepted(id: string): void {
    const operation = this.#journal?.state.operations.get(id);
    if (operation === undefined || operation.acceptedReported || operation.state === 'finished') return;
    this.#publisherOf()
      .publish('accepted-report', [{ type: 'accepted', operation_id: id }])
      .catch((error: unknown) => this.#options.log.warn({ error: String(error) }, 'failed to journal a report'));
  }

  #acknowledge(seq: number): void {
    const journal = this.#opened();
    const { state } = journal;
    this.#guard('acknowledge', () => {
      if (seq <= state.lastSeq) {
        journal.record('acknowledged', [{ t: 'acknowledged', seq }]);
        return;
      }
      // The orchestrator has stored a higher sequence number than the last one in the journal, so the data directory
      // was lost or is an old copy. The orchestrator has not received the reports in the spool, so they need higher
      // numbers.
      journal.record('renumbered', [{ t: 'renumbered', above: seq }]);
      journal
        .sync()
        .then(() => this.#options.onReports())
        .catch(() => {});
    });
  }

  /** Records an event that may be lost, because the orchestrator will resend it. */
  #guard(what: string, record: () => void): void {
    try {
      record();
    } catch (error) {
      if (!(error instanceof JournalFailure)) throw error;
      this.#needsRewrite = true;
      this.#options.log.warn({ record: what, error: error.message }, 'failed to write a record to the journal');
    }
  }
}

/** Kills the process group, unless the PID now belongs to another process. */
function killIfRunning(process: ProcessIdentity): void {
  if (isRunning(process)) killProcessGroup(process.pid);
}
