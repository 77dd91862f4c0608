import { OutcomeUnknown } from '../../store/database.ts';
import { putUsage, usageOf } from '../../store/queries/agents/agent-usage.ts';
import { insertAuditEvent } from '../../store/queries/audit.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { agentLabel } from '../shared/agent-label.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';

/**
 * Enforces daily per-agent limits on stored bytes, events, and drift checks caused by the agent's hints. Days are UTC.
 * The first use beyond a limit causes one event; the caller decides how to reduce what the agent stores.
 */

export interface Usage {
  readonly bytes: number;
  /** Events caused by unsolicited reports from the agent: drift, a new version, or a new address. */
  readonly events: number;
  readonly hints: number;
}

export type UsageLimits = Readonly<Record<keyof Usage, number>>;

/** A healthy machine causes a few events a day. */
export const maxEvents = 100;
/** About one check every five minutes. Scheduled checks find resources that change more often. */
export const maxHints = 300;

interface Day extends Usage {
  readonly day: number;
  bytes: number;
  events: number;
  hints: number;
  /** Bits of the limits for which an event has been recorded or is being recorded in an open transaction. */
  limited: number;
  /** Value of `bytes` when the row was last written. */
  saved: number;
}

/** Writes the row each time another 1/n of the limit is used. A restart loses less usage than this fraction. */
const savedShares = 64;
/** Maximum number of agents in memory. The oldest entries are evicted, and are read from the database when needed. */
const maxAgents = 50_000;
const daySecs = 86_400;

export interface AgentUsage {
  readonly limits: UsageLimits;
  today(nodeId: string): Promise<Usage>;
  /** Reads the usage again at the next use, because another process may have counted in the meantime. */
  forget(nodeId: string): void;
  /**
   * Counts a transaction's usage. Reverts the count if the transaction fails.
   * @param agent `label` is read from the database if it is missing and needed
   * @param write commits the transaction together with the statements passed to it, which record the usage and the
   * events for newly exceeded limits
   * @returns the result of `write`
   * @throws the error of `write`
   */
  consume<Result>(
    agent: { node_id: string; label?: string | undefined },
    more: Partial<Usage>,
    write: (statements: Statement[]) => Promise<Result>,
  ): Promise<Result>;
}

/** Bits in `agent_usage.limited`. Never renumber them. */
const bits: Readonly<Record<keyof Usage, number>> = { bytes: 1, events: 2, hints: 4 };
const consequences: Readonly<Record<keyof Usage, string>> = {
  bytes: 'its results are stored without details, its outputs without text, and its samples are dropped',
  events: 'its drift is recorded without events',
  hints: 'its drift hints are ignored, and only scheduled checks find drift',
};
const counted: Readonly<Record<keyof Usage, string>> = {
  bytes: 'bytes of reports and samples',
  events: 'events',
  hints: 'drift checks caused by hints',
};

const whats = ['bytes', 'events', 'hints'] as const;

/**
 * Enforces the daily limits.
 * @param dailyBytes read on each use, because it can change at run time
 */
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
    if (!days.has(nodeId) && days.size >= maxAgents) days.delete(days.keys().next().value as string);
    days.set(nodeId, day);
  };

  async function dayOf(nodeId: string): Promise<Day> {
    const day = Math.floor(seconds(context.now()) / daySecs);
    const known = days.get(nodeId);
    if (known?.day === day) return known;
    const row = known ? undefined : await db.get(usageOf, { node_id: nodeId });
    const found: Day =
      row?.day === day ? { ...row, saved: row.bytes } : { day, bytes: 0, events: 0, hints: 0, limited: 0, saved: 0 };
    // Prefers an entry that another call added during the read, because that entry is newer.
    const meanwhile = days.get(nodeId);
    if (meanwhile?.day === day) return meanwhile;
    remember(nodeId, found);
    return found;
  }

  const eventOf = (what: keyof Usage, limit: number, node_id: string, label: string): Statement =>
    audited(context, {
      type: 'agent.limited',
      actor: systemActor,
      target: { type: 'agent', id: node_id, name: label },
      summary: `agent ${label} has exceeded its daily limit of ${limit} ${counted[what]}; until 00:00 UTC ${consequences[what]}`,
      metadata: { what, limit },
    });

  return {
    limits,
    today: dayOf,
    forget: (nodeId) => void days.delete(nodeId),
    async consume({ node_id, label }, { bytes = 0, events = 0, hints = 0 }, write) {
      const day = await dayOf(node_id);
      // No `await` may precede setting `limited`, so that only one of several concurrent transactions records the
      // event.
      day.bytes += bytes;
      day.events += events;
      day.hints += hints;
      const usedUp = whats.filter((what) => (day.limited & bits[what]) === 0 && day[what] >= limits[what]);
      const ofThis = usedUp.reduce((sum, what) => sum | bits[what], 0);
      day.limited |= ofThis;
      const step = Math.max(1, limits.bytes / savedShares);
      const moved = Math.floor(day.bytes / step) !== Math.floor(day.saved / step);
      const saves = ofThis !== 0 || moved || events > 0 || hints > 0;
      const { saved: _, ...row } = day;
      const statements: Statement[] = saves ? [statement(putUsage, { node_id, ...row })] : [];
      try {
        const name = usedUp.length === 0 ? node_id : (label ?? (await agentLabel(context, node_id)));
        for (const what of usedUp) statements.push(eventOf(what, limits[what], node_id, name));
        const result = await write(statements);
        if (saves) day.saved = Math.max(day.saved, row.bytes);
        for (const what of usedUp)
          context.log.warn(
            { node_id, agent: name, limited: what, limit: limits[what] },
            'agent exceeded its daily limit',
          );
        return result;
      } catch (error) {
        day.bytes -= bytes;
        day.events -= events;
        day.hints -= hints;
        day.limited &= ~ofThis;
        // The commit may have succeeded, so the next use reads the entry from the database.
        if (error instanceof OutcomeUnknown && days.get(node_id) === day) days.delete(node_id);
        throw error;
      }
    },
  };
}

const isEvent = ({ query }: Statement): boolean => query === (insertAuditEvent as unknown);

export const eventsIn = (statements: readonly Statement[]): number => statements.filter(isEvent).length;

export const withoutEvents = (statements: readonly Statement[]): Statement[] =>
  statements.filter((one) => !isEvent(one));

/** Returns the number of bytes that the statements store, including events and keys. */
export function bytesOf(statements: readonly Statement[]): number {
  let bytes = 0;
  for (const { params } of statements) {
    bytes += statementBytes;
    for (const value of Object.values(params)) bytes += typeof value === 'string' ? Buffer.byteLength(value) : 8;
  }
  return bytes;
}

const statementBytes = 128;
