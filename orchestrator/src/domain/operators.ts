import { idOfKey, isName, MusterError } from '@muster/protocol';
import type { Operator, Role } from '@muster/protocol/http';
import { isUsablePublicKey } from '../identity/ed25519-key.ts';
import { OutcomeUnknown } from '../store/database.ts';
import {
  anyOperator,
  deleteSessionsOf,
  insertOperator,
  liveAdmin,
  markOperatorRemoved,
  operatorById,
  operators,
  operatorTaking,
} from '../store/operators.ts';
import { statement, type Unit } from '../store/unit.ts';
import { audited } from './audit.ts';
import { type Actor, type Context, seconds, systemActor } from './context.ts';
import { mapPage, type Page, type PageWish, readPage } from './page.ts';

/** Operators: who may sign in, and as what. Removed ones stay on record, and their key and name stay taken. */

/** @throws MusterError key_invalid */
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

/** By name. */
export async function listOperators({ db }: Context, includeRemoved: boolean, wish: PageWish): Promise<Page<Operator>> {
  const query = operators({ removed: includeRemoved });
  return mapPage(await readPage(wish, (page) => db.all(query, page)), toOperator);
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

export async function addOperator(context: Context, actor: Actor, wanted: NewOperator): Promise<Operator> {
  const key = operatorKey(wanted.public_key);
  if (!isName(wanted.username)) {
    const message = '1 to 64 letters, digits, - or _, the first a letter';
    throw new MusterError('invalid_input', `username must be ${message}`, [{ path: '/username', message }]);
  }
  const operatorId = await idOfKey(key);
  const bootstrap = actor.type === 'system';
  const row = {
    operator_id: operatorId,
    public_key: key.toString('hex'),
    username: wanted.username,
    role: wanted.role,
    added_at: seconds(context.now()),
    added_by: bootstrap ? 'bootstrap' : actor.id,
    bootstrap,
  };
  await context.db.write({
    name: 'operators/add',
    statements: [
      statement(operatorById, { operator_id: operatorId }, { expect: 'no_row', else: 'key_taken' }),
      statement(operatorTaking, { username: wanted.username }, { expect: 'no_row', else: 'name_taken' }),
      ...(bootstrap ? [statement(anyOperator, {}, { expect: 'no_row', else: 'name_taken' })] : []),
      statement(insertOperator, row),
      audited(context, {
        type: 'operator.added',
        actor,
        target: { type: 'operator', id: operatorId, name: wanted.username },
        summary: `operator ${wanted.username} added as ${wanted.role}`,
        metadata: { role: wanted.role, bootstrap },
      }),
    ],
  });
  return getOperator(context, operatorId);
}

/**
 * Makes the first operator, as the configuration says. Does nothing once there is one.
 * @returns whether it made one
 */
export async function bootstrapOperator(context: Context, wanted: Omit<NewOperator, 'role'>): Promise<boolean> {
  if (await context.db.get(anyOperator, {})) return false;
  await addOperator(context, systemActor, { ...wanted, role: 'admin' });
  return true;
}

/** Sessions, streams and terminals end on the hint that follows. */
export async function removeOperator(context: Context, actor: Actor, operatorId: string): Promise<void> {
  const operator = await getOperator(context, operatorId);
  const publish = () => context.bus.publish({ type: 'operator_removed', operator_id: operatorId });
  try {
    if (operator.removed_at === null) await context.db.write(removal(context, actor, operator));
  } catch (error) {
    // Perhaps it is removed: what it has open is not left to it on that account.
    if (error instanceof OutcomeUnknown) publish();
    // Somebody else removed it in this moment: that is what was asked for.
    if (!(error instanceof MusterError && error.code === 'operator_not_found')) throw error;
  }
  publish();
}

const removal = (context: Context, actor: Actor, operator: Operator): Unit => {
  const operatorId = operator.operator_id;
  return {
    name: 'operators/remove',
    statements: [
      statement(
        markOperatorRemoved,
        { operator_id: operatorId, removed_at: seconds(context.now()), removed_by: actor.id },
        { expect: 'changed', else: 'operator_not_found' },
      ),
      // Looked at after the removal and in its unit: two admins who remove each other cannot both succeed.
      statement(liveAdmin, {}, { expect: 'row', else: 'last_admin' }),
      statement(deleteSessionsOf, { operator_id: operatorId }),
      audited(context, {
        type: 'operator.removed',
        actor,
        target: { type: 'operator', id: operatorId, name: operator.username },
        summary: `operator ${operator.username} removed`,
      }),
    ],
  };
};
