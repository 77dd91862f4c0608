import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { identifier } from '../../host/databases/mariadb.ts';
import { expectAnswer, goneMessage, type NoServer } from '../../host/databases/no-server.ts';
import { HostFailure } from '../../host/failure.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Circumstances,
  type Difference,
  type Machine,
  nothing,
  presenceDrift,
  restoring,
  withChanges,
} from '../provider/provider.ts';
import { accountName, accountSql, change, readServer } from './server.ts';

/** A user's privileges at one level. MariaDB has one grant option for all of them. */
export type Privileges = { names: string[]; grantable: boolean };

export interface SeenGrant {
  missing: NoServer | null;
  has: Privileges;
}

type Declared = ResolvedResource<'mysql-grant'>;
type Body = Declared['body'];

const none: Privileges = { names: [], grantable: false };

/** A user's privileges on everything, on a database, or on a table. */
export const mysqlGrant = defineProvider<'mysql-grant', SeenGrant, Privileges>({
  type: 'mysql-grant',
  fields: {
    user: 'text',
    database: 'text',
    host: 'text?',
    table: 'text?',
    privileges: 'list?',
    grant_option: 'boolean?',
    ensure: 'text?',
  },

  check({ body }) {
    if (body.user === 'root' && (body.host ?? 'localhost') === 'localhost')
      throw new HostFailure('the agent signs in as root@localhost, so its privileges cannot be declared');
    if (body.database === '*' && body.table != null)
      throw new HostFailure('a `table` needs the name of its database, not "*"');
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: diffGrant,

  async remember(_resource, { has }, _difference, before) {
    return before ?? has;
  },

  apply: ({ body }, { has }, _difference, machine) => change(grantStatements(body, has, wantedOf(body, has)), machine),
  observeForRemoval: (resource, _before, machine) => look(resource, machine),
  diffRemoval: (_resource, before, seen) => diffGrantRemoval(before, seen),
  remove: ({ body }, before, { has }, _difference, machine) => change(grantStatements(body, has, before), machine),
});

/** Escapes `_` and `%`, which are wildcards in a grant on a database. */
const pattern = (database: string): string => database.replace(/[_%]/g, (found) => `\\${found}`);

async function look({ body }: Declared, machine: Machine): Promise<SeenGrant> {
  const read = await readServer(machine);
  if ('missing' in read) return { missing: read.missing, has: none };
  const { users, databases, grants } = read.value;
  const account = accountName(body.user, body.host);
  const table = body.table ?? null;
  const place = body.database === '*' ? null : table === null ? pattern(body.database) : body.database;
  const found = grants.filter(
    (grant) => grant.account === account && grant.database === place && grant.table === table,
  );
  const missing = !users.has(account)
    ? { kind: 'databases' as const, message: `MariaDB has no user ${account}`, gone: true }
    : place !== null && !databases.has(body.database)
      ? { kind: 'databases' as const, message: `MariaDB has no database ${body.database}`, gone: true }
      : null;
  return {
    missing,
    has: {
      names: found
        .map(({ privilege }) => privilege)
        .filter((name) => name !== 'USAGE')
        .sort(),
      grantable: found.some(({ grantable }) => grantable),
    },
  };
}

function wantedOf({ ensure, privileges, grant_option }: Body, has: Privileges): Privileges {
  if (ensure === 'absent') return none;
  return { names: [...new Set(privileges)].sort(), grantable: grant_option ?? has.grantable };
}

const shown = ({ names }: Privileges): string => names.join(',');
const isSame = (a: Privileges, b: Privileges): boolean => shown(a) === shown(b) && a.grantable === b.grantable;
const isNone = ({ names, grantable }: Privileges): boolean => names.length === 0 && !grantable;

function changesTo(to: Privileges, from: Privileges): FieldChange[] {
  const changes: FieldChange[] = isNone(from) ? [{ field: 'ensure', from: 'absent', to: 'present' }] : [];
  if (shown(from) !== shown(to))
    changes.push({ field: 'privileges', from: isNone(from) ? null : shown(from), to: shown(to) });
  if (from.grantable !== to.grantable)
    changes.push({ field: 'grant_option', from: String(from.grantable), to: String(to.grantable) });
  return changes;
}

export function diffGrant(
  { body }: Pick<Declared, 'body'>,
  { missing, has }: SeenGrant,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  expectAnswer(missing, purpose !== 'drift' && body.ensure !== 'absent');
  if (body.ensure === 'absent') return isNone(has) ? nothing() : presenceDrift();
  const wanted = wantedOf(body, has);
  if (isSame(has, wanted)) return nothing();
  return withChanges(isNone(has) ? 'create' : 'update', changesTo(wanted, has), { awaits: [missing] });
}

export function diffGrantRemoval(before: Privileges, { missing, has }: SeenGrant): Difference {
  expectAnswer(missing, false);
  if (isSame(has, before)) return restoring([]);
  if (missing !== null && isNone(has)) return nothing(goneMessage);
  if (isNone(before)) return presenceDrift();
  return restoring(changesTo(before, has));
}

/** Returns the statements that change a user's privileges at one level to other privileges. */
export function grantStatements(
  { user, host, database, table }: Pick<Body, 'user' | 'host' | 'database' | 'table'>,
  from: Privileges,
  to: Privileges,
): string[] {
  const account = accountSql(user, host);
  const place =
    database === '*'
      ? '*.*'
      : table == null
        ? `${identifier(pattern(database))}.*`
        : `${identifier(database)}.${identifier(table)}`;
  const lost = from.names.filter((name) => !to.names.includes(name));
  if (from.grantable && !to.grantable) lost.push('GRANT OPTION');
  const won = to.names.filter((name) => !from.names.includes(name));
  const option = to.grantable && !from.grantable ? ' WITH GRANT OPTION' : '';
  const granted = won.length > 0 ? won.join(', ') : 'USAGE';
  return [
    ...(won.length > 0 || option !== '' ? [`GRANT ${granted} ON ${place} TO ${account}${option}`] : []),
    ...(lost.length > 0 ? [`REVOKE ${lost.join(', ')} ON ${place} FROM ${account}`] : []),
  ];
}
