import { boolean, choice, formatted, integer, list, text } from '../field.ts';
import * as format from '../format.ts';
import { defineKind, ensure, joined } from '../kind.ts';

const name = (description: string) => formatted(description, format.postgresqlName);
const role = (description: string) => formatted(description, format.postgresqlRole);
const flag = (what: string) => boolean(`Whether the role ${what}`);

/** Joins the declared parts into an identity. Different parts yield different identities. */
const partsJoined = (...parts: unknown[]): string =>
  parts.flatMap((part) => (part == null ? [] : [encodeSeparators(String(part))])).join('/');
const encodeSeparators = (part: string): string => part.replaceAll('%', '%25').replaceAll('/', '%2F');

export const postgresqlKinds = {
  'postgresql-role': defineKind({
    description: 'A PostgreSQL role: a user or a group',
    platforms: ['linux'],
    example: 'name: shop\nlogin: true\npassword: "${{ secrets.shop_password }}"\nmember_of: [pg_read_all_stats]',
    required: { name: role('Name of the role') },
    optional: {
      login: flag('may sign in'),
      password: text(
        'Password; only its SCRAM verifier leaves the agent',
        format.allOf(format.notEmpty, format.printableAscii),
      ),
      superuser: flag('bypasses all permission checks'),
      createdb: flag('may create databases'),
      createrole: flag('may create roles'),
      inherit: flag('has the privileges of the roles that it is a member of'),
      replication: flag('may start replication'),
      bypassrls: flag('bypasses row-level security'),
      connection_limit: integer('Number of simultaneous connections; -1 for no limit', -1, 1_000_000),
      member_of: list('All roles that the role is a member of; it leaves all others', role('A role')),
      force: boolean('Whether `ensure: absent` drops a role with settings or a comment, which are not restored'),
      ensure,
    },
    sensitive: ['password'],
  }),
  'postgresql-database': defineKind({
    description: 'A PostgreSQL database',
    platforms: ['linux'],
    example: 'name: shop\nowner: shop\nencoding: UTF8\nconnection_limit: 50',
    required: { name: name('Name of the database') },
    optional: {
      owner: role('Role that owns the database'),
      encoding: formatted('Encoding, such as UTF8, which cannot change later', format.postgresqlEncoding),
      locale: formatted('Locale, such as C.UTF-8, which cannot change later', format.postgresqlLocale),
      template_database: name('Database to copy when the database is created; default: template1'),
      connection_limit: integer('Number of simultaneous connections; -1 for no limit', -1, 1_000_000),
      force: boolean('Whether the database may be dropped with its data, by `ensure: absent` or by removal'),
      ensure,
    },
  }),
  'postgresql-grant': defineKind({
    description: 'The privileges of a role on a database, a schema, tables, or sequences in PostgreSQL',
    platforms: ['linux'],
    example: 'database: shop\nrole: reports\nprivileges: [SELECT]\nschema: public\ntable: "*"',
    required: {
      database: name('Database of the objects'),
      role: role('Role that has the privileges; public for all roles'),
    },
    optional: {
      privileges: list(
        'All privileges of the role on each object; others are revoked',
        choice('A privilege; ALL for all', [
          ...['ALL', 'CONNECT', 'CREATE', 'TEMPORARY', 'USAGE'],
          ...['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'],
        ] as ['ALL', ...string[]]),
        { atLeast: 1 },
      ),
      schema: name('Schema that the privileges are for, or that contains the tables or sequences'),
      table: name('Table or view; "*" for all that exist'),
      sequence: name('Sequence; "*" for all that exist'),
      grant_option: boolean('Whether the role may grant the privileges to others'),
      ensure,
    },
    identifiedBy: ({ schema, table, sequence }) => [
      ...['database', 'role'],
      ...(schema == null ? [] : ['schema']),
      ...(table == null ? [] : ['table']),
      ...(sequence == null ? [] : ['sequence']),
    ],
    identity: ({ database, role, schema, table, sequence }) =>
      partsJoined(
        ...[database, role, schema],
        ...(table != null ? ['table', table] : sequence != null ? ['sequence', sequence] : []),
      ),
    exclusive: [['table', 'sequence']],
    needs: { table: 'schema', sequence: 'schema' },
    presentNeeds: ['privileges'],
  }),
  'postgresql-extension': defineKind({
    description: 'An extension in a PostgreSQL database',
    platforms: ['linux'],
    example: 'database: shop\nname: pg_trgm\nschema: public',
    required: { name: name('Name of the extension'), database: name('Database of the extension') },
    optional: {
      schema: name('Schema of its objects'),
      version: formatted('Version; default: the installed version, or the newest', format.postgresqlName),
      force: boolean('Whether an extension whose tables contain data may be dropped'),
      ensure,
    },
    identifiedBy: ['database', 'name'],
    identity: (body) => joined(body.database, '/', body.name),
  }),
};
