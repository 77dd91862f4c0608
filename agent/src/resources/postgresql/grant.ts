import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { expectAnswer, goneMessage, type NoServer } from '../../host/databases/no-server.ts';
import { identifier } from '../../host/databases/postgresql.ts';
import { HostFailure } from '../../host/failure.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Circumstances,
  type Difference,
  type Machine,
  nothing,
  presenceDrift,
  restoring,
} from '../provider/provider.ts';
import { readCluster } from './cluster.ts';
import { changeObjects, everyone, type GrantedObject, type ObjectType, readObjects } from './objects.ts';

/** Privileges of one role on one object, each mapped to whether the role may grant it to others. */
export type Privileges = Record<string, boolean>;

export interface SeenGrant {
  missing: NoServer[];
  /** The objects to which the resource applies, with the privileges of its role. */
  objects: { key: string; has: Privileges }[];
}

/** Privileges on each object before the agent first changed them. */
export type GrantBefore = { objects: Record<string, Privileges> };

type Declared = ResolvedResource<'postgresql-grant'>;
type Body = Declared['body'];

/** The privileges that ALL stands for, by object type. Lacks MAINTAIN, which PostgreSQL 17 added for tables. */
const allOf: Readonly<Record<ObjectType, readonly string[]>> = {
  database: ['CREATE', 'CONNECT', 'TEMPORARY'],
  schema: ['CREATE', 'USAGE'],
  table: ['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'],
  sequence: ['SELECT', 'UPDATE', 'USAGE'],
};

/** A role's privileges on one or more objects in a database. */
export const postgresqlGrant = defineProvider<'postgresql-grant', SeenGrant, GrantBefore>({
  type: 'postgresql-grant',
  fields: {
    database: 'text',
    role: 'text',
    privileges: 'list?',
    schema: 'text?',
    table: 'text?',
    sequence: 'text?',
    grant_option: 'boolean?',
    ensure: 'text?',
  },

  check({ body }) {
    const type = typeOf(body);
    const wrong = (body.privileges ?? []).find((name) => name !== 'ALL' && !allOf[type].includes(name));
    if (wrong !== undefined)
      throw new HostFailure(`a ${type} has no privilege ${wrong}: write ${allOf[type].join(', ')}, or ALL`);
    if (body.role === everyone && body.grant_option === true)
      throw new HostFailure('PostgreSQL gives the grant option only to individual roles, not to public');
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: diffGrant,

  async remember({ body }, { objects }, _difference, before) {
    const changed = objects.filter(({ has }) => !isSame(has, wantedOf(body, has)));
    const record = Object.fromEntries(changed.map(({ key, has }) => [key, has]));
    return { objects: { ...record, ...before?.objects } };
  },

  apply: ({ body }, { objects }, _difference, machine) =>
    change(
      body,
      objects.map(({ key, has }) => ({ key, from: has, to: wantedOf(body, has) })),
      machine,
    ),

  observeForRemoval: (resource, _before, machine) => look(resource, machine),
  diffRemoval: ({ body }, before, seen) => diffGrantRemoval(body, before, seen),

  remove: ({ body }, before, { objects }, _difference, machine) => change(body, restored(objects, before), machine),
});

const typeOf = ({ schema, table, sequence }: Body): ObjectType =>
  table != null ? 'table' : sequence != null ? 'sequence' : schema != null ? 'schema' : 'database';

/** Identifies an object in a database, as written after ON in SQL. */
export const objectKey = ({ type, schema, name }: Omit<GrantedObject, 'grants'>, database: string): string => {
  if (type === 'database') return `DATABASE ${identifier(database)}`;
  const place = identifier(schema ?? '');
  return type === 'schema' ? `SCHEMA ${place}` : `${type.toUpperCase()} ${place}.${identifier(name ?? '')}`;
};

async function look({ body }: Declared, machine: Machine): Promise<SeenGrant> {
  const [cluster, read] = await Promise.all([readCluster(machine), readObjects(body.database, machine)]);
  if ('missing' in read) return { missing: [read.missing], objects: [] };
  const type = typeOf(body);
  const name = body.table ?? body.sequence ?? null;
  const found = read.value.objects.filter(
    (object) =>
      object.type === type &&
      (type === 'database' || object.schema === body.schema) &&
      (name === null || name === '*' || object.name === name),
  );
  const missing: NoServer[] = [];
  if (body.ensure !== 'absent' && found.length === 0 && name !== '*')
    missing.push({
      gone: true,
      kind: 'databases',
      message: `the database ${body.database} has no ${type} ${name ?? body.schema}`,
    });
  if (body.role !== everyone && 'value' in cluster && !cluster.value.roles.has(body.role))
    missing.push({ kind: 'databases', message: `PostgreSQL has no role ${body.role}`, gone: true });
  return {
    missing,
    objects: found.map((object) => ({ key: objectKey(object, body.database), has: of(object, body) })),
  };
}

const of = ({ grants }: GrantedObject, { role }: Body): Privileges =>
  Object.fromEntries(
    grants.flatMap((grant) => (grant.role === role ? [[grant.privilege, grant.grantable] as const] : [])),
  );

/** Returns the declared privileges. Without `grant_option`, each keeps its grant option. */
function wantedOf(body: Body, has: Privileges): Privileges {
  if (body.ensure === 'absent') return {};
  const names = (body.privileges ?? []).flatMap((name) => (name === 'ALL' ? allOf[typeOf(body)] : [name]));
  return Object.fromEntries(names.map((name) => [name, body.grant_option ?? has[name] ?? false]));
}

const shown = (privileges: Privileges): string =>
  Object.entries(privileges)
    .map(([name, grantable]) => (grantable ? `${name} with grant option` : name))
    .sort()
    .join(',');
const isSame = (a: Privileges, b: Privileges): boolean => shown(a) === shown(b);

export function diffGrant(
  { body }: Pick<Declared, 'body'>,
  { missing, objects }: SeenGrant,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  for (const one of missing) expectAnswer(one, purpose !== 'drift' && body.ensure !== 'absent');
  const awaits = missing.length === 0 ? {} : { awaits: [...missing] };
  if (body.ensure === 'absent') {
    const left = objects.filter(({ has }) => Object.keys(has).length > 0);
    // PostgreSQL grants all roles privileges on a new database, but not on other new objects.
    const willHave = body.role === everyone && missing.length > 0;
    if (left.length === 0 && !willHave) return nothing();
    return { ...presenceDrift(), ...awaits };
  }
  const changed = objects
    .map(({ key, has }) => ({ key, from: has, to: wantedOf(body, has) }))
    .filter(({ from, to }) => !isSame(from, to));
  if (changed.length === 0 && missing.length === 0) return nothing();
  const isNew = objects.every(({ has }) => Object.keys(has).length === 0);
  const changes: FieldChange[] = isNew ? [{ field: 'ensure', from: 'absent', to: 'present' }] : [];
  changes.push(...summary(changed, objects.length));
  // Privileges on an object that does not exist yet are unknown.
  if (changed.length === 0) changes.push({ field: 'privileges', from: null, to: shown(wantedOf(body, {})) });
  return { action: isNew ? 'create' : 'update', changes, diff: null, ...awaits };
}

interface Change {
  key: string;
  from: Privileges;
  to: Privileges;
}

/** Describes the changes to one object, or the number of objects that change. */
function summary(changed: readonly Change[], total: number): FieldChange[] {
  const [first] = changed;
  if (first === undefined) return [];
  const many = total === 1 ? '' : ` on ${changed.length} of ${total} objects`;
  const from = shown(first.from);
  return [{ field: 'privileges', from: from === '' ? null : `${from}${many}`, to: `${shown(first.to)}${many}` }];
}

const restored = (objects: SeenGrant['objects'], before: GrantBefore): Change[] =>
  objects.flatMap(({ key, has }) => {
    const to = Object.hasOwn(before.objects, key) ? before.objects[key] : undefined;
    return to === undefined || isSame(has, to) ? [] : [{ key, from: has, to }];
  });

export function diffGrantRemoval(_body: Body, before: GrantBefore, { missing, objects }: SeenGrant): Difference {
  for (const one of missing) expectAnswer(one, false);
  if (objects.length === 0) return nothing(goneMessage);
  const changed = restored(objects, before);
  const isGranted = changed.some(({ to }) => Object.keys(to).length > 0);
  return changed.length === 0 || isGranted ? restoring(summary(changed, objects.length)) : presenceDrift();
}

function change(body: Body, changes: readonly Change[], machine: Machine): Promise<Record<string, never>> {
  const statements = changes.flatMap(({ key, from, to }) => grantStatements(key, body.role, from, to));
  return changeObjects(body.database, statements, machine);
}

/** Returns the statements that change a role's privileges on an object to other privileges. */
export function grantStatements(key: string, role: string, from: Privileges, to: Privileges): string[] {
  const who = role === everyone ? 'PUBLIC' : identifier(role);
  const names = (some: (name: string) => boolean) =>
    [...new Set([...Object.keys(from), ...Object.keys(to)])].filter(some);
  const revoked = names((name) => from[name] !== undefined && to[name] === undefined);
  const fixed = names((name) => from[name] === true && to[name] === false);
  const granted = names((name) => from[name] === undefined && to[name] === false);
  const grantable = names((name) => from[name] !== true && to[name] === true);
  const all = (list: string[], text: (privileges: string) => string) =>
    list.length === 0 ? [] : [text(list.sort().join(', '))];
  return [
    ...all(revoked, (list) => `REVOKE ${list} ON ${key} FROM ${who}`),
    ...all(fixed, (list) => `REVOKE GRANT OPTION FOR ${list} ON ${key} FROM ${who}`),
    ...all(granted, (list) => `GRANT ${list} ON ${key} TO ${who}`),
    ...all(grantable, (list) => `GRANT ${list} ON ${key} TO ${who} WITH GRANT OPTION`),
  ];
}
