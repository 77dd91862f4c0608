import { idOfKey, isName, MusterError } from '@muster/protocol';
import type { Operator, Role, removedOperatorSchema } from '@muster/protocol/http';
import type { z } from 'zod';
import { isUsablePublicKey } from '../../identity/ed25519-key.ts';
import { OutcomeUnknown } from '../../store/database.ts';
import {
  countLiveEnrolmentTokensOf,
  liveEnrolmentTokensOf,
  newerEnrolmentTokenOf,
  revokeEnrolmentTokensOf,
} from '../../store/queries/agents/enrollment.ts';
import {
  anyOperator,
  assignmentsCreatedBy,
  channelsCreatedBy,
  deleteWebCodesOf,
  insertOperator,
  liveAdmin,
  markOperatorRemoved,
  modulesUploadedBy,
  openOperationsOf,
  openRunsOf,
  operatorById,
  operators,
  operatorsAddedBy,
  operatorTaking,
} from '../../store/queries/operators.ts';
import { deleteSessionsOf } from '../../store/queries/sessions.ts';
import { activeTerminalsOf } from '../../store/queries/terminals.ts';
import { statement, type Unit } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { type Actor, type Context, seconds, systemActor } from '../shared/context.ts';
import { mapPage, type Page, type PageRequest, readPage } from '../shared/page.ts';

/**
 * Manages operators and their roles. Removed operators remain recorded, so that their keys and names cannot be reused.
 */

/**
 * Parses an operator's public key.
 * @throws MusterError key_invalid
 */
export function operatorKey(hex: string): Buffer {
  const raw = /^[0-9a-fA-F]{64}$/.test(hex) ? Buffer.from(hex, 'hex') : null;
  if (raw === null || !isUsablePublicKey(raw))
    throw new MusterError('key_invalid', 'public_key must be 64 hexadecimal characters of a usable Ed25519 key', [
      { path: '/public_key', message: 'must be 64 hexadecimal characters of a usable Ed25519 key' },
    ]);
  return raw;
}

type Row = NonNullable<Awaited<ReturnType<typeof findRow>>>;
const findRow = ({ db }: Context, operatorId: string) => db.get(operatorById, { operator_id: operatorId });

const toOperator = (row: Row): Operator => ({
  operator_id: row.operator_id,
  username: row.username,
  role: row.role,
  added_at: row.added_at,
  added_by: row.added_by,
  bootstrap: row.bootstrap === 1,
  removed_at: row.removed_at,
  removed_by: row.removed_by,
});

/** Lists operators by name. */
export async function listOperators(
  { db }: Context,
  includeRemoved: boolean,
  request: PageRequest,
): Promise<Page<Operator>> {
  const query = operators({ removed: includeRemoved });
  return mapPage(await readPage(request, (page) => db.all(query, page)), toOperator);
}

export async function getOperator(context: Context, operatorId: string): Promise<Operator> {
  const row = await findRow(context, operatorId);
  if (!row) throw new MusterError('operator_not_found', `there is no operator ${operatorId.slice(0, 64)}`);
  return toOperator(row);
}

export interface NewOperator {
  public_key: string;
  username: string;
  role: Role;
}

export async function addOperator(context: Context, actor: Actor, requested: NewOperator): Promise<Operator> {
  const key = operatorKey(requested.public_key);
  if (!isName(requested.username)) {
    const message = '1 to 64 letters, digits, - or _, starting with a letter';
    throw new MusterError('invalid_input', `username must be ${message}`, [{ path: '/username', message }]);
  }
  const operatorId = await idOfKey(key);
  const bootstrap = actor.type === 'system';
  const row = {
    operator_id: operatorId,
    public_key: key.toString('hex'),
    username: requested.username,
    role: requested.role,
    added_at: seconds(context.now()),
    added_by: bootstrap ? 'bootstrap' : actor.id,
    bootstrap,
  };
  await context.db.write({
    name: 'operators/add',
    statements: [
      statement(operatorById, { operator_id: operatorId }, { expect: 'no_row', else: 'key_taken' }),
      statement(operatorTaking, { username: requested.username }, { expect: 'no_row', else: 'name_taken' }),
      ...(bootstrap ? [statement(anyOperator, {}, { expect: 'no_row', else: 'name_taken' })] : []),
      statement(insertOperator, row),
      audited(context, {
        type: 'operator.added',
        actor,
        target: { type: 'operator', id: operatorId, name: requested.username },
        summary: `operator ${requested.username} added as ${requested.role}`,
        metadata: { role: requested.role, bootstrap },
      }),
    ],
  });
  return getOperator(context, operatorId);
}

/**
 * Creates the first operator from the configuration. Does nothing if an operator exists.
 * @returns whether an operator was created
 */
export async function bootstrapOperator(context: Context, requested: Omit<NewOperator, 'role'>): Promise<boolean> {
  if (await context.db.get(anyOperator, {})) return false;
  await addOperator(context, systemActor, { ...requested, role: 'admin' });
  return true;
}

/** The sessions and work that ended when an operator was removed, and the objects that an admin should review. */
export type Removed = z.output<typeof removedOperatorSchema>;

/**
 * Removes an operator. The same transaction removes every credential that the operator could use to regain access. When
 * this resolves, the operator's sign-in sessions are invalid, and its streams and terminals have been closed.
 * @throws MusterError operator_not_found, last_admin
 */
export async function removeOperator(context: Context, actor: Actor, operatorId: string): Promise<Removed> {
  const { bus } = context;
  const operator = await getOperator(context, operatorId);
  const announceRemoval = async () => {
    bus.publish({ type: 'operator_removed', operator_id: operatorId });
    await bus.delivered();
  };
  let ended: Removed['ended'] = { sessions: 0, web_logins: 0, enrolment_tokens: [], terminals: [] };
  try {
    if (operator.removed_at === null) ended = await remove(context, actor, operator);
  } catch (error) {
    // Closes the operator's streams and terminals, because the removal may have been committed.
    if (error instanceof OutcomeUnknown) await announceRemoval();
    // A concurrent request has removed the operator.
    if (!(error instanceof MusterError && error.code === 'operator_not_found')) throw error;
  }
  await announceRemoval();
  const { live, removed } = await addedBy(context, operatorId);
  return {
    operator: await getOperator(context, operatorId),
    ended,
    operators_added: live,
    left: await leftBy(context, [operatorId, ...removed]),
  };
}

/**
 * Returns the operators whom this operator added, directly or through operators who were removed later. Otherwise,
 * operators could hide an addition by removing the operator who made it.
 */
async function addedBy({ db }: Context, operatorId: string) {
  const live: Removed['operators_added'] = [];
  const removed = new Set<string>();
  for (let ids = [operatorId]; ids.length > 0; ) {
    const added = await db.all(operatorsAddedBy, { ids });
    live.push(
      ...added
        .filter(({ removed_at }) => removed_at === null)
        .map(({ operator_id, username }) => ({ operator_id, username })),
    );
    ids = added.filter(({ operator_id, removed_at }) => removed_at !== null && !removed.has(operator_id)).map(idOf);
    for (const id of ids) removed.add(id);
  }
  return { live, removed };
}
const idOf = ({ operator_id }: { operator_id: string }): string => operator_id;

/** Returns the objects that these operators created and that remain in effect after they are removed. */
async function leftBy({ db }: Context, ids: readonly string[]): Promise<Removed['left']> {
  const [modules, assignments, channels, runs, operations] = await Promise.all([
    db.all(modulesUploadedBy, { ids }),
    db.all(assignmentsCreatedBy, { ids }),
    db.all(channelsCreatedBy, { ids }),
    db.all(openRunsOf, { ids }),
    db.all(openOperationsOf, { ids, limit: maxOperationsListed }),
  ]);
  return {
    modules: modules.map(({ name }) => name),
    assignments: assignments.map(({ name }) => name),
    channels: channels.map(({ channel_id: id, name }) => ({ id, name })),
    runs: runs.map(({ run_id }) => run_id),
    operations: operations.map(({ operation_id }) => operation_id),
  };
}

const maxOperationsListed = 500;
/** Maximum number of revoked tokens that the event lists. If there are more, the event contains only their number. */
const maxTokensListed = 500;

async function remove(context: Context, actor: Actor, operator: Operator): Promise<Removed['ended']> {
  const { db } = context;
  const { operator_id, username } = operator;
  for (;;) {
    const now = seconds(context.now());
    const { count, newest } = (await db.get(countLiveEnrolmentTokensOf, { operator_id, now })) ?? {
      count: 0,
      newest: null,
    };
    const tokens = await db.all(liveEnrolmentTokensOf, { operator_id, now, limit: maxTokensListed });
    const terminals = (await db.all(activeTerminalsOf, { operator_id })).map(({ session_id }) => session_id);
    const ids = tokens.map(({ id }) => id);
    const endSessions = statement(deleteSessionsOf, { operator_id });
    const endWebLogins = statement(deleteWebCodesOf, { operator_id });
    const unit: Unit = {
      name: 'operators/remove',
      statements: [
        // Must precede the removal, because operators who remove themselves lose their session in this transaction.
        audited(context, {
          type: 'operator.removed',
          actor,
          target: { type: 'operator', id: operator_id, name: username },
          summary: `operator ${username} removed${endedText(Number(count), terminals.length)}`,
          metadata: { enrolment_tokens: ids, terminals },
        }),
        statement(
          markOperatorRemoved,
          { operator_id, removed_at: now, removed_by: actor.id },
          { expect: 'changed', else: 'operator_not_found' },
        ),
        // Must follow the removal in the same transaction, so that two admins who remove each other cannot both
        // succeed.
        statement(liveAdmin, {}, { expect: 'row', else: 'last_admin' }),
        // The event states the number of revoked tokens. If a token is created after they were counted, the removal is
        // retried.
        statement(
          newerEnrolmentTokenOf,
          { operator_id, now, newest: newest ?? '' },
          { expect: 'no_row', else: 'storage_unavailable', detail: tokenMadeMeanwhile },
        ),
        statement(revokeEnrolmentTokensOf, { operator_id, now }),
        endSessions,
        endWebLogins,
      ],
    };
    try {
      const done = await db.write(unit);
      return {
        sessions: done.of(endSessions).changes,
        web_logins: done.of(endWebLogins).changes,
        enrolment_tokens: tokens,
        terminals,
      };
    } catch (error) {
      if (!(error instanceof MusterError && error.message === tokenMadeMeanwhile)) throw error;
    }
  }
}

const tokenMadeMeanwhile = 'the operator created an enrollment token at the same time';

function endedText(tokens: number, terminals: number): string {
  const parts = [
    ...(tokens === 0 ? [] : [`${tokens} enrollment token${tokens === 1 ? '' : 's'}`]),
    ...(terminals === 0 ? [] : [`${terminals} terminal${terminals === 1 ? '' : 's'}`]),
  ];
  return parts.length === 0 ? '' : `, which also ended ${parts.join(' and ')}`;
}
