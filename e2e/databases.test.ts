import { describe, expect, test } from 'vitest';
import type { Reported } from '../agent/src/converge/test/agent.ts';
import { operation } from '../agent/src/converge/test/desired.ts';
import { sampled } from '../lib/test/sampled.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import { databaseSubjects, databasesRoot, mariadbUp, postgresqlUp } from './hosts/subjects/databases.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** Number of subjects that `npm test` selects at random. Each takes as long as a package subject. */
const sampleSize = 2;

const open = async () => TestHosts.open({ base: await databasesRoot() });

describeSubjects('databases on a test host', sampled(databaseSubjects, sampleSize), open);

const reason = noHosts();

/** Records the arguments and the environment of each start of a client, and makes the servers log all statements. */
const watched = `${postgresqlUp}${mariadbUp}
for client in psql mariadb; do
  printf '#!/bin/sh\\n{ echo "$0 $@"; env; } >> /run/started\\nexec /usr/bin/%s "$@"\\n' $client > /usr/local/bin/$client
  chmod 755 /usr/local/bin/$client
done
touch /run/started; chmod 666 /run/started
/usr/bin/mariadb -e "SET GLOBAL general_log_file = '/var/lib/mysql/general.log'; SET GLOBAL general_log = 1; CREATE TABLE test.logged (i int)" ||
  /usr/bin/mariadb -e "CREATE DATABASE logged"
runuser -u postgres -- /usr/bin/psql -qX -c "ALTER SYSTEM SET log_statement = 'all'" -c 'SELECT pg_reload_conf()' > /dev/null
for i in $(seq 100); do runuser -u postgres -- /usr/bin/psql -qX -c 'SELECT 1 AS logged' > /dev/null; grep -q 'AS logged' /var/log/postgresql/*.log && break; sleep 0.1; done
`;

describe.skipIf(reason !== null)(`databases${reason === null ? '' : ` (${reason})`}`, () => {
  test('keeps passwords out of process lists and logs, and drops no database without `force`', async () => {
    const hosts = await open();
    try {
      const machine = await hosts.start('databases');
      const agent = await DrivenAgent.start(machine);
      await machine.sh(watched);
      const apply = (...declared: Declared[]): Promise<Reported> =>
        agent.run(operation('apply', declared.map(resolved)));
      const password = 'horse-battery "staple" \\ $1';
      const users: Declared[] = [
        { 'postgresql-role': { name: 'shop', login: true, password } },
        { 'mysql-user': { name: 'shop', password } },
      ];
      const databases: Declared[] = [
        { 'postgresql-database': { name: 'shop', owner: 'shop' } },
        { 'mysql-database': { name: 'shop' } },
      ];
      const grants: Declared[] = [
        { 'postgresql-grant': { database: 'shop', role: 'public', ensure: 'absent' } },
        { 'mysql-grant': { user: 'shop', database: 'shop', privileges: ['CREATE', 'INSERT', 'SELECT'] } },
      ];
      const { results } = await apply(...users, ...databases, ...grants);
      expect(results.map(({ status, message }) => [status, message])).toEqual(results.map(() => ['changed', null]));

      // The users can sign in and store something.
      const environment = `export PGPASSWORD='${password}' MYSQL_PWD='${password}'`;
      await machine.sh(`${environment}
/usr/bin/psql -qX -h 127.0.0.1 -U shop shop -c 'CREATE TABLE kept AS SELECT 1'
/usr/bin/mariadb -u shop shop -e 'CREATE TABLE kept (i int)'`);

      const started = await machine.sh('cat /run/started');
      expect(started).toContain('PGDATABASE=shop');
      expect(started).toContain('/usr/local/bin/mariadb');
      const logs = await machine.sh('cat /var/log/postgresql/*.log /var/lib/mysql/general.log; journalctl --no-pager');
      expect(logs).toContain('logged');
      for (const text of [started, logs])
        for (const secret of ['horse-battery', 'SCRAM-SHA-256$4096', 'IDENTIFIED BY'])
          expect(text.includes(secret), secret).toBe(false);

      // Debian's psql wrapper, which first locates the cluster, starts only once per plan, even for several databases.
      const privileges = ['CONNECT', 'TEMPORARY'];
      grants.push({ 'postgresql-grant': { database: 'postgres', role: 'public', privileges } });
      await machine.sh('echo > /run/started');
      const planned = await agent.run(operation('plan', [...users, ...databases, ...grants].map(resolved)));
      expect(planned.results.map(({ action }) => action)).toEqual(planned.results.map(() => 'none'));
      expect((await machine.sh('cat /run/started')).match(/^\/usr\/local\/bin\/psql/gm)).toHaveLength(1);

      // A database owner cannot make the agent, which is a superuser, call the owner's functions.
      await machine.sh(`${environment}
/usr/bin/psql -qX -h 127.0.0.1 -U shop shop << 'END'
CREATE FUNCTION public.json_build_array(name, json) RETURNS json LANGUAGE plpgsql AS
  $$BEGIN EXECUTE 'ALTER ROLE shop SUPERUSER'; RETURN pg_catalog.json_build_array($1::text, $2); END$$;
END`);
      const attacked = await apply(...users, ...databases, ...grants);
      const isSuper = "SELECT rolsuper FROM pg_roles WHERE rolname = 'shop'";
      expect(await machine.sh(`runuser -u postgres -- /usr/bin/psql -qAtX -c "${isSuper}"`)).toBe('f\n');
      expect(attacked.results.map(({ message }) => message)).toEqual(attacked.results.map(() => null));

      // Neither removal nor `ensure: absent` drops a database.
      const removal = await apply(...users, ...grants);
      expect(removal.results.filter(({ status }) => status === 'failed').map(({ message }) => message)).toEqual([
        expect.stringContaining('the database shop is not dropped'),
        expect.stringContaining('the database shop is not dropped'),
      ]);
      const absent: Declared[] = [
        { 'postgresql-database': { name: 'shop', ensure: 'absent' } },
        { 'mysql-database': { name: 'shop', ensure: 'absent' } },
      ];
      expect((await apply(...users, ...absent)).finished.summary).toMatchObject({ failed: 2 });
      const kept = await machine.sh(
        "runuser -u postgres -- /usr/bin/psql -qAtX shop -c 'SELECT * FROM kept'; /usr/bin/mariadb -N shop -e 'SHOW TABLES'",
      );
      expect(kept).toBe('1\nkept\n');
      const forced: Declared[] = [
        { 'postgresql-database': { name: 'shop', ensure: 'absent', force: true } },
        { 'mysql-database': { name: 'shop', ensure: 'absent', force: true } },
      ];
      expect((await apply(...users, ...forced)).finished).toMatchObject({ status: 'succeeded' });
      expect((await apply()).finished).toMatchObject({ status: 'succeeded' });
    } finally {
      await hosts.end();
    }
  });
});
