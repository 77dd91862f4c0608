import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { expectAnswer, type NoServer } from '../../host/databases/no-server.ts';
import { executeStatements, identifier, literal, maintenanceDatabase } from '../../host/databases/postgresql.ts';
import { HostFailure } from '../../host/failure.ts';
import { diffRemovalOfDatabase, refusal } from '../database/drop.ts';
import { fieldChanges } from '../database/field-changes.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Circumstances,
  changedFields,
  type Difference,
  type Machine,
  nothing,
  presenceDrift,
  withChanges,
} from '../provider/provider.ts';
import { clusterChanged, type DatabaseRecord, readCluster } from './cluster.ts';
import { objectsChanged } from './objects.ts';

export interface SeenDatabase {
  missing: NoServer | null;
  database: DatabaseRecord | null;
  /** Whether the declared owner exists. */
  hasOwner: boolean;
}

/** The database before the agent first changed it: each changed attribute, and whether the agent dropped it. */
export type DatabaseBefore =
  | { was: 'absent' }
  | { was: 'database'; owner?: string; connection_limit?: number; dropped?: true };

type Declared = ResolvedResource<'postgresql-database'>;
type Wanted = { owner?: string | null | undefined; connection_limit?: number | null | undefined };

/** A database in the cluster. It is never dropped unless `force` is declared, because its data cannot be restored. */
export const postgresqlDatabase = defineProvider<'postgresql-database', SeenDatabase, DatabaseBefore>({
  type: 'postgresql-database',
  fields: {
    name: 'text',
    owner: 'text?',
    encoding: 'text?',
    locale: 'text?',
    template_database: 'text?',
    connection_limit: 'integer?',
    force: 'boolean?',
    ensure: 'text?',
  },
  brings: () => ['databases'],

  check({ body: { name, ensure } }) {
    if (ensure === 'absent' && ['postgres', 'template0', 'template1'].includes(name))
      throw new HostFailure(`PostgreSQL needs the database ${name}`);
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: diffDatabase,

  async remember(_resource, { database }, { changes }, before) {
    if (before?.was === 'absent') return before;
    if (database === null) return before ?? { was: 'absent' };
    const changed = changedFields({ changes });
    return {
      ...(changed.has('owner') ? { owner: database.owner } : {}),
      ...(changed.has('connection_limit') ? { connection_limit: database.connection_limit } : {}),
      ...(changed.has('ensure') ? { dropped: true as const } : {}),
      ...before,
      was: 'database',
    };
  },

  async apply({ body }, { database }, _difference, machine) {
    if (body.ensure === 'absent') return change(body.name, dropStatements(body.name), machine);
    const statements = database === null ? [createStatement(body)] : alterStatements(body.name, database, body);
    return change(body.name, statements, machine);
  },

  observeForRemoval: (resource, _before, machine) => look(resource, machine),
  diffRemoval: ({ body }, before, seen) => diffDatabaseRemoval(body, before, seen),

  async remove({ body: { name } }, before, { database }, _difference, machine) {
    if (before.was === 'absent') return change(name, dropStatements(name), machine);
    return change(name, database === null ? [] : alterStatements(name, database, before), machine);
  },
});

async function look({ body }: Declared, machine: Machine): Promise<SeenDatabase> {
  const read = await readCluster(machine);
  if ('missing' in read) return { missing: read.missing, database: null, hasOwner: false };
  const { roles, databases } = read.value;
  return {
    missing: null,
    database: databases.get(body.name) ?? null,
    hasOwner: body.owner == null || roles.has(body.owner),
  };
}

async function change(name: string, statements: readonly string[], machine: Machine): Promise<Record<string, never>> {
  try {
    // CREATE DATABASE and DROP DATABASE are not allowed in a transaction.
    await executeStatements(maintenanceDatabase, statements, machine, statements.length > 1);
  } finally {
    clusterChanged(machine);
    await objectsChanged(name, machine);
  }
  return {};
}

export function diffDatabase(
  { body }: Pick<Declared, 'body'>,
  { missing, database, hasOwner }: SeenDatabase,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  expectAnswer(missing, purpose !== 'drift' && body.ensure !== 'absent');
  if (body.ensure === 'absent') {
    if (database === null) return nothing();
    if (purpose !== 'drift' && body.force !== true) throw new HostFailure(refusal(body.name));
    return presenceDrift();
  }
  const changes: FieldChange[] = database === null ? [{ field: 'ensure', from: 'absent', to: 'present' }] : [];
  const fixed = fixedChanges(body, database);
  if (database !== null && fixed.length > 0 && purpose !== 'drift')
    throw new HostFailure(
      `the database ${body.name} has the ${fixed.map(({ field, from, to }) => `${field} ${from}, not ${to}`).join(', and the ')}: PostgreSQL cannot change it; copy the data into a new database`,
    );
  changes.push(...changesTo(body, database), ...fixed);
  const noOwner = hasOwner ? null : { kind: 'databases' as const, message: `PostgreSQL has no role ${body.owner}` };
  return withChanges(database === null ? 'create' : 'update', changes, { awaits: [missing ?? noOwner] });
}

const changesTo = (wanted: Wanted, database: DatabaseRecord | null): FieldChange[] =>
  fieldChanges(['owner', 'connection_limit'], wanted, database);

/** Returns the differences that only a new database could resolve. */
function fixedChanges({ encoding, locale }: Declared['body'], database: DatabaseRecord | null): FieldChange[] {
  const changes = fieldChanges(['encoding'], { encoding }, database);
  if (locale == null) return changes;
  const { collate = null, ctype = null } = database ?? {};
  if (!isSameLocale(collate, locale) || !isSameLocale(ctype, locale))
    changes.push({ field: 'locale', from: collate === ctype ? collate : `${collate}, ${ctype}`, to: locale });
  return changes;
}

/** Compares two locales. The C library writes an encoding in several ways, such as utf8 and UTF-8. */
const isSameLocale = (a: string | null, b: string): boolean => a !== null && plain(a) === plain(b);
const plain = (locale: string): string => locale.toLowerCase().replace(/utf-8/, 'utf8');

export function diffDatabaseRemoval(
  body: Pick<Declared['body'], 'name' | 'force'>,
  before: DatabaseBefore,
  { missing, database }: Pick<SeenDatabase, 'missing' | 'database'>,
): Difference {
  const changes = before.was === 'absent' || database === null ? [] : changesTo(before, database);
  return diffRemovalOfDatabase(body, before, { missing, exists: database !== null }, changes);
}

export function createStatement({
  name,
  owner,
  encoding,
  locale,
  template_database,
  connection_limit,
}: Declared['body']): string {
  const options = [
    ...(owner == null ? [] : [`OWNER ${identifier(owner)}`]),
    ...(encoding == null ? [] : [`ENCODING ${literal(encoding)}`]),
    ...(locale == null ? [] : [`LOCALE ${literal(locale)}`]),
    ...(template_database == null ? [] : [`TEMPLATE ${identifier(template_database)}`]),
    ...(connection_limit == null ? [] : [`CONNECTION LIMIT ${connection_limit}`]),
  ];
  return ['CREATE DATABASE', identifier(name), ...options].join(' ');
}

export function alterStatements(name: string, database: DatabaseRecord, { owner, connection_limit }: Wanted): string[] {
  const change = `ALTER DATABASE ${identifier(name)}`;
  return [
    ...(owner == null || owner === database.owner ? [] : [`${change} OWNER TO ${identifier(owner)}`]),
    ...(connection_limit == null || connection_limit === database.connection_limit
      ? []
      : [`${change} CONNECTION LIMIT ${connection_limit}`]),
  ];
}

const dropStatements = (name: string): string[] => [`DROP DATABASE ${identifier(name)}`];
