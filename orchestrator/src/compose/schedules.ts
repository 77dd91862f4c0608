import type { Clock } from '../../../lib/src/clock.ts';
import { Disposables } from '../disposables.ts';
import { createSequencer } from '../domain/audit/event-sequencer.ts';
import type { EventConsumer } from '../domain/audit/placed-event.ts';
import { notificationsOf } from '../domain/notifications/notifications.ts';
import type { Leases } from '../domain/shared/leases.ts';
import { pruneTerminals } from '../domain/terminals/terminal-retention.ts';
import { startAuditKeeping } from '../schedule/audit-keeping.ts';
import { startDriftSweep } from '../schedule/drift-sweep.ts';
import { startOutbox } from '../schedule/outbox.ts';
import { startUpkeep } from '../schedule/upkeep.ts';
import type { Transcripts } from '../store/transcripts/transcripts.ts';
import type { Domain } from './domain.ts';
import type { Settings } from './settings.ts';

export interface ScheduleParts {
  readonly domain: Domain;
  readonly leases: Leases;
  readonly transcripts: Transcripts;
  readonly settings: Settings;
  readonly clock: Clock;
}

/** Starts and stops all periodic work. */
export class Schedules {
  readonly #parts: ScheduleParts;
  readonly #work = new Disposables();
  readonly #auditKeeping = new Disposables();

  constructor(parts: ScheduleParts) {
    this.#parts = parts;
  }

  /** Starts all periodic work, once agents can connect. Resolves after the first round of maintenance. */
  async start(): Promise<void> {
    const { settings, domain, leases, clock } = this.#parts;
    // Acquires all leases in one transaction.
    leases.want(['audit', 'upkeep', 'outbox', ...(settings.current.drift.enabled ? ['drift-sweep'] : [])]);
    const upkeep = this.#startUpkeep();
    this.#work.add(() => upkeep.stop());
    /** Statements that run in the transaction that adds events to the chain. */
    const consumers: EventConsumer[] = [notificationsOf(domain.context)];
    const auditKeeping = startAuditKeeping(
      domain.context,
      clock,
      settings.extend(
        { sequencer: createSequencer(domain.context, { consumers }), lease: leases.lease('audit') },
        { retentionDays: ({ audit }) => audit.retention_days },
      ),
    );
    this.#auditKeeping.add(() => auditKeeping.stop());
    await upkeep.round();
    this.#startOutbox();
    if (settings.current.drift.enabled) this.#startDriftSweep();
  }

  /** Stops all work except the audit log, which must chain the events recorded during shutdown. */
  stop(): Promise<void> {
    return this.#work.dispose();
  }

  stopAuditKeeping(): Promise<void> {
    return this.#auditKeeping.dispose();
  }

  #startUpkeep() {
    const { settings, domain, leases, clock, transcripts } = this.#parts;
    const { context } = domain;
    const { agents, secrets_expiry_notice_days } = settings.current;
    return startUpkeep(context, clock, {
      lease: leases.lease('upkeep'),
      placement: leases.placement,
      health: domain.health,
      lostAfterSecs: agents.lost_after_secs,
      retention: settings.extend(
        {},
        {
          driftDays: ({ drift }) => drift.retention_days,
          operationDays: ({ operations }) => operations.retention_days,
        },
      ),
      pruneSamples: domain.metrics.prune,
      pruneTerminals: (fleet) => pruneTerminals(fleet, transcripts, settings.current.terminals.retention_days),
      ...(context.isReplica
        ? { endStrandedTerminals: async () => (await domain.terminals.interruptLeftovers()).recorded }
        : {}),
      runs: domain.conductor,
      refusals: domain.refusals,
      pending: domain.pending,
      secretsExpiryNoticeDays: secrets_expiry_notice_days,
    });
  }

  #startOutbox(): void {
    const { settings, domain, leases, clock } = this.#parts;
    const outbox = startOutbox(
      domain.context,
      clock,
      settings.extend(
        {
          deliver: domain.deliver,
          random: Math.random,
          lease: leases.lease('outbox'),
        },
        {
          giveUpAfter: ({ notifications }) => notifications.give_up_after,
          retentionDays: ({ notifications }) => notifications.retention_days,
        },
      ),
    );
    this.#work.add(() => outbox.stop());
  }

  #startDriftSweep(): void {
    const { settings, domain, leases, clock } = this.#parts;
    const { context, disk } = domain;
    const sweep = startDriftSweep(
      context,
      clock,
      settings.extend(
        {
          random: Math.random,
          lease: leases.lease('drift-sweep'),
          // Drift records must not use the space reserved for the results of operations.
          paused: () => disk.low && context.db.kind === 'sqlite',
        },
        {
          interval: ({ drift }) => drift.interval,
          maxConcurrent: ({ drift }) => drift.max_concurrent,
          skipRecentlyApplied: ({ drift }) => drift.skip_recently_applied,
        },
      ),
    );
    this.#work.add(() => sweep.stop());
  }
}
