import type { ResolvedResource } from '@muster/protocol/module';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { file, operation, script } from '../agent/src/converge/test/desired.ts';
import { sampled } from '../lib/test/sampled.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { resolved } from './hosts/subjects/subject.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** Tests when and how often services are restarted and reloaded, and how failed starts are reported. */

const reason = noHosts();
const log = '/var/tmp/services.log';

/** Number of steps at which `npm test` kills the agent in each test. `npm run soak -- kill-steps` kills it at every step. */
const stepsKilled = 2;

/** Returns the steps from `first` to `last`, except those that only announce a process. */
const stepsOf = (points: readonly string[], first: number, last: number): number[] =>
  points.flatMap((_, i) => (i + 1 >= first && i + 1 <= last && points[i] !== 'process:before' ? [i + 1] : []));

const unit = (name: string, lines: string) =>
  `cat > /etc/systemd/system/${name}.service <<'EOF'\n[Service]\n${lines}\nEOF\n`;
/** Returns shell text for a unit that logs its starts. `systemctl start` waits until `ExecStartPre` has written the line. */
const talkative = (name: string) =>
  unit(
    name,
    `ExecStartPre=/bin/sh -c "echo ${name} started >> ${log}"\nExecStart=/bin/sleep 1000\nExecReload=/bin/sh -c "echo ${name} reloaded >> ${log}"`,
  );

describe.skipIf(reason !== null)(`services on a test host${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await TestHosts.open();
    machine = await hosts.start('services');
    agent = await DrivenAgent.start(machine);
    await machine.sh(`${talkative('one')}${talkative('two')}systemctl daemon-reload; systemctl start one two`);
  });
  afterAll(() => hosts.end());
  beforeEach(() => agent.forget());

  const service = (name: string, fields: object = {}, links: Partial<ResolvedResource> = {}): ResolvedResource => {
    const resource = { ...resolved({ 'service-systemd': { name, ...fields } }), ...links };
    return { ...resource, depends_on: [...resource.reload_on, ...resource.restart_on] };
  };
  const conf = (name: string, content: string) => file(`/var/tmp/${name}.conf`, { content });
  const key = (name: string) => `path:/var/tmp/${name}.conf`;
  const apply = (resources: ResolvedResource[]) => agent.run(operation('apply', resources));
  /** Returns the logged starts and reloads since the previous call. */
  const happened = async () =>
    (await machine.sh(`touch ${log}; cat ${log}; rm ${log}`)).split('\n').filter((line) => line !== '');

  test('a service reloads or restarts once after all its sources have changed, and a restart replaces a due reload', async () => {
    const desired = (a: string, b: string) => [
      conf('a', a),
      conf('b', b),
      service('one', {}, { reload_on: [key('a'), key('b')] }),
      service('two', {}, { reload_on: [key('a')], restart_on: [key('b')] }),
    ];
    await apply(desired('1', '1'));
    await happened();
    expect((await apply(desired('1', '1'))).results.map(({ action }) => action)).toEqual(Array(4).fill('none'));
    expect(await happened()).toEqual([]);
    expect((await apply(desired('2', '2'))).results.slice(2)).toMatchObject([
      { action: 'reload', status: 'changed' },
      { action: 'restart', status: 'changed' },
    ]);
    expect((await happened()).sort()).toEqual(['one reloaded', 'two started']);
    await apply(desired('3', '2'));
    expect((await happened()).sort()).toEqual(['one reloaded', 'two reloaded']);
  });

  test('a service that follows a resource immediately reloads before later resources, and again for a later trigger', async () => {
    const desired = (first: string, last: string) => [
      conf('now', first),
      script('look', { apply: `cat ${log} > /var/tmp/seen` }, { rerun_on: [key('now')] }),
      conf('later', last),
      service('one', {}, { reload_on: [key('now'), key('later')], immediate_on: [key('now')] }),
    ];
    const seen = () => machine.sh('cat /var/tmp/seen; rm /var/tmp/seen');
    await machine.sh('systemctl start one');
    await happened();
    expect((await apply(desired('1', '1'))).finished.status).toBe('succeeded');
    expect(await seen()).toBe('one reloaded\n');
    expect(await happened()).toEqual(['one reloaded', 'one reloaded']);
    expect((await apply(desired('2', '1'))).results.at(-1)).toMatchObject({ action: 'reload', status: 'changed' });
    expect(await seen()).toBe('one reloaded\n');
    expect(await happened()).toEqual(['one reloaded']);
    expect((await apply(desired('2', '1'))).results.map(({ action }) => action)).toEqual(Array(4).fill('none'));
    expect(await happened()).toEqual([]);
  });

  test('an apply does not restart a stopped service, even after it was started by hand', async () => {
    const desired = (content: string) => [conf('c', content), service('one', {}, { restart_on: [key('c')] })];
    await machine.sh('systemctl stop one');
    expect((await apply(desired('1'))).results[1]).toMatchObject({ action: 'none', status: 'unchanged' });
    await machine.sh('systemctl start one');
    await happened();
    await apply(desired('1'));
    expect(await happened()).toEqual([]);
  });

  test('services reload and restart exactly once if the agent is killed at any step', async () => {
    const desired = (content: string) => [
      conf('d', content),
      service('one', { running: true }, { restart_on: [key('d')] }),
      service('two', { running: true }, { reload_on: [key('d')] }),
    ];
    await apply(desired('first'));
    const { points } = await agent.killedAt(operation('apply', desired('rehearsed')), 0);
    const first = points.indexOf('together:before');
    expect(points.filter((point) => point === 'process:after').length).toBeGreaterThan(2);
    for (const at of sampled(stepsOf(points, first + 1, points.lastIndexOf('batch:ended') + 1), stepsKilled)) {
      await happened();
      const { reported } = await agent.killedAt(operation('apply', desired(`killed at ${at}`)), at);
      const name = `${at}, ${points[at - 1]}`;
      expect(reported.results.slice(1), name).toMatchObject([
        { action: 'restart', status: 'changed' },
        { action: 'reload', status: 'changed' },
      ]);
      expect((await happened()).sort(), name).toEqual(['one started', 'two reloaded']);
    }
  });

  test('starting a service that keeps crashing does not affect its dependents, even if the agent is killed', async () => {
    await machine.sh(
      [
        unit(
          'flaps',
          'Restart=always\nRestartSec=1000\nExecStart=/bin/sh -c "test -e /run/works && exec sleep 1000; exit 1"',
        ),
        unit('needy', 'ExecStart=/bin/sleep 1000\n[Unit]\nRequires=flaps.service\nPartOf=flaps.service'),
        'systemctl daemon-reload',
      ].join(''),
    );
    await machine.sh('touch /run/works; systemctl start flaps needy');
    const desired = [service('flaps', { running: true })];
    const crash = () =>
      machine.sh(`rm /run/works; systemctl kill --signal KILL flaps
        until systemctl show -P SubState flaps | grep -q auto-restart; do sleep 0.05; done
        touch /run/works; systemctl show -P InvocationID needy`);
    const healthy = await crash();
    const { points } = await agent.killedAt(operation('apply', desired), 0);
    expect(await machine.sh('systemctl is-active flaps needy; systemctl show -P InvocationID needy')).toBe(
      `active\nactive\n${healthy}`,
    );
    const [first, last] = [points.indexOf('together:before') + 1, points.lastIndexOf('batch:ended')];
    expect(last).toBeGreaterThan(first + 3);
    for (const at of sampled(stepsOf(points, first, last), stepsKilled)) {
      const name = `${at}, ${points[at - 1]}`;
      const needy = await crash();
      const { reported } = await agent.killedAt(operation('apply', desired), at);
      expect(reported.results, name).toMatchObject([{ status: 'changed' }]);
      const shown = await machine.sh('systemctl is-active flaps needy; systemctl show -P InvocationID needy');
      expect(shown, name).toBe(`active\nactive\n${needy}`);
    }
  });

  test('an operation queries fifty units with one command', async () => {
    await machine.sh(
      `printf '#!/bin/sh\\necho "$1" >> ${log}\\nexec /bin/systemctl "$@"\\n' > /usr/local/sbin/systemctl; chmod 755 /usr/local/sbin/systemctl`,
    );
    await happened();
    const names = Array.from({ length: 50 }, (_, i) => `systemd-journald@x${i}`);
    const reported = await agent.run(
      operation(
        'plan',
        names.map((name) => service(name, { running: false })),
      ),
    );
    expect(reported.results.map(({ status }) => status)).toEqual(names.map(() => 'unchanged'));
    expect(await happened()).toHaveLength(1);
    // Creating an account between two units does not cause a second query.
    const [first, second] = names.map((name) => service(name, { running: false })) as [never, never];
    const applied = await apply([first, resolved({ 'user-unix': { name: 'between' } }), second]);
    expect(applied.results.map(({ status }) => status)).toEqual(['unchanged', 'changed', 'unchanged']);
    expect(await happened()).toHaveLength(1);
    await machine.sh('rm /usr/local/sbin/systemctl');
    await apply([]);
  });

  test('an apply reports services that fail to start or stay up, with their last log lines, and starts the other services', async () => {
    await machine.sh(
      [
        unit('ends', 'ExecStart=/bin/sh -c "sleep 0.2; echo no such database; exit 3"'),
        unit('loops', 'Restart=always\nExecStart=/bin/sh -c "echo again; exit 4"'),
        unit('hangs', 'Type=notify\nTimeoutStartSec=1\nExecStart=/bin/sleep 1000'),
        unit('fine', 'ExecStart=/bin/sleep 1000'),
        unit('follower', 'ExecStart=/bin/sh -c "cat /etc/follower.conf; exit 6"'),
        'systemctl daemon-reload',
      ].join(''),
    );
    const secret = file('/etc/follower.conf', { content: 'key = hush\n' });
    const reported = await apply([
      ...['ends', 'loops', 'hangs', 'fine'].map((name) => service(name, { running: true })),
      {
        ...service('secretive', {
          exec_start: '/bin/sh -c "echo $KEY; exit 5"',
          running: true,
          environment: { KEY: 'hush' },
        }),
        sensitive_fields: ['environment'],
      },
      { ...secret, sensitive_fields: ['content'] },
      { ...service('follower', { running: true }), depends_on: [secret.key], restart_on: [secret.key] },
      service('one', { running: true }),
    ]);
    const message = (text: string) => ({ status: 'failed', message: expect.stringContaining(text) });
    expect(reported.results).toMatchObject([
      message('it ended with status 3; last in the journal:\n'),
      message('loops.service'),
      message('systemd reports timeout'),
      { status: 'changed' },
      message('it ended with status 5; its journal is not shown'),
      { status: 'changed' },
      message('it ended with status 6; its journal is not shown'),
      { status: 'unchanged' },
    ]);
    expect(reported.results[0]?.message).toContain('no such database');
    expect(JSON.stringify(reported)).not.toContain('hush');
    expect(await machine.sh('stat -c %a /etc/systemd/system/secretive.service')).toBe('600\n');
  });

  test('an apply does not unmask a masked unit', async () => {
    await machine.sh(
      `mkdir -p /run/systemd/system; ln -s /dev/null /run/systemd/system/hidden.service; systemctl daemon-reload`,
    );
    const reported = await apply([service('hidden', { running: true })]);
    expect(reported.results).toMatchObject([{ status: 'failed', message: expect.stringContaining('is masked') }]);
    expect((await apply([service('hidden', { enabled: false, running: false })])).results).toMatchObject([
      { status: 'unchanged' },
    ]);
  });
});
