import {
  applyAgent,
  applyAssignment,
  checkDrift,
  createAssignment,
  type DriftRecord,
  getOperation,
  latestDrift,
  listDrift,
  type Operation,
  planAssignment,
  type Run,
  removeAssignment,
  uploadModule,
} from '@muster/protocol/http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { Fleet } from './hosts/fleet.ts';
import type { Machine } from './hosts/machine.ts';
import type { RootDifference } from './hosts/root-difference.ts';
import { noHosts } from './hosts/test.ts';
import { type WebModule, webModule } from './hosts/web-module.ts';

/** Tests the main scenario on real machines: applies a module, detects drift from it, and removes the module again. */

const reason = noHosts();
const kestrel = { files: { '/etc/os-release': 'ID=kestrel\nID_LIKE=debian\nVERSION_ID="3"\nNAME="Kestrel Linux"\n' } };
const agent = { tags: { role: 'web' } };
const names = ['web-1', 'web-2', 'web-3'] as const;

describe.skipIf(reason !== null)(`a fleet of web servers${reason === null ? '' : ` (${reason})`}`, () => {
  let fleet: Fleet;
  const before = new Map<string, RootDifference>();
  const machine = (name: string): Machine => fleet.agent(name).machine;
  const call: Fleet['orchestrator']['call'] = (route, request) => fleet.orchestrator.call(route, request);
  const upload = (options: WebModule = {}) =>
    call(uploadModule, { body: { name: 'web', content: webModule(options) } });
  const params = (name: string) => ({ node_id: fleet.agent(name).nodeId });

  beforeAll(async () => {
    const machines = { 'web-1': { agent }, 'web-2': { agent }, 'web-3': { agent, ...kestrel } };
    fleet = await Fleet.open({ machines, packages: true });
    for (const name of names) before.set(name, machine(name).changes());
  });
  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail') console.error(await fleet.report());
  });
  afterAll(() => fleet?.end());

  /** Returns the operations of a run. Fails if one of them did not succeed. */
  async function operationsOf(run: Run): Promise<Operation[]> {
    const operations = await Promise.all(
      run.results.map(({ operation_id }) => call(getOperation, { params: { operation_id: operation_id as string } })),
    );
    const failures = operations.flatMap(({ resources }) => resources.filter(({ status }) => status === 'failed'));
    expect(run.status, JSON.stringify(failures, null, 2)).toBe('succeeded');
    return operations;
  }
  const apply = async () => operationsOf(await call(applyAssignment, { params: { name: 'web' } }));
  const statuses = (operations: Operation[]) =>
    [...new Set(operations.flatMap(({ resources }) => resources.map(({ status }) => status)))].sort();

  // A reload of nginx returns before new workers have replaced the old ones.
  const expectPage = (name: string, port = 80) =>
    expect.poll(async () => (await fetch(`http://${machine(name).address}:${port}/`)).text());
  /** Returns the PIDs of nginx: the master, which survives a reload, and its workers, which a reload replaces. */
  const processes = async (name: string) => {
    const master = (await machine(name).exec('systemctl', 'show', '--property=MainPID', '--value', 'nginx')).trim();
    const count = Number(await machine(name).exec('getconf', '_NPROCESSORS_ONLN'));
    return eventually('nginx has one worker for each processor', async () => {
      const workers = await machine(name).exec('pgrep', '--parent', master);
      return workers.trim().split('\n').length === count ? { master, workers } : null;
    });
  };

  test('an apply gives each machine its variant of a module, and a second apply changes nothing', async () => {
    await upload();
    await call(createAssignment, { body: { name: 'web', modules: ['web'], selector: 'role=web' } });
    const planned = await operationsOf(await call(planAssignment, { params: { name: 'web' } }));
    expect(statuses(planned)).toEqual(['would_change']);
    for (const name of names) expect(machine(name).changes()).toEqual(before.get(name));

    const applied = await apply();
    expect(statuses(applied)).toEqual(['changed']);
    // An apply may change less than planned but not more: the nginx package itself enables and starts nginx.
    const actions = ({ resources }: Operation) => resources.map(({ id, action }) => [id, action]);
    for (const [i, operation] of applied.entries()) {
      const expected = actions(planned[i] as Operation);
      expect(expected).toContainEqual(['service', 'update']);
      expect(actions(operation)).toEqual(expected.map(([id, action]) => [id, id === 'service' ? 'reload' : action]));
    }

    await expectPage('web-1').toBe('<h1>web-1</h1>\n');
    await expectPage('web-2').toBe('<h1>web-2</h1>\n');
    await expectPage('web-3').toBe('<h1>A kestrel</h1>\n');
    const installed = (name: string, of: string) =>
      machine(name).run(['dpkg-query', '--show', '--showformat=${db:Status-Abbrev}', of]);
    expect(await installed('web-1', 'nginx-light')).toMatchObject({ stdout: 'ii ' });
    expect((await installed('web-3', 'nginx-light')).stdout).not.toBe('ii ');
    for (const name of names) {
      const output = await machine(name).sh(`
        systemctl is-enabled nginx heartbeat
        systemctl is-active nginx heartbeat
        getent passwd deploy | cut -d: -f3-
        id -Gn deploy
        sysctl -n net.ipv4.ip_forward
        stat -c '%U:%G %a' /srv/www
        grep -h tar /etc/cron.d/*backup*
        ps -o user= -C sleep
      `);
      expect(output.split('\n')).toEqual([
        ...['enabled', 'enabled', 'active', 'active', '3000:3000::/home/deploy:/bin/bash', 'deployers www-data'],
        ...['1', 'root:www-data 750', '5 3 * * * deploy tar -cf /home/deploy/www.tar /srv/www', 'deploy', ''],
      ]);
    }

    const serving = await processes('web-1');
    const there = names.map((name) => machine(name).changes());
    expect(statuses(await apply())).toEqual(['unchanged']);
    expect(names.map((name) => machine(name).changes())).toEqual(there);
    expect(await processes('web-1')).toEqual(serving);
  });

  test('an apply reloads a service only if a file that it reads has changed', async () => {
    const serving = await Promise.all(names.map(processes));
    await upload({ port: 8080 });
    const applied = await apply();
    for (const { resources } of applied) {
      const changed = resources.filter(({ status }) => status === 'changed');
      expect(changed.map(({ id, action }) => [id, action])).toEqual([
        ['site', 'update'],
        ['service', 'reload'],
      ]);
    }
    for (const [i, name] of names.entries()) {
      await expectPage(name, 8080).toContain('<h1>');
      await expect.poll(async () => (await processes(name)).workers).not.toBe(serving[i]?.workers);
      expect((await processes(name)).master).toBe(serving[i]?.master);
    }
    expect(statuses(await apply())).toEqual(['unchanged']);
  });

  /** Makes a manual change and waits until a drift record names the resource. */
  async function expectDrift(name: string, edit: string, id: string, expected: Partial<DriftRecord>): Promise<void> {
    await machine(name).sh(edit);
    await eventually(`${id} of ${name} has drifted`, async () => {
      const record = await call(latestDrift, { params: params(name) });
      if (!record?.resources.some((resource) => resource.id === id)) return null;
      expect(record).toMatchObject(expected);
      return true;
    });
  }

  test('the watch of an agent reports manual changes to files, cron, units, users, and groups', async () => {
    const edits: [string, string][] = [
      ['site', 'echo "# by hand" >> /etc/nginx/sites-enabled/web'],
      ['backup', "sed -i 's/^5 3/6 3/' /etc/cron.d/*backup*"],
      ['heartbeat', 'systemctl stop heartbeat'],
      ['deploy', 'usermod --shell /bin/sh deploy'],
      ['deployers', 'groupmod --gid 3001 deployers'],
    ];
    for (const [id, edit] of edits) await expectDrift('web-1', edit, id, { trigger: 'watch', status: 'drifted' });
    expect((await call(listDrift, { params: params('web-2'), query: {} })).length).toBe(0);
  });

  test('requested and scheduled drift checks find changes to kernel parameters and packages that the watch of an agent does not report', async () => {
    const packageOf = 'DEBIAN_FRONTEND=noninteractive dpkg --force-depends --remove nginx-light';
    await machine('web-2').sh(`sysctl -qw net.ipv4.ip_forward=0; ${packageOf}`);
    const checked = await call(checkDrift, { params: params('web-2') });
    expect(checked).toMatchObject({ status: 'drifted', trigger: 'operator' });
    expect(checked.resources.map(({ id }) => id)).toEqual(['nginx', 'forwarding']);

    await machine('web-3').sh('sysctl -qw net.ipv4.ip_forward=0');
    fleet.orchestrator.set({ MUSTER_DRIFT_INTERVAL: '1', MUSTER_DRIFT_SKIP_RECENTLY_APPLIED: '0' });
    await fleet.orchestrator.stop();
    await fleet.orchestrator.start();
    await Promise.all(names.map((name) => fleet.agent(name).connected()));
    await eventually('the scheduled drift check has found the changed kernel parameter', async () => {
      const record = await call(latestDrift, { params: params('web-3') });
      return record?.trigger === 'schedule' && record.resources.some(({ id }) => id === 'forwarding') ? true : null;
    });
    const repaired = await apply();
    expect(
      repaired.flatMap(({ resources }) => resources.filter(({ corrective }) => corrective).map(({ id }) => id)).sort(),
    ).toEqual(['backup', 'deploy', 'deployers', 'forwarding', 'forwarding', 'heartbeat', 'nginx', 'site']);
  });

  test('removing all modules restores the original state of each machine', async () => {
    await call(removeAssignment, { params: { name: 'web' } });
    await Promise.all(
      names.map(async (name) => {
        const removed = await call(applyAgent, { params: params(name), body: { modules: [] } });
        expect(removed.status, JSON.stringify(removed.resources)).toBe('succeeded');
        expect(machine(name).changes()).toEqual(before.get(name));
        expect(await machine(name).sh('sysctl -n net.ipv4.ip_forward; getent passwd deploy || true')).toBe('0\n');
        expect(await machine(name).sh('systemctl list-units --failed --no-legend')).toBe('');
      }),
    );
  });
});
