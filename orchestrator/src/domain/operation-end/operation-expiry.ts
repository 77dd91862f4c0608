import { expiredQueued, lostOperations, stillUnseen } from '../../store/queries/operations/operation-end.ts';
import { deleteExpiredWebCodes } from '../../store/queries/operators.ts';
import { deleteExpiredSessions } from '../../store/queries/sessions.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { agentLabel } from '../shared/agent-label.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';
import { announceEnd, type Ending, type EndingOperation, endStatements, ignoreFinished } from './operation-end.ts';

/** Ends operations after their time limits, and deletes expired sign-in sessions. */

/** Maximum number of operations read at a time. Their transactions share commits. */
const atOnce = 500;
/** Seconds after which a disconnected agent is assumed to have lost its dispatched operations. */
const lostAfterSecs = 86_400;

/** Ends queued operations that were not dispatched before they expired. */
export async function expireQueued(context: Context): Promise<void> {
  for (;;) {
    const expired = await context.db.all(expiredQueued, { now: seconds(context.now()), limit: atOnce });
    const ending = {
      status: 'expired',
      error: 'the agent did not connect in time',
      summary: null,
      startedAt: null,
    } as const;
    await endAll(context, expired, ending, true);
    if (expired.length < atOnce) return;
  }
}

/** Ends operations that were dispatched to agents that are now lost. Their outcomes remain unknown. */
export async function endLost(context: Context): Promise<void> {
  const now = seconds(context.now());
  const seen_before = now - lostAfterSecs;
  const sent = await context.db.all(lostOperations, { now, seen_before, limit: atOnce });
  const lost = sent.filter(({ node_id }) => !context.presence.isConnected(node_id));
  const error = 'the agent was lost before it reported how the operation ended';
  const ending = { status: 'interrupted', error, summary: null, startedAt: null } as const;
  await endAll(context, lost, ending, false, ({ node_id }) =>
    statement(stillUnseen, { node_id, seen_before }, { expect: 'row', else: 'operation_finished' }),
  );
}

async function endAll(
  context: Context,
  operations: readonly EndingOperation[],
  ending: Ending,
  undispatched: boolean,
  unless?: (operation: EndingOperation) => Statement,
): Promise<void> {
  await Promise.all(
    operations.map(async (operation) => {
      const label = await agentLabel(context, operation.node_id);
      const statements = endStatements(context, operation, ending, systemActor, label, undispatched);
      if (unless) statements.unshift(unless(operation));
      try {
        await context.db.write({ name: `operations/${ending.status}`, statements });
        announceEnd(context, operation, ending.status);
      } catch (error) {
        ignoreFinished(error);
      }
    }),
  );
}

/**
 * Deletes expired sign-in sessions and codes to keep the tables small. They are refused even before they are deleted.
 */
export async function expireSessions(context: Context): Promise<void> {
  const now = seconds(context.now());
  const expire = [statement(deleteExpiredSessions, { now }), statement(deleteExpiredWebCodes, { now })];
  await context.db.write({ name: 'sessions/expire', statements: expire });
}
