import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { identifier } from '../../host/databases/mariadb.ts';
import { expectAnswer, type NoServer } from '../../host/databases/no-server.ts';
import { HostFailure } from '../../host/failure.ts';
import { diffRemovalOfDatabase, refusal } from '../database/drop.ts';
import { fieldChanges } from '../database/field-changes.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Circumstances,
  type Difference,
  type Machine,
  nothing,
  presenceDrift,
  withChanges,
} from '../provider/provider.ts';
import { change, type DatabaseRecord, readServer } from './server.ts';

export interface SeenDatabase {
  missing: NoServer | null;
  database: DatabaseRecord | null;
}

/** The database before the agent first changed it, and whether the agent dropped it. */
export type DatabaseBefore = { was: 'absent' } | { was: 'database'; original: DatabaseRecord; dropped: boolean };

type Declared = ResolvedResource<'mysql-database'>;

/** A MariaDB database. It is never dropped unless `force` is declared, because its data cannot be restored. */
export const mysqlDatabase = defineProvider<'mysql-database', SeenDatabase, DatabaseBefore>({
  type: 'mysql-database',
  fields: { name: 'text', character_set: 'text?', collation: 'text?', force: 'boolean?', ensure: 'text?' },
  brings: () => ['databases'],

  check({ body: { name, ensure } }) {
    if (ensure === 'absent' && ['mysql', 'sys', 'information_schema', 'performance_schema'].includes(name))
      throw new HostFailure(`MariaDB needs the database ${name}`);
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: diffDatabase,

  async remember(_resource, { database }, { changes }, before) {
    if (before?.was === 'absent') return before;
    if (database === null) return before ?? { was: 'absent' };
    const dropped = before?.dropped === true || changes.some(({ field }) => field === 'ensure');
    return { was: 'database', original: before?.original ?? database, dropped };
  },

  async apply({ body }, { database }, _difference, machine) {
    const { name, character_set, collation } = body;
    if (body.ensure === 'absent') return change([`DROP DATABASE ${identifier(name)}`], machine);
    return change([databaseStatement(name, database, { character_set, collation })], machine);
  },

  observeForRemoval: (resource, _before, machine) => look(resource, machine),
  diffRemoval: ({ body }, before, seen) => diffDatabaseRemoval(body, before, seen),

  async remove({ body: { name } }, before, { database }, _difference, machine) {
    if (before.was === 'absent') return change([`DROP DATABASE ${identifier(name)}`], machine);
    return change([databaseStatement(name, database, before.original)], machine);
  },
});

async function look({ body }: Declared, machine: Machine): Promise<SeenDatabase> {
  const read = await readServer(machine);
  if ('missing' in read) return { missing: read.missing, database: null };
  return { missing: null, database: read.value.databases.get(body.name) ?? null };
}

type Wanted = { character_set?: string | null | undefined; collation?: string | null | undefined };

const changesTo = (wanted: Wanted, database: DatabaseRecord | null): FieldChange[] =>
  fieldChanges(['character_set', 'collation'], wanted, database);

export function diffDatabase(
  { body }: Pick<Declared, 'body'>,
  { missing, database }: SeenDatabase,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  expectAnswer(missing, purpose !== 'drift' && body.ensure !== 'absent');
  if (body.ensure === 'absent') {
    if (database === null) return nothing();
    if (purpose !== 'drift' && body.force !== true) throw new HostFailure(refusal(body.name));
    return presenceDrift();
  }
  const changes: FieldChange[] = database === null ? [{ field: 'ensure', from: 'absent', to: 'present' }] : [];
  changes.push(...changesTo(body, database));
  return withChanges(database === null ? 'create' : 'update', changes, { awaits: [missing] });
}

export function diffDatabaseRemoval(
  body: Pick<Declared['body'], 'name' | 'force'>,
  before: DatabaseBefore,
  { missing, database }: Pick<SeenDatabase, 'missing' | 'database'>,
): Difference {
  const changes = before.was === 'absent' || database === null ? [] : changesTo(before.original, database);
  return diffRemovalOfDatabase(body, before, { missing, exists: database !== null }, changes);
}

export function databaseStatement(name: string, database: DatabaseRecord | null, wanted: Wanted): string {
  const { character_set, collation } = wanted;
  return [
    `${database === null ? 'CREATE' : 'ALTER'} DATABASE ${identifier(name)}`,
    ...(character_set == null ? [] : [`CHARACTER SET ${identifier(character_set)}`]),
    ...(collation == null ? [] : [`COLLATE ${identifier(collation)}`]),
  ].join(' ');
}
