import { createHash } from 'node:crypto';
import type { Reported } from '../../agent/src/converge/test/agent.ts';
import { operation } from '../../agent/src/converge/test/desired.ts';
import { DrivenAgent } from '../../e2e/hosts/driven-agent.ts';
import { type Machine, repositoryInside } from '../../e2e/hosts/machine.ts';
import { databasesRoot, mariadbUp, postgresqlUp } from '../../e2e/hosts/subjects/databases.ts';
import { type Declared, resolved } from '../../e2e/hosts/subjects/subject.ts';
import { TestHosts } from '../../e2e/hosts/test-hosts.ts';
import { missing } from '../../e2e/requirements.ts';
import { conclude } from './run/conclude.ts';
import { notJudged } from './run/judge.ts';
import { benchOptions } from './run/options.ts';
import { median } from './run/quantiles.ts';
import { type Cell, table } from './run/report.ts';

/**
 * Measures the CPU time of a plan of 100 resources that need no change, of kinds that call other programs or read other
 * formats: downloads, archives, git, units, structured files, firewall rules, PostgreSQL, and MariaDB. The time includes
 * the programs that the agent starts, but not the database servers.
 *
 *     npm run bench -- plan [--rounds 7] [--json]
 *
 * Requires root, as the end-to-end tests with test hosts do. The first run fetches the servers from a Debian mirror.
 */
const { rounds, smoke } = benchOptions({ numbers: { rounds: [7, 1] } });
const reason = missing('linux', 'root', 'namespaces', 'hosts');
if (reason !== null) {
  conclude('plan', { sizes: '', figures: { cpu: notJudged(`the bench ${reason}`) } });
  process.exit(2);
}

/** Number of resources of each kind, for most kinds; `--smoke` plans one resource of each kind. */
const each = smoke ? 1 : 10;
const times = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const port = 8000;
const url = (path: string) => `http://127.0.0.1:${port}/${path}`;

// All archives contain the same 200 files, which is more than most programs contain.
const prepare = `${postgresqlUp}${mariadbUp}
mkdir -p /srv/web /srv/made /srv/config
for i in $(seq 0 ${each}); do
  printf 'content %s\\n' $i > /srv/web/file-$i
  printf '# comment\\n[main]\\nkey = old\\n' > /srv/config/$i.ini
  printf '{\\n  "main": { "key": "old" }\\n}\\n' > /srv/config/$i.json
  printf '# comment\\nmain:\\n  key: old\\n' > /srv/config/$i.yaml
  printf '# comment\\n[main]\\nkey = "old"\\n' > /srv/config/$i.toml
done
cd /srv/made; for i in $(seq 200); do printf 'file %s\\n' $i > $i; done
tar -czf /srv/web/app.tar.gz .
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main /srv/repository; cp * /srv/repository; cd /srv/repository; git add .; git commit -qm one; git tag v1
`;

const server = `require('http').createServer((request, response) =>
  require('fs').createReadStream('/srv/web' + request.url).pipe(response)).listen(${port}, '127.0.0.1')`;

const resources = (archive: string): Declared[] => {
  const half = Math.ceil(each / 2);
  const third = Math.ceil(each / 3);
  return [
    ...times(each, (n) => ({
      download: { path: `/opt/file-${n}`, url: url(`file-${n}`), sha256: sha256(`content ${n}\n`) },
    })),
    ...times(half, (n) => ({ archive: { path: `/opt/app-${n}`, url: url('app.tar.gz'), sha256: archive } })),
    ...times(half, (n) => ({
      archive: { path: `/opt/release-${n}`, url: url('app.tar.gz'), sha256: archive, keep: 2 },
    })),
    ...times(each, (n) => ({ git: { path: `/opt/copy-${n}`, url: '/srv/repository', revision: 'v1' } })),
    ...times(each, (n) => ({
      'unit-systemd': { name: `bench-${n}.timer`, settings: { 'Timer.OnCalendar': 'daily' }, enabled: true },
    })),
    ...times(each, (n) => ({
      'ini-unix': { path: `/srv/config/${n}.ini`, section: 'main', key: 'key', value: 'new' },
    })),
    ...(['json-unix', 'yaml-unix', 'toml-unix'] as const).flatMap((kind) =>
      times(half, (n) => ({
        [kind]: { path: `/srv/config/${n}.${kind.slice(0, 4)}`, pointer: '/main/key', value: 'new' },
      })),
    ),
    ...times(each, (n) => ({ 'firewall-rule': { name: `port-${n}`, ports: [String(9000 + n)] } })),
    ...times(third, (n) => ({ 'postgresql-role': { name: `role${n}`, login: true, password: `secret ${n}` } })),
    ...times(third, (n) => ({ 'postgresql-database': { name: `db${n}`, owner: `role${n}` } })),
    ...times(third, (n) => ({
      'postgresql-grant': { database: `db${n}`, role: 'public', ensure: 'absent' as const },
    })),
    ...times(1, () => ({ 'postgresql-extension': { database: 'db0', name: 'plpgsql' } })),
    ...times(third, (n) => ({ 'mysql-user': { name: `user${n}`, password: `secret ${n}` } })),
    ...times(third, (n) => ({ 'mysql-database': { name: `db${n}` } })),
    ...times(third, (n) => ({ 'mysql-grant': { user: `user${n}`, database: `db${n}`, privileges: ['SELECT'] } })),
  ];
};

/** Returns the seconds of processor time that the agent and its child processes have used. */
async function cpuSeconds(machine: Machine): Promise<number> {
  const text = await machine.sh(
    'for p in /proc/[0-9]*; do grep -q muster-driver $p/cmdline 2>/dev/null && cat $p/stat; done; true',
  );
  const ticks = text
    .trim()
    .split('\n')
    .map((line) => line.slice(line.lastIndexOf(')') + 2).split(' '))
    // Fields 14 to 17 of proc_pid_stat(5): user and system time, including that of exited children.
    .map((fields) => fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0));
  return Math.max(...ticks) / 100;
}

const failures = ({ results }: Reported) =>
  results.flatMap(({ identity, status, message }) => (status === 'failed' ? [`${identity}: ${message}`] : []));

const hosts = await TestHosts.open({ base: await databasesRoot() });
const measured: number[] = [];
const rows: Cell[][] = [];
let count = 0;
try {
  const machine = await hosts.start('plan');
  await machine.sh(prepare);
  machine.begin([`${repositoryInside}/node_modules/.bin/node`, '-e', server]);
  const archive = (await machine.sh('sha256sum /srv/web/app.tar.gz')).slice(0, 64);
  const desired = resources(archive).map(resolved);
  count = desired.length;
  const agent = await DrivenAgent.start(machine);
  const applied = await agent.run(operation('apply', desired));
  if (applied.finished.status !== 'succeeded') throw new Error(failures(applied).join('\n'));
  const plan = async (some: typeof desired) => {
    const before = await cpuSeconds(machine);
    const planned = await agent.run({ ...operation('plan', some), keep_modules: ['site'] });
    const used = (await cpuSeconds(machine)) - before;
    const wrong = planned.results.filter(({ action }) => action !== 'none');
    if (wrong.length > 0) throw new Error(`the plan changes ${wrong.map(({ identity }) => identity).join(', ')}`);
    return used;
  };
  for (let round = 0; round < rounds; round++) measured.push(await plan(desired));
  for (const [kind, some] of Map.groupBy(desired, ({ type }) => type)) rows.push([kind, some.length, await plan(some)]);
} finally {
  await hosts.end();
}
rows.push(['all, first', count, measured[0] ?? null], ['all, median', count, median(measured)]);
console.log(table(['', 'resources', 's of CPU'], rows));
process.exitCode = conclude('plan', {
  sizes: `${count} resources, ${rounds} rounds`,
  figures: { cpu: median(measured) },
});
