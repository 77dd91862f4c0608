import { setImmediate as nextTurn } from 'node:timers/promises';
import { MusterError } from '@muster/protocol';
import { deletePlaced, moveChainEnd, placedEvents } from '../../store/queries/audit.ts';
import { deleteSetting, putSetting, setting } from '../../store/queries/settings.ts';
import { statement } from '../../store/transaction.ts';
import { type Actor, type Context, systemActor } from '../shared/context.ts';
import type { Fence } from '../shared/leases.ts';
import { audited } from './audit.ts';
import { readInstant } from './audit-filter.ts';
import type { Link } from './audit-verification.ts';
import { readChainEnds } from './event-sequencer.ts';

/**
 * Deletes old audit events. Pruning removes the oldest events from the chain and preserves the hash of the last removed
 * event, so that the remaining events can be verified.
 */

const retentionKey = 'audit.retention_days';
const dayMs = 86_400_000;
/** Maximum number of events read and removed in one transaction. */
const atOnce = 500;

/** Returns the retention in days that overrides the configuration; null without an override. */
export async function auditRetention({ db }: Context): Promise<number | null> {
  const row = await db.get(setting, { key: retentionKey });
  return row ? Number(row.value) : null;
}

/**
 * Sets the retention.
 * @param days null restores the configured retention
 */
export async function setAuditRetention(context: Context, actor: Actor, days: number | null): Promise<void> {
  const before = await auditRetention(context);
  if (before === days) return;
  await context.db.write({
    name: 'audit/set retention',
    statements: [
      days === null
        ? statement(deleteSetting, { key: retentionKey })
        : statement(putSetting, { key: retentionKey, value: String(days) }),
      audited(context, {
        type: 'audit.retention_changed',
        actor,
        summary:
          days === null ? 'audit retention reset to the configured value' : `audit retention set to ${days} days`,
        metadata: { from: before, to: days },
      }),
    ],
  });
}

/**
 * Finds the last event to remove. Stops at the first event that is not older than `before`. A few events are chained
 * out of time order, so a later prune may remove older events after it.
 * @param events the events after `from`, in order
 * @param now current time; events after this time were written with a wrong clock, and are removed with their neighbors
 * @returns the last event to remove, and whether to continue the search after it
 */
export function cutOf(
  from: Link,
  events: readonly { place: number | null; hash: string | null; timestamp_ms: number }[],
  before: number,
  now: number,
): { cut: Link; on: boolean } {
  let cut = from;
  for (const { place, hash, timestamp_ms } of events) {
    if (timestamp_ms >= before && timestamp_ms <= now) return { cut, on: false };
    if (timestamp_ms < before) cut = { place: place as number, hash: hash as string };
  }
  return { cut, on: events.length > 0 };
}

async function findCut({ db, now }: Context, from: Link, before: number): Promise<Link> {
  let cut = from;
  let last = from.place;
  for (;;) {
    const events = await db.all(placedEvents, { after: last, limit: atOnce });
    const found = cutOf(cut, events, before, now());
    cut = found.cut;
    if (!found.on) return cut;
    last = events.at(-1)?.place as number;
    await nextTurn();
  }
}

/**
 * Removes chained events that are older than `before`. One transaction records the last event to remove and the event
 * `audit.pruned`. If it is interrupted, a scheduled prune finishes the deletion.
 * @param before RFC 3339, exclusive
 * @returns the number of removed events
 */
export async function pruneAudit(context: Context, actor: Actor, before: string, signal?: AbortSignal) {
  return prune(context, actor, readInstant(before, '/before'), { fence: [], signal });
}

export async function countPrunable(context: Context, before: string): Promise<number> {
  const { begin, cut } = await findPrunable(context, readInstant(before, '/before'));
  return cut.place - begin.place;
}

/** Finds the chained events that are older than `before`, after the events already marked for removal. */
async function findPrunable(context: Context, before: number) {
  const { anchor, cut: from } = await readChainEnds(context);
  const begin = from.place > anchor.place ? from : anchor;
  return { from, begin, cut: await findCut(context, begin, before) };
}

interface Pruning {
  fence: Fence;
  /** If the deletion is aborted, a scheduled prune finishes it. */
  signal?: AbortSignal | undefined;
}

async function prune(context: Context, actor: Actor, before: number, how: Pruning): Promise<number> {
  const { fence } = how;
  await finishPruning(context, how);
  const { from, begin, cut } = await findPrunable(context, before);
  if (cut.place === begin.place) return 0;
  const deleted = cut.place - begin.place;
  try {
    await context.db.write({
      name: 'audit/decide pruning',
      statements: [
        ...fence,
        statement(
          moveChainEnd,
          { name: 'cut', from_place: from.place, from_hash: from.hash, ...cut },
          { expect: 'changed', else: 'storage_unavailable', detail: prunedMeanwhile },
        ),
        audited(context, {
          type: 'audit.pruned',
          actor,
          summary: `${deleted} audit events before ${new Date(before).toISOString()} removed`,
          metadata: { before: new Date(before).toISOString(), deleted, place: cut.place, hash: cut.hash },
        }),
      ],
    });
  } catch (error) {
    // Repeats the search for events to remove. Does not count events that another process removed.
    if (error instanceof MusterError && error.message === prunedMeanwhile) return prune(context, actor, before, how);
    throw error;
  }
  await finishPruning(context, how);
  return deleted;
}

const prunedMeanwhile = 'another process pruned the audit log at the same time';

/** Removes the events that are marked for removal, in small transactions. */
export async function finishPruning(context: Context, { fence, signal }: Pruning): Promise<void> {
  while (!signal?.aborted) {
    const { anchor, cut } = await readChainEnds(context);
    if (anchor.place >= cut.place) return;
    const rows = await context.db.all(placedEvents, { after: anchor.place, limit: atOnce });
    const last = rows.findLast((row) => (row.place as number) <= cut.place);
    // The chain begins after the cut even if rows were deleted by means other than pruning.
    const to: Link =
      last === undefined || last.place === cut.place ? cut : { place: last.place as number, hash: last.hash as string };
    try {
      await context.db.write({
        name: 'audit/prune',
        statements: [
          ...fence,
          statement(
            moveChainEnd,
            { name: 'anchor', from_place: anchor.place, from_hash: anchor.hash, ...to },
            { expect: 'changed', else: 'storage_unavailable', detail: prunedMeanwhile },
          ),
          statement(deletePlaced, { up_to: to.place }),
        ],
      });
    } catch (error) {
      if (!(error instanceof MusterError && error.message === prunedMeanwhile)) throw error;
    }
    await nextTurn();
  }
}

/**
 * Removes the events past their retention once the oldest is a day past it, so that pruning runs at most once a day.
 * @param configuredDays 0 disables pruning, unless an override is set
 * @returns the number of removed events
 */
export async function pruneBySchedule(context: Context, configuredDays: number, how: Pruning): Promise<number> {
  await finishPruning(context, how);
  const days = (await auditRetention(context)) ?? configuredDays;
  if (days === 0) return 0;
  const { anchor } = await readChainEnds(context);
  const before = context.now() - days * dayMs;
  const [oldest] = await context.db.all(placedEvents, { after: anchor.place, limit: 1 });
  if (!oldest || oldest.timestamp_ms >= before - dayMs) return 0;
  return prune(context, systemActor, before, how);
}
