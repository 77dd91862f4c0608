import { derivedRoot } from '../derived-root.ts';
import { volatilePaths } from '../root-difference.ts';
import type { Subject } from './subject.ts';

/**
 * Builds a Debian root with the PostgreSQL and MariaDB servers, which start at boot with their own initial data, and the
 * programs that `bench plan` needs.
 */
export const databasesRoot = (): Promise<string> =>
  derivedRoot({ name: 'databases', packages: ['postgresql', 'mariadb-server', 'git', 'nftables', 'xz-utils'] });

const volatile = [...volatilePaths, '/var/lib/postgresql', '/var/lib/mysql', '/etc/ssl', '/var/backups'];
const common = { volatile, slow: true };

const sql = (text: string, database = 'postgres'): string =>
  `runuser -u postgres -- psql -qAtX -v ON_ERROR_STOP=1 ${database} > /dev/null << 'END'\n${text}\nEND\n`;

/** Shell text that waits until the server responds. */
export const postgresqlUp = 'for i in $(seq 600); do pg_isready -q && break; sleep 0.1; done\n';
export const mariadbUp = 'for i in $(seq 600); do mariadb-admin --silent ping && break; sleep 0.1; done\n';

/** Shell text that prints all roles, and the schemas of the databases that the subjects create. */
const postgresqlState = `runuser -u postgres -- sh -eu << 'END'
PATH=/usr/lib/postgresql/15/bin:$PATH
pg_dumpall --roles-only --no-role-passwords | grep -v restrict
psql -qAtX -c 'SELECT rolname, left(rolpassword, 14) FROM pg_authid ORDER BY 1' postgres
psql -qAtX -c "SELECT datname FROM pg_database WHERE datname NOT IN ('postgres', 'template0', 'template1') ORDER BY 1" postgres | while IFS= read -r d; do
  PGDATABASE="$d" pg_dump --schema-only --create | grep -v restrict
done
END`;
const postgresql = { ...common, state: postgresqlState };

/** A name with the characters that SQL, psql, and shells treat as special. */
const hostile = `a"b'c\\d;$(e) :f--%g=h/*`;

const shop = 'CREATE ROLE reports; CREATE ROLE owner; CREATE DATABASE shop OWNER owner;';
const tables = `CREATE TABLE a (i serial); CREATE TABLE "B "" ;" (i int); GRANT INSERT ON a TO reports;`;

export const databaseSubjects: Subject[] = [
  {
    ...postgresql,
    name: 'postgresql-role, created',
    prepare: postgresqlUp,
    desired: {
      'postgresql-role': {
        name: hostile,
        login: true,
        password: `'; \\! touch /tmp/x "$(id)" :a`,
        member_of: ['pg_monitor', 'pg_signal_backend'],
      },
    },
    changed: {
      'postgresql-role': {
        name: hostile,
        login: false,
        password: 'other',
        createdb: true,
        connection_limit: 5,
        member_of: ['pg_monitor'],
      },
    },
    tamper: sql(
      `ALTER ROLE ${`"${hostile.replaceAll('"', '""')}"`} NOLOGIN; GRANT pg_read_all_data TO "${hostile.replaceAll('"', '""')}";`,
    ),
    moved: ['login', 'member_of'],
  },
  {
    ...postgresql,
    name: 'postgresql-role, adopted',
    prepare: `${postgresqlUp}${sql("CREATE ROLE shop LOGIN PASSWORD 'earlier' CONNECTION LIMIT 3; GRANT pg_monitor TO shop;")}`,
    desired: { 'postgresql-role': { name: 'shop', password: 'now', connection_limit: 7, createdb: true } },
    changed: { 'postgresql-role': { name: 'shop', member_of: [], connection_limit: -1 } },
    tamper: sql('ALTER ROLE shop CONNECTION LIMIT 9 NOCREATEDB'),
    moved: ['createdb', 'connection_limit'],
  },
  {
    ...postgresql,
    name: 'postgresql-role, absent',
    prepare: `${postgresqlUp}${sql("CREATE ROLE shop LOGIN PASSWORD 'earlier' VALID UNTIL '2040-01-01'; CREATE ROLE member; GRANT pg_monitor TO shop; GRANT shop TO member;")}`,
    desired: { 'postgresql-role': { name: 'shop', ensure: 'absent' } },
    changed: { 'postgresql-role': { name: 'shop', createrole: true, superuser: false } },
    tamper: sql('CREATE ROLE shop'),
    moved: ['ensure'],
  },
  {
    ...postgresql,
    name: 'postgresql-database, created',
    prepare: `${postgresqlUp}${sql('CREATE ROLE owner; CREATE ROLE other;')}`,
    desired: {
      'postgresql-database': {
        name: hostile,
        owner: 'owner',
        encoding: 'UTF8',
        template_database: 'template0',
        force: true,
      },
    },
    changed: { 'postgresql-database': { name: hostile, owner: 'other', connection_limit: 20, force: true } },
    tamper: sql(`ALTER DATABASE "${hostile.replaceAll('"', '""')}" OWNER TO postgres`),
    moved: ['owner'],
  },
  {
    ...postgresql,
    name: 'postgresql-database, adopted',
    prepare: `${postgresqlUp}${sql(shop)}`,
    desired: { 'postgresql-database': { name: 'shop', owner: 'reports', connection_limit: 10 } },
    changed: { 'postgresql-database': { name: 'shop', connection_limit: 20, owner: 'postgres' } },
    tamper: sql('ALTER DATABASE shop CONNECTION LIMIT 3'),
    moved: ['connection_limit'],
  },
  {
    ...postgresql,
    name: 'postgresql-grant, all tables',
    prepare: `${postgresqlUp}${sql(shop)}${sql(tables, 'shop')}`,
    desired: {
      'postgresql-grant': {
        database: 'shop',
        role: 'reports',
        schema: 'public',
        table: '*',
        privileges: ['SELECT', 'UPDATE'],
      },
    },
    changed: {
      'postgresql-grant': {
        database: 'shop',
        role: 'reports',
        schema: 'public',
        table: '*',
        privileges: ['ALL'],
        grant_option: true,
      },
    },
    tamper: sql('REVOKE SELECT ON "B "" ;" FROM reports', 'shop'),
    moved: ['privileges'],
  },
  {
    ...postgresql,
    name: 'postgresql-grant, to everyone on a database',
    prepare: `${postgresqlUp}${sql(shop)}`,
    desired: { 'postgresql-grant': { database: 'shop', role: 'public', ensure: 'absent' } },
    changed: { 'postgresql-grant': { database: 'shop', role: 'public', privileges: ['CONNECT'] } },
    tamper: sql('GRANT CREATE ON DATABASE shop TO PUBLIC'),
    moved: ['ensure'],
  },
  {
    ...postgresql,
    name: 'postgresql-extension, created',
    prepare: `${postgresqlUp}${sql(shop)}${sql('CREATE SCHEMA tools', 'shop')}`,
    desired: { 'postgresql-extension': { database: 'shop', name: 'pg_trgm', schema: 'public' } },
    changed: { 'postgresql-extension': { database: 'shop', name: 'pg_trgm', schema: 'tools' } },
    tamper: sql('ALTER EXTENSION pg_trgm SET SCHEMA tools', 'shop'),
    moved: ['schema'],
  },
  ...mariadbSubjects(),
];

function mariadbSubjects(): Subject[] {
  const run = (text: string) => `mariadb << 'END'\n${text}\nEND\n`;
  const state = `mariadb --skip-column-names << 'END'
SELECT JSON_REMOVE(Priv, '$.password_last_changed'), User, Host FROM mysql.global_priv ORDER BY User, Host;
SELECT * FROM information_schema.SCHEMATA ORDER BY 2;
SELECT * FROM information_schema.USER_PRIVILEGES ORDER BY 1, 3;
SELECT * FROM information_schema.SCHEMA_PRIVILEGES ORDER BY 1, 3, 4;
SELECT * FROM information_schema.TABLE_PRIVILEGES ORDER BY 1, 3, 4, 5;
END`;
  const mariadb = { ...common, state };
  const prepared =
    "CREATE DATABASE shop_1; CREATE TABLE shop_1.a (i int); CREATE USER shop IDENTIFIED BY 'a'; GRANT SELECT, DROP ON `shop\\_1`.* TO shop;";
  const name = 'a;$(e) :f--%#=h/*';
  return [
    {
      ...mariadb,
      name: 'mysql-user, created',
      prepare: mariadbUp,
      desired: { 'mysql-user': { name, password: `'; \\! touch /tmp/x "$(id)" \\`, locked: true } },
      changed: { 'mysql-user': { name, password: 'other', locked: false, max_user_connections: 3 } },
      tamper: run(
        `ALTER USER '${name}'@localhost ACCOUNT UNLOCK; SET PASSWORD FOR '${name}'@localhost = PASSWORD('x');`,
      ),
      moved: ['password', 'locked'],
    },
    {
      ...mariadb,
      name: 'mysql-user, absent',
      prepare: `${mariadbUp}${run(prepared)}`,
      desired: { 'mysql-user': { name: 'shop', host: '%', ensure: 'absent' } },
      changed: { 'mysql-user': { name: 'shop', host: '%', password: 'new' } },
      tamper: run("CREATE USER shop IDENTIFIED BY 'b'"),
      moved: ['ensure'],
    },
    {
      ...mariadb,
      name: 'mysql-user, root with its socket',
      // On the first change to a user, the server rewrites the number that encodes the user's privileges, and adds its
      // own version.
      prepare: `${mariadbUp}${run("ALTER USER root@localhost IDENTIFIED VIA mysql_native_password USING 'invalid' OR unix_socket")}`,
      desired: { 'mysql-user': { name: 'root', password: 'a' } },
      changed: { 'mysql-user': { name: 'root', password: 'b' } },
      tamper: run('ALTER USER root@localhost IDENTIFIED VIA unix_socket'),
      moved: ['password'],
    },
    {
      ...mariadb,
      name: 'mysql-user, previously without a password',
      prepare: `${mariadbUp}${run('CREATE USER shop WITH MAX_USER_CONNECTIONS 2')}`,
      desired: { 'mysql-user': { name: 'shop', host: '%', password: 'a' } },
      // The hash of `b`.
      changed: {
        'mysql-user': { name: 'shop', host: '%', password_hash: '*F33AE6DD04EF4C7C1D3105568E7FB7C1EE16C937' },
      },
      tamper: run("SET PASSWORD FOR shop = PASSWORD('x')"),
      moved: ['password'],
    },
    {
      ...mariadb,
      name: 'mysql-user, root, previously without a password',
      prepare: `${mariadbUp}${run("ALTER USER root@localhost IDENTIFIED VIA mysql_native_password USING ''")}`,
      desired: { 'mysql-user': { name: 'root', password: 'a' } },
      changed: { 'mysql-user': { name: 'root', password: 'b' } },
      tamper: run('ALTER USER root@localhost IDENTIFIED VIA unix_socket'),
      moved: ['password'],
    },
    {
      ...mariadb,
      name: 'mysql-user, anonymous and absent',
      prepare: `${mariadbUp}${run("CREATE USER ''@localhost; CREATE DATABASE shop; GRANT SELECT ON shop.* TO ''@localhost;")}`,
      desired: { 'mysql-user': { name: '', ensure: 'absent' } },
      changed: { 'mysql-user': { name: '', password: 'new' } },
      tamper: run("CREATE USER ''@localhost"),
      moved: ['ensure'],
    },
    {
      ...mariadb,
      name: 'mysql-database, created',
      prepare: mariadbUp,
      desired: { 'mysql-database': { name: 'a`b\'c"; -- #$(e)', collation: 'utf8mb4_bin', force: true } },
      changed: { 'mysql-database': { name: 'a`b\'c"; -- #$(e)', collation: 'latin1_swedish_ci', force: true } },
      tamper: run('ALTER DATABASE `a``b\'c"; -- #$(e)` COLLATE utf8mb4_general_ci'),
      moved: ['collation'],
    },
    {
      ...mariadb,
      name: 'mysql-grant, on a database',
      prepare: `${mariadbUp}${run(prepared)}`,
      desired: {
        'mysql-grant': { user: 'shop', host: '%', database: 'shop_1', privileges: ['SELECT', 'LOCK TABLES'] },
      },
      changed: {
        'mysql-grant': { user: 'shop', host: '%', database: 'shop_1', privileges: ['INSERT'], grant_option: true },
      },
      tamper: run('GRANT DROP ON `shop\\_1`.* TO shop'),
      moved: ['privileges'],
    },
  ];
}
