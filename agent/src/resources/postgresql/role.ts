import { randomBytes } from 'node:crypto';
import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { expectAnswer, goneMessage, type NoServer } from '../../host/databases/no-server.ts';
import {
  clusterOwner,
  executeStatements,
  identifier,
  literal,
  maintenanceDatabase,
} from '../../host/databases/postgresql.ts';
import { isVerifierOf, saltLength, scramVerifier } from '../../host/databases/scram.ts';
import { HostFailure } from '../../host/failure.ts';
import { fieldChanges } from '../database/field-changes.ts';
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
import { clusterChanged, type RoleRecord, readCluster, roleFlagNames, roleFlags } from './cluster.ts';

export interface SeenRole {
  missing: NoServer | null;
  role: RoleRecord | null;
  /** Roles declared in `member_of` that do not exist. */
  unknown: string[];
}

/**
 * The role before the agent first changed it: each changed attribute, or all attributes if the agent dropped the role.
 */
export type RoleBefore = { was: 'absent' } | { was: 'role'; touched: Partial<RoleRecord>; whole: RoleRecord | null };

type Declared = ResolvedResource<'postgresql-role'>;
type Body = Declared['body'];
/** Attributes to set on a role; absent ones stay unchanged. */
type Wanted = Partial<Omit<RoleRecord, 'extra'>>;

/** A role in the cluster. The agent passes the password only as a verifier, on the standard input of psql. */
export const postgresqlRole = defineProvider<'postgresql-role', SeenRole, RoleBefore>({
  type: 'postgresql-role',
  fields: {
    name: 'text',
    login: 'boolean?',
    password: 'text?',
    superuser: 'boolean?',
    createdb: 'boolean?',
    createrole: 'boolean?',
    inherit: 'boolean?',
    replication: 'boolean?',
    bypassrls: 'boolean?',
    connection_limit: 'integer?',
    member_of: 'list?',
    force: 'boolean?',
    ensure: 'text?',
  },
  brings: () => ['databases'],

  check({ body }) {
    if (body.name === clusterOwner && (body.ensure === 'absent' || body.login === false || body.superuser === false))
      throw new HostFailure(
        `the agent signs in as ${clusterOwner}, so this role must keep \`login\` and \`superuser\``,
      );
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: diffRole,

  async remember(_resource, { role }, { changes }, before) {
    return rememberRole(role, changes, before);
  },

  async apply({ body }, { role }, _difference, machine) {
    const { name } = body;
    if (body.ensure === 'absent') return change([`DROP ROLE ${identifier(name)}`], machine);
    const wanted = wantedOf(body);
    const { password } = body;
    if (password != null && !isVerifierOf(password, role?.verifier ?? null))
      wanted.verifier = scramVerifier(password, randomBytes(saltLength));
    return change(roleStatements(name, role, wanted), machine);
  },

  observeForRemoval: (resource, _before, machine) => look(resource, machine),
  diffRemoval: (_resource, before, seen) => diffRoleRemoval(before, seen),

  async remove({ body: { name } }, before, { role }, _difference, machine) {
    if (before.was === 'absent') return change([`DROP ROLE ${identifier(name)}`], machine);
    return change(roleStatements(name, role, originalOf(before)), machine);
  },
});

async function look({ body }: Declared, machine: Machine): Promise<SeenRole> {
  const read = await readCluster(machine);
  if ('missing' in read) return { missing: read.missing, role: null, unknown: [] };
  const { roles } = read.value;
  const unknown = body.ensure === 'absent' ? [] : (body.member_of ?? []).filter((name) => !roles.has(name));
  return { missing: null, role: roles.get(body.name) ?? null, unknown };
}

async function change(statements: readonly string[], machine: Machine): Promise<Record<string, never>> {
  try {
    await executeStatements(maintenanceDatabase, statements, machine);
  } finally {
    clusterChanged(machine);
  }
  return {};
}

/** Returns the declared attributes, without the password. */
function wantedOf(body: Body): Wanted {
  const wanted: Wanted = {};
  for (const flag of roleFlagNames) if (body[flag] != null) wanted[flag] = body[flag];
  if (body.connection_limit != null) wanted.connection_limit = body.connection_limit;
  if (body.member_of != null) wanted.member_of = [...body.member_of];
  return wanted;
}

export function diffRole(
  { body }: Pick<Declared, 'body'>,
  { missing, role, unknown }: SeenRole,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  expectAnswer(missing, purpose !== 'drift' && body.ensure !== 'absent');
  if (body.ensure === 'absent') {
    if (role === null) return nothing();
    if (purpose !== 'drift' && role.extra && body.force !== true)
      throw new HostFailure(
        `the role ${body.name} has settings or a comment, which removal could not restore: declare \`force: true\` to drop it anyway`,
      );
    return presenceDrift();
  }
  const changes: FieldChange[] = role === null ? [{ field: 'ensure', from: 'absent', to: 'present' }] : [];
  changes.push(...changesTo(wantedOf(body), role));
  if (body.password != null && !isVerifierOf(body.password, role?.verifier ?? null))
    changes.push({ field: 'password', from: null, to: null });
  const noRoles = unknown.map((name) => ({ kind: 'databases' as const, message: `PostgreSQL has no role ${name}` }));
  return withChanges(role === null ? 'create' : 'update', changes, { awaits: [missing, ...noRoles] });
}

/** Returns the changes to the declared attributes except the password. */
function changesTo(wanted: Wanted, role: RoleRecord | null): FieldChange[] {
  const changes = fieldChanges([...roleFlagNames, 'connection_limit'], wanted, role);
  if (wanted.member_of !== undefined && (role === null || listed(role.member_of) !== listed(wanted.member_of)))
    changes.push({
      field: 'member_of',
      from: role === null ? null : listed(role.member_of),
      to: listed(wanted.member_of),
    });
  const { members } = wanted;
  changes.push(...fieldChanges(['valid_until'], wanted, role));
  if (members?.some((member) => role?.members.includes(member) !== true) === true)
    changes.push({ field: 'members', from: role === null ? null : listed(role.members), to: listed(members) });
  return changes;
}

const listed = (names: readonly string[]): string => [...new Set(names)].sort().join(',');

export function rememberRole(
  role: RoleRecord | null,
  changes: readonly Pick<FieldChange, 'field'>[],
  before: RoleBefore | null,
): RoleBefore {
  if (before?.was === 'absent') return before;
  if (role === null) return before ?? { was: 'absent' };
  const touched: Partial<RoleRecord> = {};
  for (const { field } of changes) {
    if (field === 'password') touched.verifier = role.verifier;
    else if (field === 'connection_limit') touched.connection_limit = role.connection_limit;
    else if (field === 'member_of') touched.member_of = role.member_of;
    else if (field !== 'ensure') touched[field as 'login'] = role[field as 'login'];
  }
  const whole = before?.whole ?? (changes.some(({ field }) => field === 'ensure') ? role : null);
  return { was: 'role', touched: { ...touched, ...before?.touched }, whole };
}

/** Returns the attributes that removal restores: all of them if the agent dropped the role. */
const originalOf = ({ touched, whole }: Extract<RoleBefore, { was: 'role' }>): Wanted => {
  const { extra: _, ...all } = { ...whole, ...touched };
  return all;
};

export function diffRoleRemoval(before: RoleBefore, { missing, role }: SeenRole): Difference {
  expectAnswer(missing, false);
  if (missing !== null) return nothing(goneMessage);
  if (before.was === 'absent') return role === null ? nothing('already removed') : presenceDrift();
  if (role === null && before.whole === null)
    return nothing('already removed, but not by the agent, so the agent does not create it again');
  const original = originalOf(before);
  const changes: FieldChange[] = role === null ? [{ field: 'ensure', from: 'absent', to: 'present' }] : [];
  changes.push(...changesTo(original, role));
  if (original.verifier !== undefined && original.verifier !== (role?.verifier ?? null))
    changes.push({ field: 'password', from: null, to: null });
  return restoring(changes);
}

/** Returns the statements that create a role with these attributes, or set them on an existing role. */
export function roleStatements(name: string, role: RoleRecord | null, wanted: Wanted): string[] {
  const options: string[] = [];
  for (const flag of roleFlagNames) {
    const to = wanted[flag];
    if (to !== undefined && to !== role?.[flag]) options.push(`${to ? '' : 'NO'}${roleFlags[flag]}`);
  }
  const { connection_limit, verifier, valid_until, member_of, members } = wanted;
  if (connection_limit !== undefined && connection_limit !== role?.connection_limit)
    options.push(`CONNECTION LIMIT ${connection_limit}`);
  if (verifier !== undefined && verifier !== (role?.verifier ?? null))
    options.push(`PASSWORD ${verifier === null ? 'NULL' : literal(verifier)}`);
  if (valid_until != null && valid_until !== role?.valid_until) options.push(`VALID UNTIL ${literal(valid_until)}`);
  const statements: string[] = [];
  const joined = options.map((option) => ` ${option}`).join('');
  if (role === null) statements.push(`CREATE ROLE ${identifier(name)}${joined}`);
  else if (options.length > 0) statements.push(`ALTER ROLE ${identifier(name)}${joined}`);
  const grant = (group: string, member: string) => `GRANT ${identifier(group)} TO ${identifier(member)}`;
  for (const group of new Set(member_of))
    if (role?.member_of.includes(group) !== true) statements.push(grant(group, name));
  for (const group of role?.member_of ?? [])
    if (member_of?.includes(group) === false) statements.push(`REVOKE ${identifier(group)} FROM ${identifier(name)}`);
  for (const member of members ?? []) if (role?.members.includes(member) !== true) statements.push(grant(name, member));
  return statements;
}
