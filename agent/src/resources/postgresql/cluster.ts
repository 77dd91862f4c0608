import type { NoServer } from '../../host/databases/no-server.ts';
import { maintenanceDatabase, readJson, type Server } from '../../host/databases/postgresql.ts';
import type { Database, Machine } from '../provider/provider.ts';

/** The cluster's roles and databases, read with one query for all resources. */

export interface Cluster {
  roles: Map<string, RoleRecord>;
  databases: Map<string, DatabaseRecord>;
  /** How to connect to the server again; null to let psql find it. */
  server: Server | null;
}

/** Boolean role attributes, with their keywords in `CREATE ROLE`. */
export const roleFlags = {
  login: 'LOGIN',
  superuser: 'SUPERUSER',
  createdb: 'CREATEDB',
  createrole: 'CREATEROLE',
  inherit: 'INHERIT',
  replication: 'REPLICATION',
  bypassrls: 'BYPASSRLS',
} as const;
export type RoleFlag = keyof typeof roleFlags;
export const roleFlagNames = Object.keys(roleFlags) as RoleFlag[];

export type RoleRecord = Record<RoleFlag, boolean> & {
  connection_limit: number;
  /** The stored password hash; null if the role has no password. */
  verifier: string | null;
  /** Time until which the password is valid; null for no limit. */
  valid_until: string | null;
  member_of: string[];
  members: string[];
  /** Whether dropping the role would lose its settings or a comment. */
  extra: boolean;
};

export type DatabaseRecord = {
  owner: string;
  encoding: string;
  collate: string;
  ctype: string;
  connection_limit: number;
};

const query = `
SELECT json_build_object(
  'roles', (SELECT coalesce(json_agg(json_build_array(r.rolname, json_build_object(
      'login', r.rolcanlogin, 'superuser', r.rolsuper, 'createdb', r.rolcreatedb, 'createrole', r.rolcreaterole,
      'inherit', r.rolinherit, 'replication', r.rolreplication, 'bypassrls', r.rolbypassrls,
      'connection_limit', r.rolconnlimit, 'verifier', r.rolpassword, 'valid_until', r.rolvaliduntil::text,
      'member_of', (SELECT coalesce(json_agg(DISTINCT o.rolname), '[]') FROM pg_auth_members m
        JOIN pg_authid o ON o.oid = m.roleid WHERE m.member = r.oid),
      'members', (SELECT coalesce(json_agg(DISTINCT o.rolname), '[]') FROM pg_auth_members m
        JOIN pg_authid o ON o.oid = m.member WHERE m.roleid = r.oid),
      'extra', EXISTS (SELECT FROM pg_db_role_setting s WHERE s.setrole = r.oid)
        OR shobj_description(r.oid, 'pg_authid') IS NOT NULL))), '[]') FROM pg_authid r),
  'databases', (SELECT json_agg(json_build_array(d.datname, json_build_object(
      'owner', pg_get_userbyid(d.datdba), 'encoding', pg_encoding_to_char(d.encoding),
      'collate', d.datcollate, 'ctype', d.datctype, 'connection_limit', d.datconnlimit))) FROM pg_database d))`;

const cluster: Database<{ value: Cluster } | { missing: NoServer }> = {
  name: 'roles and databases of PostgreSQL',
  async read(machine) {
    const read = await readJson<{ roles: [string, RoleRecord][]; databases: [string, DatabaseRecord][] }>(
      maintenanceDatabase,
      query,
      machine,
      null,
    );
    if ('missing' in read) return read;
    const { value, server } = read;
    return { value: { roles: new Map(value.roles), databases: new Map(value.databases), server } };
  },
};

export const readCluster = (machine: Machine) => machine.database(cluster);

/** Discards the cached roles and databases. */
export const clusterChanged = (machine: Machine): void => machine.stale(cluster);
