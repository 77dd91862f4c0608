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
 * How long events are kept. What is removed is the beginning of the chain, and its last hash stays: the rest can be
 * verified from there.
 */

const retentionKey = 'audit.retention_days';
const dayMs = 86_400_000;
/** Read, and removed in one unit, at one time. */
const atOnce = 500;

/** The days that were set in place of the configuration's; null when none were. */
export async function auditRetention({ db }: Context): Promise<number | null> {
  const row = await db.get(setting, { key: retentionKey });
  return row ? Number(row.value) : null;
}

/** @param days null: the configuration's hold again */
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
          days === null ? 'audit events are kept as the configuration says' : `audit events are kept for ${days} days`,
        metadata: { from: before, to: days },
      }),
    ],
  });
}

/**
 * Where to cut so that everything before it is older. A few events stand in the chain out of the order of their times;
 * the first that is not older ends the cut, and those behind it wait for the next.
 * @param events those behind `from`, in order
 * @param now    what claims to be later was written by a clock that was wrong, and goes with its neighbours
 * @returns the last to remove, and whether everything may go on behind it
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
 * Removes events that are older than a time and have their place. What is removed is decided in one unit, with its
 * event; a prune that was interrupted is finished by the schedule.
 * @param before RFC 3339, exclusive
 * @returns how many
 */
export async function pruneAudit(context: Context, actor: Actor, before: string, signal?: AbortSignal) {
  return prune(context, actor, readInstant(before, '/before'), { fence: [], signal });
}

/** How many events such a prune would remove now. */
export async function countPrunable(context: Context, before: string): Promise<number> {
  const { begin, cut } = await findPrunable(context, readInstant(before, '/before'));
  return cut.place - begin.place;
}

/** The beginning of the chain as far as it is older: behind what was decided to go and is still there. */
async function findPrunable(context: Context, before: number) {
  const { anchor, cut: from } = await readChainEnds(context);
  const begin = from.place > anchor.place ? from : anchor;
  return { from, begin, cut: await findCut(context, begin, before) };
}

interface Pruning {
  fence: Fence;
  /** Leaves what was decided and not done yet to the schedule. */
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
    // Somebody else is at it: what they remove is not ours to count, and the rest is decided again.
    if (error instanceof MusterError && error.message === prunedMeanwhile) return prune(context, actor, before, how);
    throw error;
  }
  await finishPruning(context, how);
  return deleted;
}

const prunedMeanwhile = 'the audit log was pruned at the same time';

/** Removes what it was decided to remove and is still there, a little in each unit. */
export async function finishPruning(context: Context, { fence, signal }: Pruning): Promise<void> {
  while (!signal?.aborted) {
    const { anchor, cut } = await readChainEnds(context);
    if (anchor.place >= cut.place) return;
    const rows = await context.db.all(placedEvents, { after: anchor.place, limit: atOnce });
    const last = rows.findLast((row) => (row.place as number) <= cut.place);
    // Rows that are gone already were removed by somebody who may not: the chain begins behind the cut all the same.
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
 * Removes what is older than it is kept, once it is a day older: so that it comes in one piece a day.
 * @param configuredDays 0: nothing is removed, unless an override says otherwise
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
