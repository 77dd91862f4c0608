import { hasEnded, MusterError } from '@muster/protocol';
import type { Hello } from '@muster/protocol/wire';
import { limits } from '@muster/protocol/wire';
import { idOfRawKey } from '../../identity/ed25519-key.ts';
import { fromJson, toJson } from '../../store/json-text.ts';
import { acknowledgedSeq, agentById, linkClaimed, markConnected } from '../../store/queries/agents/agents.ts';
import { missedDriftDue } from '../../store/queries/drift-schedule.ts';
import { markUndispatched } from '../../store/queries/operations/dispatch.ts';
import { openOperations, operationById } from '../../store/queries/operations/operations.ts';
import { runIsRunning } from '../../store/queries/runs.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import type { AgentUsage } from '../agents/agent-usage.ts';
import { type Enrolment, enrolStatements } from '../agents/enrollment.ts';
import type { PendingList } from '../agents/pending-list.ts';
import { audited, type Happening } from '../audit/audit.ts';
import {
  announceEnd,
  type Ending,
  type EndingOperation,
  endStatements,
  ignoreFinished,
} from '../operation-end/operation-end.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';
import { type Succession, successionStatements, unlessKeyChanged } from './agent-keys.ts';
import type { Admission, AgentLinks, Caller } from './agent-link.ts';
import { claimInstance } from './link-rivals.ts';
import type { Refusal } from './refusal.ts';

/** Admits an agent that proved possession of its key. Determines its record, its approval, and its open operations. */

const retrySecs = 60;
const refuse = (code: Refusal['code'], message: string, retry_after_secs: number): Admission => ({
  admitted: false,
  refusal: { code, message, retry_after_secs },
});

export function createAdmission(context: Context, pending: PendingList, usage: AgentUsage): AgentLinks['admit'] {
  const { db } = context;
  return async (hello, from) => {
    const { node_id } = from;
    const known = await db.get(agentById, { node_id });
    if (known?.status === 'rejected')
      return refuse('rejected', 'an operator rejected this agent', limits.rejectedRetryAfterSecs);
    if (from.succession !== null) {
      const refusal = await succeed(context, hello, from, from.succession);
      if (refusal !== null) return { admitted: false, refusal };
    }
    // The agent was removed after its key was looked up. Only an agent's first key may create a record.
    if (!known && node_id !== idOfRawKey(Buffer.from(hello.public_key, 'hex')))
      return refuse('unavailable', 'the agent was removed while it was connecting', 1);
    try {
      if (!known || (known.status === 'pending' && hello.token !== null)) {
        const enrolled = await enrol(context, hello, from, known, pending);
        if (!enrolled && !known) return refuse('token_invalid', 'the enrollment token is not valid', retrySecs);
        if (!known && enrolled) return welcomeOfNew(hello, enrolled);
        if (!enrolled) context.log.warn({ node_id }, 'ignored invalid enrollment token of pending agent');
      }
    } catch (error) {
      if (!(error instanceof MusterError)) throw error;
      if (error.code === 'enrolment_token_not_found')
        return refuse('token_invalid', 'the enrollment token has no uses left', retrySecs);
      if (error.code === 'pending_full' || error.code === 'agent_changed')
        return refuse('pending_full', `${pending.capacity} agents already wait for approval, the maximum`, retrySecs);
      if (error.code === 'name_taken')
        return refuse('unavailable', 'other agents took the names for this agent while it was connecting', 1);
      throw error;
    }
    // Claims the link first, so that no other process writes for the agent while its open operations are settled.
    const row = await recordConnected(context, usage, hello, from);
    if (!row) return refuse('removed', 'an operator removed this agent', limits.rejectedRetryAfterSecs);
    const ended = await findEnded(context, hello, node_id);
    const acknowledged = (await db.get(acknowledgedSeq, { node_id }))?.seq ?? 0;
    return {
      admitted: true,
      standing: { status: row.status, name: row.name, tags: fromJson(row.tags) },
      acknowledged,
      settled_operations: ended,
    };
  };
}

/**
 * Returns the admission of a new agent. The transaction that created its record also claimed the link. Needs no reads:
 * a new agent has no acknowledged reports and no open operations, because removing an agent deletes them.
 */
function welcomeOfNew(hello: Hello, { standing }: Enrolment): Admission {
  const settled_operations = hello.open_operations.map(({ operation_id }) => operation_id);
  return { admitted: true, standing, acknowledged: 0, settled_operations };
}

/**
 * Commits a new agent's record with its connection, or the changes that a token makes to a pending agent.
 * @returns null if the token is not valid
 */
async function enrol(
  context: Context,
  hello: Hello,
  from: Caller,
  known: AgentRow | undefined,
  pending: PendingList,
): Promise<Enrolment | null> {
  for (let attempt = 1; ; attempt++) {
    const enrolled = await enrolStatements(context, hello, from, known, pending);
    if (enrolled === null) return null;
    const isReported = !known && enrolled.announced;
    const connected = isReported ? [audited(context, connectedHappening(hello, from, enrolled.label))] : [];
    try {
      const statements = [...enrolled.statements, ...connected];
      await context.db.write({ name: 'agents/enrol', statements, turn: enrolled.turn });
    } catch (error) {
      // The agent to be displaced may have reconnected, been approved, or been displaced already. Another agent may have
      // taken the name that was free.
      const isOutdated =
        error instanceof MusterError && (error.code === 'agent_changed' || error.code === 'name_taken');
      if (isOutdated && attempt < 5) continue;
      throw error;
    }
    if (enrolled.displaced !== null) context.bus.publish({ type: 'agent_removed', node_id: enrolled.displaced });
    return enrolled;
  }
}

/**
 * Commits a key succession.
 * @returns null, or the refusal if the key cannot be replaced
 */
async function succeed(context: Context, hello: Hello, from: Caller, succession: Succession): Promise<Refusal | null> {
  const row = await readAgent(context, from.node_id);
  const label = row?.name ?? row?.initial_hostname ?? from.node_id;
  const statements = successionStatements(context, hello.public_key, from, succession, { label, ip: from.remote_ip });
  try {
    await context.db.write({ name: 'agents/key', statements });
    return null;
  } catch (error) {
    if (!(error instanceof MusterError)) throw error;
    if (error.code === 'invalid_input')
      return {
        code: 'key_refused',
        message: `the orchestrator refuses the new key: ${error.message}`,
        retry_after_secs: null,
      };
    if (error.code === 'agent_changed')
      return {
        code: 'unavailable',
        message: 'the agent’s record changed while the agent was connecting',
        retry_after_secs: 1,
      };
    throw error;
  }
}

type AgentRow = NonNullable<Awaited<ReturnType<typeof readAgent>>>;
const readAgent = ({ db }: Context, node_id: string) => db.get(agentById, { node_id });

/**
 * Records that a known agent is connected, and an event if the connection is notable.
 * @returns the agent's record; undefined if it was removed concurrently
 */
async function recordConnected(
  context: Context,
  usage: AgentUsage,
  hello: Hello,
  from: Caller,
): Promise<AgentRow | undefined> {
  for (let attempt = 1; ; attempt++) {
    const row = await readAgent(context, from.node_id);
    if (!row) return undefined;
    const connected = {
      node_id: row.node_id,
      agent_version: hello.agent_version,
      attributes: toJson(hello.attributes),
      // Once an agent has pinned the key, it reports `pinned`. The record preserves how the agent first came to trust
      // the key.
      pin_source: hello.pin_source === 'pinned' ? row.pin_source : hello.pin_source,
      remote_ip: from.remote_ip,
      lost_at: row.lost_at ?? 0,
      now: from.now,
      incarnation: context.incarnation,
      instance: claimInstance(context, hello, from),
    };
    const label = row.name ?? row.initial_hostname;
    const happening = connectionHappening(row, hello, from, label);
    // The agent chooses its version, and possibly its address, so the event counts against the agent's daily limit.
    const isOften = happening?.type === 'agent.connected';
    const hasEvent = !isOften || (await usage.today(row.node_id)).events < usage.limits.events;
    const write = (more: Statement[]) =>
      context.db.write({
        name: 'agents/connected',
        statements: [
          unlessKeyChanged(hello.public_key, from),
          statement(markConnected, connected, { expect: 'changed', else: 'agent_changed' }),
          statement(missedDriftDue, { node_id: row.node_id, now: seconds(context.now()) }),
          ...(happening && hasEvent ? [audited(context, happening)] : []),
          ...more,
        ],
      });
    try {
      if (isOften) await usage.consume({ node_id: row.node_id, label }, { events: 1 }, write);
      else await write([]);
      return row;
    } catch (error) {
      // The agent was marked as lost, or was removed, after its record was read.
      if (!(error instanceof MusterError && error.code === 'agent_changed' && attempt < 5)) throw error;
    }
  }
}

/**
 * Returns the event for a new link, or null. Most links cause no event, because thousands of agents reconnect after
 * each restart and short interruptions are not notable. Unapproved agents cause none, so that they cannot fill the log
 * by reconnecting.
 * @param known the record after the previous link
 */
function connectionHappening(
  known: Pick<AgentRow, 'status' | 'lost_at' | 'remote_ip' | 'agent_version'>,
  hello: Pick<Hello, 'agent_version'>,
  from: Pick<Caller, 'node_id' | 'remote_ip'>,
  label: string,
): Happening | null {
  const connected = connectedHappening(hello, from, label);
  const { metadata, summary } = connected;
  if (known.lost_at !== null)
    return {
      ...connected,
      type: 'agent.returned',
      summary: `agent ${label} reconnected from ${from.remote_ip}`,
      metadata: { ...metadata, lost_at: known.lost_at },
    };
  if (known.status !== 'approved') return null;
  const moved = known.remote_ip !== null && known.remote_ip !== from.remote_ip;
  const changed = known.agent_version !== hello.agent_version;
  if (!moved && !changed) return null;
  return {
    ...connected,
    summary: `${summary}${moved ? `, previously from ${known.remote_ip}` : ''}${changed ? `, now version ${hello.agent_version}` : ''}`,
    metadata: { ...metadata, former_ip: known.remote_ip, former_agent_version: known.agent_version },
  };
}

function connectedHappening(
  hello: Pick<Hello, 'agent_version'>,
  from: Pick<Caller, 'node_id' | 'remote_ip'>,
  label: string,
) {
  const agent = { type: 'agent', id: from.node_id, name: label } as const;
  const metadata = { ip: from.remote_ip, agent_version: hello.agent_version };
  const summary = `agent ${label} connected from ${from.remote_ip}`;
  return { type: 'agent.connected', actor: agent, target: agent, summary, metadata } as const satisfies Happening;
}

/**
 * Ends recorded operations that the agent no longer has.
 * @returns the ids of operations that the agent lists as open, but that have ended or are unknown
 */
async function findEnded(context: Context, hello: Hello, nodeId: string): Promise<string[]> {
  const ended: string[] = [];
  for (const { operation_id } of hello.open_operations) {
    const row = await context.db.get(operationById, { operation_id });
    if (!row || row.node_id !== nodeId || hasEnded(row.status)) ended.push(operation_id);
  }
  const listed = new Set(hello.open_operations.map(({ operation_id }) => operation_id));
  for (const operation of await context.db.all(openOperations, { node_id: nodeId })) {
    if (listed.has(operation.operation_id) || operation.dispatched_at === null) continue;
    // The agent accepted the operation, but its journal no longer contains the operation, so the outcome is unknown.
    if (operation.status === 'running')
      await endHere(context, operation, hello.hostname, {
        status: 'interrupted',
        error: 'the agent reconnected without a record of this operation',
        summary: null,
        startedAt: null,
      });
    // The agent never received the operation. Cancels it, expires it, or dispatches it again, depending on its state
    // and its run.
    else if (operation.cancel_requested_at !== null)
      await endHere(context, operation, hello.hostname, neverReceived(cancelledBefore));
    else {
      const reason = await undispatch(context, operation);
      if (reason !== null) await endHere(context, operation, hello.hostname, neverReceived(reason));
    }
  }
  return ended;
}

/**
 * Fails the transaction if another process has admitted the agent in the meantime, because that process settles the
 * operations.
 */
const claimed = ({ incarnation }: Context, node_id: string): Statement =>
  statement(linkClaimed, { node_id, incarnation }, { expect: 'row', else: 'operation_finished' });

const neverReceived = (error: string): Ending => ({ status: 'cancelled', error, summary: null, startedAt: null });

const cancelledBefore = 'the operation was canceled before the agent received it';

/**
 * Marks an operation as not dispatched, because its message was lost.
 * @returns null, or the reason for ending the operation
 */
async function undispatch(
  context: Context,
  { operation_id, node_id, run_id }: EndingOperation,
): Promise<string | null> {
  const { db } = context;
  try {
    await db.write({
      name: 'operations/undispatch',
      statements: [
        claimed(context, node_id),
        ...(run_id === null ? [] : [statement(runIsRunning, { run_id }, { expect: 'row', else: 'run_finished' })]),
        statement(markUndispatched, { operation_id }, { expect: 'changed', else: 'operation_finished' }),
      ],
    });
    return null;
  } catch (error) {
    if (error instanceof MusterError && error.code === 'run_finished')
      return 'not tried: the run was stopped before the agent received it';
    ignoreFinished(error);
    return (await db.get(operationById, { operation_id }))?.status === 'queued' ? cancelledBefore : null;
  }
}

async function endHere(context: Context, operation: EndingOperation, label: string, ending: Ending): Promise<void> {
  try {
    const statements = endStatements(context, operation, ending, systemActor, label);
    await context.db.write({
      name: `operations/${ending.status}`,
      statements: [claimed(context, operation.node_id), ...statements],
    });
    announceEnd(context, operation, ending.status);
  } catch (error) {
    ignoreFinished(error);
  }
}
