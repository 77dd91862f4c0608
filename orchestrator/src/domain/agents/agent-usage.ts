import { putUsage, usageOf } from '../../store/queries/agent-usage.ts';
import { insertAuditEvent } from '../../store/queries/audit.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';

/**
 * Daily limits of each agent: stored bytes, events, and drift checks by its hints. Days are UTC. Exceeding a limit causes one
 * event; the caller decides on the consequences.
 */

export interface Usage {
  readonly bytes: number;
  /** Events caused by what the agent reports unprompted: `drift.…`, a new version or address. */
  readonly events: number;
  readonly hints: number;
}

export type UsageLimits = Readonly<Record<keyof Usage, number>>;

/** A healthy machine causes a few events a day. */
export const maxEvents = 100;
/** About one in five minutes. Scheduled checks find what changes more often. */
export const maxHints = 300;

interface Day extends Usage {
  readonly day: number;
  /** Value of `bytes` when the row was last written. */
  readonly saved: number;
}

/** Bytes are saved each time this fraction (1/n) of the limit is used: a restart forgets less than that. */
const savedShares = 64;
/** Maximum number of agents in memory; the oldest beyond it are read again. */
const kept = 50_000;
const daySecs = 86_400;

export interface AgentUsage {
  readonly limits: UsageLimits;
  today(nodeId: string): Promise<Usage>;
  /**
   * @param more the usage that a transaction will cause
   * @returns statements for that transaction, and a function to call after its commit
   */
  spend(
    agent: { node_id: string; label: string },
    more: Partial<Usage>,
  ): Promise<{ statements: Statement[]; committed: () => void }>;
}

const consequences: Readonly<Record<keyof Usage, string>> = {
  bytes: 'its results are stored without details, its outputs without text, and its samples are dropped',
  events: 'its drift is recorded without events',
  hints: 'its hints are not followed, and drift is found by scheduled checks',
};
const counted: Readonly<Record<keyof Usage, string>> = {
  bytes: 'bytes of reports and samples',
  events: 'events',
  hints: 'drift checks by hints',
};

/** @param dailyBytes read at each use, because it can change at run time */
export function createAgentUsage(context: Context, dailyBytes: () => number): AgentUsage {
  const { db } = context;
  const days = new Map<string, Day>();
  const limits = {
    get bytes() {
      return dailyBytes();
    },
    events: maxEvents,
    hints: maxHints,
  };
  const remember = (nodeId: string, day: Day) => {
    if (!days.has(nodeId) && days.size >= kept) days.delete(days.keys().next().value as string);
    days.set(nodeId, day);
  };

  async function dayOf(nodeId: string): Promise<Day> {
    const day = Math.floor(seconds(context.now()) / daySecs);
    const known = days.get(nodeId);
    if (known?.day === day) return known;
    const row = known ? undefined : await db.get(usageOf, { node_id: nodeId });
    const found = row?.day === day ? { ...row, saved: row.bytes } : { day, bytes: 0, events: 0, hints: 0, saved: 0 };
    // An entry that was added during the read is newer.
    const meanwhile = days.get(nodeId);
    if (meanwhile?.day === day) return meanwhile;
    remember(nodeId, found);
    return found;
  }

  return {
    limits,
    today: dayOf,
    async spend({ node_id, label }, { bytes = 0, events = 0, hints = 0 }) {
      const before = await dayOf(node_id);
      const after = {
        bytes: before.bytes + bytes,
        events: before.events + events,
        hints: before.hints + hints,
      };
      const usedUp = (['bytes', 'events', 'hints'] as const).filter(
        (what) => before[what] < limits[what] && after[what] >= limits[what],
      );
      const step = Math.max(1, limits.bytes / savedShares);
      const moved = Math.floor(after.bytes / step) !== Math.floor(before.saved / step);
      const saves = usedUp.length > 0 || moved || events > 0 || hints > 0;
      const statements: Statement[] = saves ? [statement(putUsage, { node_id, day: before.day, ...after })] : [];
      for (const what of usedUp) {
        const limit = limits[what];
        context.log.warn({ node_id, limit }, `agent ${label} has exceeded its daily limit of ${counted[what]}`);
        statements.push(
          audited(context, {
            type: 'agent.limited',
            actor: systemActor,
            target: { type: 'agent', id: node_id, name: label },
            summary: `${label} has exceeded its daily limit of ${limit} ${counted[what]}; until 00:00 UTC ${consequences[what]}`,
            metadata: { what, limit },
          }),
        );
      }
      return {
        statements,
        committed() {
          const now = days.get(node_id);
          // Another transaction of the agent may have been committed meanwhile.
          const base = now?.day === before.day ? now : before;
          remember(node_id, {
            day: before.day,
            bytes: base.bytes + bytes,
            events: base.events + events,
            hints: base.hints + hints,
            saved: saves ? after.bytes : base.saved,
          });
        },
      };
    },
  };
}

const isEvent = ({ query }: Statement): boolean => query === (insertAuditEvent as unknown);

/** The number of audit events that the statements record. */
export const eventsIn = (statements: readonly Statement[]): number => statements.filter(isEvent).length;

/** The statements without audit events. */
export const withoutEvents = (statements: readonly Statement[]): Statement[] =>
  statements.filter((one) => !isEvent(one));

/** Bytes that the statements store, including events and keys. */
export function bytesOf(statements: readonly Statement[]): number {
  let bytes = 0;
  for (const { params } of statements) {
    bytes += statementBytes;
    for (const value of Object.values(params)) bytes += typeof value === 'string' ? Buffer.byteLength(value) : 8;
  }
  return bytes;
}

/** Overhead of a row. */
const statementBytes = 128;
