import { isDeepStrictEqual } from 'node:util';
import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { literal, nativeHash, readRows } from '../../host/databases/mariadb.ts';
import { expectAnswer, goneMessage, type NoServer } from '../../host/databases/no-server.ts';
import { HostFailure } from '../../host/failure.ts';
import { fieldChanges } from '../database/field-changes.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Circumstances,
  changedFields,
  type Difference,
  type Machine,
  nothing,
  presenceDrift,
  restoring,
  withChanges,
} from '../provider/provider.ts';
import { accountName, accountSql, change, isAgentAccount, readServer, type UserRecord } from './server.ts';

export interface SeenUser {
  missing: NoServer | null;
  user: UserRecord | null;
  /** The statements that create the user; null if the removal does not need them. */
  statements: string[] | null;
}

/** The user before the agent first changed it. */
export type UserBefore =
  | { was: 'absent' }
  | {
      was: 'user';
      touched: Partial<UserRecord>;
      /** The statements, as returned by the server, that create the user with its password and privileges. */
      statements: string[];
      dropped: boolean;
    };

type Declared = ResolvedResource<'mysql-user'>;
type Body = Declared['body'];

/** A MariaDB user. The agent passes the password only as a hash, on the standard input of the client. */
export const mysqlUser = defineProvider<'mysql-user', SeenUser, UserBefore>({
  type: 'mysql-user',
  fields: {
    name: 'text',
    host: 'text?',
    password: 'text?',
    password_hash: 'text?',
    locked: 'boolean?',
    max_user_connections: 'integer?',
    ensure: 'text?',
  },
  brings: () => ['databases'],

  check({ body }) {
    if (!isAgentAccount(body.name, body.host)) return;
    if (body.ensure === 'absent' || body.locked != null || body.max_user_connections != null)
      throw new HostFailure('the agent signs in as root@localhost, so only the password of this user can be declared');
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: diffUser,

  async remember({ body }, { user }, { changes }, before, machine) {
    if (before?.was === 'absent') return before;
    if (user === null) return before ?? { was: 'absent' };
    const names = changedFields({ changes });
    return {
      was: 'user',
      touched: {
        ...(names.has('locked') ? { locked: user.locked } : {}),
        ...(names.has('max_user_connections') ? { max_user_connections: user.max_user_connections } : {}),
        ...(names.has('password') ? { hash: user.hash } : {}),
        ...before?.touched,
      },
      statements: before?.statements ?? (await creationOf(body, machine)),
      dropped: before?.dropped === true || names.has('ensure'),
    };
  },

  async apply({ body }, { user }, _difference, machine) {
    const account = accountSql(body.name, body.host);
    if (body.ensure === 'absent') return change([`DROP USER ${account}`], machine);
    return change(userStatements(account, user, wantedOf(body)), machine);
  },

  async observeForRemoval(resource, before, machine) {
    const seen = await look(resource, machine);
    if (before.was === 'absent' || seen.user === null) return seen;
    // Authentication methods other than a password appear only in the statement that the server returns.
    if (!before.dropped && before.touched.hash !== null) return seen;
    return { ...seen, statements: await creationOf(resource.body, machine) };
  },
  diffRemoval: (_resource, before, seen) => diffUserRemoval(before, seen),

  async remove({ body }, before, { user, statements }, _difference, machine) {
    const account = accountSql(body.name, body.host);
    if (before.was === 'absent') return change([`DROP USER ${account}`], machine);
    if (before.dropped || user === null)
      return change([...(user === null ? [] : [`DROP USER ${account}`]), ...before.statements], machine);
    const { hash: _hash, ...rest } = before.touched;
    const signIn = signsInAsBefore(before, user, statements) ? [] : [signInStatement(before.statements[0] ?? '')];
    return change([...signIn, ...userStatements(account, user, rest)], machine);
  },
});

async function look({ body }: Declared, machine: Machine): Promise<SeenUser> {
  const read = await readServer(machine);
  if ('missing' in read) return { missing: read.missing, user: null, statements: null };
  return { missing: null, user: read.value.users.get(accountName(body.name, body.host)) ?? null, statements: null };
}

async function creationOf({ name, host }: Body, machine: Machine): Promise<string[]> {
  const account = accountSql(name, host);
  const read = await readRows([`SHOW CREATE USER ${account}`, `SHOW GRANTS FOR ${account}`], machine);
  if ('missing' in read) throw new HostFailure(read.missing.message);
  return read.value;
}

const wantedOf = ({ password, password_hash, locked, max_user_connections }: Body): Partial<UserRecord> => ({
  ...(password == null ? {} : { hash: nativeHash(password) }),
  ...(password_hash == null ? {} : { hash: password_hash.toUpperCase() }),
  ...(locked == null ? {} : { locked }),
  ...(max_user_connections == null ? {} : { max_user_connections }),
});

/** Returns the changes by field. The report does not contain password values. */
function changesTo(wanted: Partial<UserRecord>, user: UserRecord | null): FieldChange[] {
  const changes: FieldChange[] = [];
  if (wanted.hash !== undefined && wanted.hash !== (user?.hash ?? null))
    changes.push({ field: 'password', from: null, to: null });
  return [...changes, ...fieldChanges(['locked', 'max_user_connections'], wanted, user)];
}

export function diffUser(
  { body }: Pick<Declared, 'body'>,
  { missing, user }: SeenUser,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  expectAnswer(missing, purpose !== 'drift' && body.ensure !== 'absent');
  if (body.ensure === 'absent') return user === null ? nothing() : presenceDrift();
  const changes: FieldChange[] = user === null ? [{ field: 'ensure', from: 'absent', to: 'present' }] : [];
  changes.push(...changesTo(wantedOf(body), user));
  if (user === null && isAgentAccount(body.name, body.host) && missing === null && purpose !== 'drift')
    throw new HostFailure('root@localhost does not exist; created without privileges, it would lock out the agent');
  if (user === null && body.password == null && body.password_hash == null && purpose !== 'drift')
    throw new HostFailure(
      `the user ${body.name} does not exist, and without \`password\` or \`password_hash\` anyone could sign in as it`,
    );
  return withChanges(user === null ? 'create' : 'update', changes, { awaits: [missing] });
}

export function diffUserRemoval(before: UserBefore, { missing, user, statements }: SeenUser): Difference {
  expectAnswer(missing, false);
  if (missing !== null) return nothing(goneMessage);
  if (before.was === 'absent') return user === null ? nothing('already removed') : presenceDrift();
  if (user === null && !before.dropped)
    return nothing('already removed, but not by the agent, so the agent does not create it again');
  const changes: FieldChange[] = user === null ? [{ field: 'ensure', from: 'absent', to: 'present' }] : [];
  if (user !== null && !before.dropped) {
    const { hash: _hash, ...rest } = before.touched;
    changes.push(...changesTo(rest, user));
    if (!signsInAsBefore(before, user, statements)) changes.unshift({ field: 'password', from: null, to: null });
  }
  if (user !== null && before.dropped && !isDeepStrictEqual(statements, before.statements))
    changes.push({ field: 'user', from: 'another one', to: 'the original one' });
  const difference = restoring(changes);
  if (changes.length === 0 || !losesSocket(before.statements[0] ?? '')) return difference;
  const message =
    'restores the original state, in which root@localhost has no unix_socket: the agent then signs in only as it did before';
  return { ...difference, message };
}

/**
 * Returns the clause that sets the password of an account. For root@localhost, it also permits signing in through the
 * socket, as the agent does.
 */
const identifiedBy = (account: string, hash: string): string =>
  account === accountSql('root', 'localhost')
    ? `IDENTIFIED VIA unix_socket OR mysql_native_password USING ${literal(hash)}`
    : `IDENTIFIED BY PASSWORD ${literal(hash)}`;

/** Reports whether a user has its previous password, or its previous other authentication methods. */
function signsInAsBefore(
  { touched, statements: [creation] }: Extract<UserBefore, { was: 'user' }>,
  user: UserRecord,
  now: SeenUser['statements'],
): boolean {
  if (touched.hash === undefined) return true;
  if (touched.hash !== null || user.hash !== null || now === null) return touched.hash === user.hash;
  return methodsOf(now[0]) === methodsOf(creation);
}

/**
 * Returns the statement that restores the authentication methods of a user.
 * @param creation the statement that creates the user; it contains no authentication method if the user has no password
 */
export function signInStatement(creation: string): string {
  const alter = creation.replace(/^CREATE USER/, 'ALTER USER');
  if (methodsOf(creation) !== '') return alter;
  return alter.replace(quotedAccount, (account) => `${account} IDENTIFIED VIA mysql_native_password USING ''`);
}

const quotedAccount = /(?<=^ALTER USER )`(?:[^`]|``)*`@`(?:[^`]|``)*`/;

const losesSocket = (creation: string): boolean =>
  creation.startsWith('CREATE USER `root`@`localhost`') && !/\bunix_socket\b/.test(methodsOf(creation));

/** Returns the authentication methods in a statement that creates a user. */
const methodsOf = (creation: string | undefined): string =>
  /IDENTIFIED .*?(?= (?:REQUIRE|WITH MAX_\w+|ACCOUNT|PASSWORD EXPIRE) |$)/.exec(creation ?? '')?.[0] ?? '';

/** Returns the statements that create a user with these attributes, or set them on an existing user. */
export function userStatements(account: string, user: UserRecord | null, wanted: Partial<UserRecord>): string[] {
  const { hash, locked, max_user_connections } = wanted;
  const options = [
    ...(hash == null || hash === user?.hash ? [] : [identifiedBy(account, hash)]),
    ...(max_user_connections === undefined || max_user_connections === user?.max_user_connections
      ? []
      : [`WITH MAX_USER_CONNECTIONS ${max_user_connections}`]),
    ...(locked === undefined || locked === user?.locked ? [] : [`ACCOUNT ${locked ? 'LOCK' : 'UNLOCK'}`]),
  ];
  if (user !== null && options.length === 0) return [];
  return [[user === null ? 'CREATE USER' : 'ALTER USER', account, ...options].join(' ')];
}
