import type { ResourceBodies } from '@muster/protocol/module';
import type { NoServer } from '../../host/databases/no-server.ts';
import { arrayOf, executeStatements, readJson, readJsonOfEach } from '../../host/databases/postgresql.ts';
import type { Database, Machine } from '../provider/provider.ts';
import { readCluster } from './cluster.ts';

/**
 * The extensions in one database, and the objects to which its grants apply. One query reads them for all resources.
 */

export interface Objects {
  extensions: Map<string, ExtensionRecord>;
  /** Extensions whose files are installed on the machine. */
  available: Set<string>;
  objects: GrantedObject[];
}

export interface ExtensionRecord {
  version: string;
  schema: string;
  /** Whether the extension has tables, whose rows would be lost with it. */
  has_tables: boolean;
  /** Versions to which the extension can be updated. */
  targets: string[];
}

export type ObjectType = 'database' | 'schema' | 'table' | 'sequence';

export interface GrantedObject {
  type: ObjectType;
  /** Null for the database. */
  schema: string | null;
  /** Name of the table or sequence; null for other objects. */
  name: string | null;
  /** Privileges of the declared roles that the owner granted. */
  grants: { role: string; privilege: string; grantable: boolean }[];
}

/** The name that stands for all roles. */
export const everyone = 'public';

type Grant = ResourceBodies['postgresql-grant'];

function query(grants: readonly Grant[]): string {
  const schemas = arrayOf([...new Set(grants.flatMap(({ schema }) => schema ?? []))]);
  const roles = arrayOf([...new Set(grants.map(({ role }) => role))]);
  return `
SELECT json_build_object(
  'extensions', (SELECT coalesce(json_agg(json_build_array(e.extname, json_build_object(
      'version', e.extversion, 'schema', n.nspname,
      'has_tables', EXISTS (SELECT FROM pg_depend d JOIN pg_class c ON c.oid = d.objid AND c.relkind IN ('r', 'p')
        WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
          AND d.deptype = 'e'),
      'targets', (SELECT coalesce(json_agg(p.target), '[]') FROM pg_extension_update_paths(e.extname) p
        WHERE p.source = e.extversion AND p.path IS NOT NULL)))), '[]')
    FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace),
  'available', (SELECT coalesce(json_agg(a.name), '[]') FROM pg_available_extensions a),
  'objects', (SELECT coalesce(json_agg(json_build_object('type', o.type, 'schema', o.schema, 'name', o.name,
      'grants', (SELECT coalesce(json_agg(json_build_object('role', g.role, 'privilege', g.privilege_type,
          'grantable', g.is_grantable)), '[]')
        FROM (SELECT CASE grantee WHEN 0 THEN '${everyone}' ELSE pg_get_userbyid(grantee) END AS role, privilege_type, is_grantable
          FROM aclexplode(o.acl) WHERE grantor = o.owner) g WHERE g.role = ANY (${roles})))), '[]')
    FROM (
      SELECT 'database' AS type, NULL AS schema, NULL AS name, datdba AS owner, coalesce(datacl, acldefault('d', datdba)) AS acl
        FROM pg_database WHERE datname = current_database()
      UNION ALL SELECT 'schema', nspname, NULL, nspowner, coalesce(nspacl, acldefault('n', nspowner))
        FROM pg_namespace WHERE nspname = ANY (${schemas})
      UNION ALL SELECT CASE c.relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, n.nspname, c.relname, c.relowner,
          coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner))
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname = ANY (${schemas})
    ) o))`;
}

type Read = { value: Objects } | { missing: NoServer };

interface ObjectsText {
  extensions: [string, ExtensionRecord][];
  available: string[];
  objects: GrantedObject[];
}

const parsed = ({ extensions, available, objects }: ObjectsText): Objects => ({
  extensions: new Map(extensions),
  available: new Set(available),
  objects,
});

const queryFor = (database: string, machine: Machine): string =>
  query(
    machine
      .resourcesOf('postgresql-grant')
      .flatMap(({ body }) => ((body as Grant).database === database ? [body as Grant] : [])),
  );

/**
 * The objects in all databases that resources declare. Reads them together, because starting psql takes longer than the
 * query.
 */
const allObjects: Database<Map<string, Objects>> = {
  name: 'objects of PostgreSQL databases',
  async read(machine) {
    const cluster = await readCluster(machine);
    if ('missing' in cluster) return new Map();
    const { databases, server } = cluster.value;
    const declared = (['postgresql-grant', 'postgresql-extension'] as const).flatMap((type) =>
      machine.resourcesOf(type).map(({ body }) => (body as { database: string }).database),
    );
    const names = [...new Set(declared)].filter((name) => databases.has(name));
    if (names.length < 2) return new Map();
    const queries = new Map(names.map((name) => [name, queryFor(name, machine)]));
    const read = await readJsonOfEach<ObjectsText>(queries, machine, server);
    return new Map([...read].map(([name, text]) => [name, parsed(text)]));
  },
};

/** Databases that changed in this operation. Each of them is then read separately. */
const changedDatabases: Database<Set<string>> = { name: 'changed databases of PostgreSQL', read: () => new Set() };

const objectsOf = (database: string): Database<Read> => ({
  name: `objects of the PostgreSQL database ${database}`,
  async read(machine) {
    const cluster = await readCluster(machine);
    if ('missing' in cluster) return cluster;
    const { databases, server } = cluster.value;
    if (!databases.has(database))
      return { missing: { kind: 'databases', message: `PostgreSQL has no database ${database}`, gone: true } };
    const isChanged = (await machine.database(changedDatabases)).has(database);
    const together = isChanged ? undefined : (await machine.database(allObjects)).get(database);
    if (together !== undefined) return { value: together };
    const read = await readJson<ObjectsText>(database, queryFor(database, machine), machine, server);
    return 'missing' in read ? read : { value: parsed(read.value) };
  },
});

export const readObjects = (database: string, machine: Machine): Promise<Read> => machine.database(objectsOf(database));

/** Discards the cached objects of one database. */
export async function objectsChanged(database: string, machine: Machine): Promise<void> {
  (await machine.database(changedDatabases)).add(database);
  machine.stale(objectsOf(database));
}

/**
 * Executes statements in one transaction, and discards the cached objects of the database.
 * @throws HostFailure if the server cannot be reached or refuses a statement
 */
export async function changeObjects(
  database: string,
  statements: readonly string[],
  machine: Machine,
): Promise<Record<string, never>> {
  try {
    await executeStatements(database, statements, machine);
  } finally {
    await objectsChanged(database, machine);
  }
  return {};
}
