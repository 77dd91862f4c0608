import type { ResourceResult } from '@muster/protocol';
import { summarise } from '@muster/protocol';
import type { Report } from '@muster/protocol/wire';
import type { ProcessIdentity } from '../../../lib/src/process-identity.ts';
import { HostFailure } from '../host/failure.ts';
import { JournalFailure } from '../journal/log.ts';
import type { FinishedReport, JournalEvent, OperationRecord } from '../journal/state.ts';
import type { Json, Outcome, Provider } from '../resources/provider/provider.ts';
import { type ExecutionContext, Stopped } from './execution-context.ts';
import { MachineView } from './machine-view.ts';
import type { Decision, Observation } from './plan/decision.ts';
import { providerFor, whyNoProvider } from './plan/find-provider.ts';
import type { Step } from './plan/steps.ts';
import { StepsState } from './plan/steps-state.ts';
import { redactOutput, sensitiveFields } from './report/redact.ts';
import { fittingReport, fittingResult } from './report/report-size-limit.ts';
import { failedResult, failureSummary, noted, resultOf } from './result.ts';

/** Maximum time for which results are collected before they are reported together. */
export const maxResultDelayMs = 200;
/** Time after which long work yields to the event loop. */
const yieldAfterMs = 25;

/** An operation in progress, with its unpublished reports and journal events. */
export class Progress {
  readonly operation: OperationRecord;
  readonly context: ExecutionContext;
  readonly id: string;
  readonly view: MachineView;
  #reports: Report[] = [];
  /** Journal events to write together with the reports. */
  #events: JournalEvent[] = [];
  #lateEvents: JournalEvent[] = [];
  /** Output of the last program, reported right after its result. */
  readonly #outputs: Report[] = [];
  flushedAt: number;
  #lastYield: number;
  /** All results so far, without diffs and changes. */
  readonly results: ResourceResult[] = [];
  /** Digest of a completed plan; null for other operations. */
  planDigest: string | null = null;
  /** Number of reported results. A drift check reports only the resources that have drifted. */
  reported = 0;
  /** Whether there is a skipped resource with a condition that is not in the journal yet. */
  hasUnflushedSkip = false;
  #steps: readonly Step[] = [];
  /** Steps that other resources trigger immediately, by key of the triggering resource. */
  #immediate: ReadonlyMap<string, readonly Step[]> = new Map();

  constructor(operation: OperationRecord, context: ExecutionContext) {
    this.operation = operation;
    this.context = context;
    this.id = operation.message.operation_id;
    this.flushedAt = context.clock.monotonic();
    this.#lastYield = performance.now();
    this.view = new MachineView(operation, context);
  }

  setSteps(steps: readonly Step[]): void {
    this.view.setSteps(steps);
    this.#steps = steps;
    const triggered = steps.flatMap((step) =>
      step.kind === 'remove' ? [] : (step.resource.immediate_on ?? []).map((key) => ({ key, step })),
    );
    this.#immediate = new Map(
      [...Map.groupBy(triggered, ({ key }) => key)].map(([key, of]) => [key, of.map(({ step }) => step)]),
    );
  }

  /**
   * Returns the steps that are executed right after this one if it changes, in order. They are also executed at their
   * own positions.
   */
  triggeredImmediately({ kind, resource }: Step): readonly Step[] {
    return kind === 'remove' ? [] : (this.#immediate.get(resource.key) ?? []);
  }

  /** Reports whether no later resource triggers the service immediately. */
  isLastTrigger({ position }: Step, service: Step): boolean {
    const { immediate_on = [] } = service.resource;
    return !this.#steps.some(
      ({ kind, resource, position: other }) =>
        other > position && kind === 'apply' && immediate_on.includes(resource.key),
    );
  }

  /** Reports whether the resource must be restored if a service that it triggers immediately fails after the change. */
  isOnTrial(step: Step): boolean {
    return this.triggeredImmediately(step).some(isConfirmed);
  }

  /**
   * Journals that the operation has started.
   * @param removals keys of resources to remove, in order; a resumed operation uses the same list
   */
  begin(removals: string[]): void {
    const at = Math.floor(this.context.clock.now() / 1000);
    this.context.journal.record('began', [{ t: 'began', id: this.id, at, removals }]);
  }

  /**
   * Reports whether the operation is canceled.
   * @throws Stopped if the agent must stop
   */
  interrupted(): boolean {
    if (this.context.stopping()) throw new Stopped();
    return this.operation.cancelled;
  }

  /**
   * Observes one resource. Returns the reason if the resource cannot be observed.
   * @throws Stopped if the agent must stop
   */
  async observe(step: Step, stepsState: StepsState): Promise<Observation> {
    const { resource, kind, record } = step;
    const provider = providerFor(step);
    if (provider === null) return { failure: whyNoProvider(resource) };
    const before = record?.before ?? null;
    // A removal without a recorded original state changes nothing, so there is nothing to observe.
    if (kind === 'remove' && before === null) return { seen: null };
    try {
      provider.check(resource);
      let ran = false;
      const machine = this.view.machine((process) => {
        ran = true;
        this.context.observing(this.id, process);
      });
      const looked =
        kind === 'apply' || before === null
          ? provider.observe(resource, stepsState.circumstances(step), machine)
          : provider.observeForRemoval(resource, before, machine);
      const seen = looked instanceof Promise ? await looked : looked;
      // The cancellation may have killed the process, so its result is meaningless.
      if (ran && this.interrupted()) return { failure: 'the operation was canceled while the resource was observed' };
      return { seen };
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
      // The stop may have caused the failure, so the next start observes the resource again.
      if (this.context.stopping()) throw new Stopped();
      return { failure: error.message };
    }
  }

  /**
   * Reports whether a resource was as declared before Muster managed it and has changed since. Its current state is
   * then not the original one and must not be restored, so a removal leaves the declared state.
   */
  async originalIsLost({ record }: Step, provider: Provider): Promise<boolean> {
    if (record?.succeeded == null || record.before !== null || record.succeeded.type !== provider.type) return false;
    const { succeeded } = record;
    const stepsState = new StepsState('drift', new Map(), []);
    const step: Step = { position: 0, kind: 'apply', resource: succeeded, record };
    const observation = await this.observe(step, stepsState);
    if (!('seen' in observation)) return true;
    try {
      return provider.diff(succeeded, observation.seen, stepsState.circumstances(step)).action !== 'none';
    } catch (error) {
      if (error instanceof HostFailure) return true;
      throw error;
    }
  }

  /** Returns the result of an applied step, and collects its output for the report. */
  ended(step: Step, decision: Decision, outcome: Outcome, ms: number): ResourceResult {
    const sensitive = sensitiveFields(step.resource, step.record);
    const output = redactOutput(outcome.output, sensitive);
    const { module, identity } = step.resource;
    if (output !== undefined && (output.stdout !== '' || output.stderr !== '' || output.exitCode !== 0))
      this.#outputs.push(
        fittingReport({
          type: 'output',
          operation_id: this.id,
          resource: `${module}/${identity}`,
          stdout: output.stdout,
          stderr: output.stderr,
          exit_code: output.exitCode,
          truncated: output.truncated,
        }),
      );
    const words = sensitive.length > 0 ? '' : (outcome.words ?? '');
    if (outcome.failure !== undefined) return failedResult(step, decision, `${outcome.failure}${words}`, ms);
    // A message from the execution takes precedence over a message from the decision.
    const reported = outcome.message === undefined ? decision : noted(decision, outcome.message);
    return resultOf(step, reported, 'changed', ms);
  }

  /** Journals a step's process, so that the next agent can wait for it. */
  recordProcess(position: number, process: ProcessIdentity, before: Json | null): void {
    try {
      this.context.journal.record('process', [{ t: 'step', id: this.id, position, process, before }]);
    } catch (error) {
      // Ignores a failure, because the journal already records that the step started. Only the ability to wait for the
      // process is lost.
      if (!(error instanceof JournalFailure)) throw error;
    }
  }

  /** Stores the result of a step in memory, in case the journal write fails. */
  keepEnded({ position }: Step, result: ResourceResult, before: Json | null): void {
    this.context.attempt.ended = { position, result, before, outputs: [...this.#outputs] };
  }

  /** Returns the result of a step that this process executed but could not journal; null if there is none. */
  takeEnded({ position, kind, resource }: Step): ResourceResult | null {
    const { ended } = this.context.attempt;
    if (ended?.position !== position) return null;
    this.#outputs.push(...ended.outputs);
    if (kind === 'apply') this.recordBefore(resource.key, ended.before);
    return ended.result;
  }

  /** The reason for the interruption, for messages. */
  get interruption(): string {
    return this.context.attempt.isRetry ? 'the agent had an internal error' : 'the agent was restarted';
  }

  /** Adds an event that must follow the reported results in the journal. */
  recordLate(event: JournalEvent): void {
    this.#lateEvents.push(event);
  }

  /** Adds the record of the original state, to be journaled together with the result. */
  recordBefore(key: string, before: Json | null): void {
    if (before !== null) this.#events.push({ t: 'before', id: this.id, key, before });
  }

  /** Adds a result, which the next flush reports. */
  add(step: Step, ended: ResourceResult): void {
    const result = fittingResult(ended, this.id);
    this.results.push({ ...result, diff: null, changes: [] });
    const reported = this.context.publisher.isOverLimit && result.diff !== null ? { ...result, diff: null } : result;
    this.#reports.push({ type: 'results', operation_id: this.id, position: step.position, results: [reported] });
    this.#reports.push(...this.#outputs.splice(0));
    this.hasUnflushedSkip ||= result.status === 'skipped' && step.resource.only_if !== undefined;
    this.reported++;
  }

  /** Syncs the changed directories, then publishes the collected results. */
  async flush(name: string, also: JournalEvent[] = []): Promise<void> {
    this.view.syncDirectories();
    const accepted: Report[] = this.operation.acceptedReported ? [] : [{ type: 'accepted', operation_id: this.id }];
    const reports = [...accepted, ...this.#reports];
    const before: JournalEvent[] = [...this.#events];
    const newDirectories = this.view.takeNewDirectories();
    if (newDirectories.length > 0) before.unshift({ t: 'directories', id: this.id, made: newDirectories, gone: [] });
    const after = [...this.#lateEvents, ...also];
    this.#reports = [];
    this.#events = [];
    this.#lateEvents = [];
    this.hasUnflushedSkip = false;
    await this.context.publisher.publish(name, reports, { before, after });
    this.flushedAt = this.now();
  }

  /**
   * Finishes the operation.
   * @param error why the operation could not be executed
   * @param applied for an apply: the number of steps that were not executed, and the triggers that remain due
   */
  async finish(
    total: number,
    error?: string,
    applied: { notRun: number; pending: [string, string[]][] } = { notRun: total - this.results.length, pending: [] },
  ): Promise<void> {
    const summary = summarise(this.results);
    const failed = error !== undefined || summary.failed > 0;
    const status = applied.notRun > 0 ? 'cancelled' : failed ? 'failed' : 'succeeded';
    const now = Math.floor(this.context.clock.now() / 1000);
    const finished: FinishedReport = {
      type: 'finished',
      operation_id: this.id,
      status,
      summary,
      error: error ?? (summary.failed > 0 ? failureSummary(this.results) : null),
      started_at: this.operation.startedAt ?? now,
      finished_at: now,
      ...(status === 'succeeded' && this.planDigest !== null ? { plan_digest: this.planDigest } : {}),
    };
    this.#reports.push(fittingReport(finished));
    const snapshot = this.operation.message.kind === 'apply' && status === 'succeeded';
    await this.flush('finished', [{ t: 'ended', id: this.id, finished, pending: applied.pending, snapshot }]);
  }

  now(): number {
    return this.context.clock.monotonic();
  }

  /** Yields to the event loop if `yieldAfterMs` has passed. */
  async yieldIfDue(): Promise<void> {
    const now = performance.now();
    if (now - this.#lastYield < yieldAfterMs) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#lastYield = performance.now();
  }
}

/** Reports whether the agent checks that the service works after a trigger. */
export const isConfirmed = (step: Step): boolean => providerFor(step)?.confirms?.(step.resource) === true;
