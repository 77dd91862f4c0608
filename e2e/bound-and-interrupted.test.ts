import type { ResolvedResource } from '@muster/protocol/module';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { file, operation, script } from '../agent/src/converge/test/desired.ts';
import { AptRepository } from './hosts/apt-repository.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** Verifies that packages, services, and accounts are applied as planned or not at all, even after an interruption. */

const reason = noHosts();
const log = '/var/tmp/services.log';

describe.skipIf(reason !== null)(`a plan and its apply on a test host${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await TestHosts.open();
    machine = await hosts.start('planned');
    agent = await DrivenAgent.start(machine);
    await (await AptRepository.open(hosts)).use(machine);
  });
  afterAll(() => hosts?.end());
  beforeEach(() => agent.forget());

  const sh = (text: string) => machine.sh(text);
  const declared = (...all: Declared[]) => all.map(resolved);
  const apply = (resources: ResolvedResource[], rest = {}) => agent.run(operation('apply', resources, rest));
  const plan = (resources: ResolvedResource[]) => agent.run(operation('plan', resources));
  const statuses = ({ results }: Awaited<ReturnType<typeof apply>>) => results.map(({ status }) => status);
  const runs = (name: string) => ({
    'service-systemd': {
      name,
      exec_start: `/bin/sh -c "echo ${name} started >> ${log}; exec sleep 1000"`,
      running: true,
      enabled: true,
    },
  });
  /** Returns the service starts logged since the previous call. */
  const happened = async () =>
    (await sh(`touch ${log}; cat ${log}; rm ${log}`)).split('\n').filter((line) => line !== '');

  describe('bound to a plan', () => {
    const desired = () =>
      declared(
        { 'package-apt': { name: 'sample-plain', version: '1.0' } },
        { 'group-unix': { name: 'planned' } },
        { 'user-unix': { name: 'planned', shell: '/bin/sh' } },
        runs('planned'),
        { timezone: { name: 'Europe/Paris' } },
      );

    // The first shell command makes a planned change by hand; the second one reverts it.
    const quiet = 'DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 > /dev/null';
    test.each([
      ['package', `${quiet} install sample-plain=2.0`, `${quiet} purge sample-plain`],
      ['user', 'useradd -M planned', 'userdel planned 2>/dev/null'],
      ['group', 'groupadd planned', 'groupdel planned'],
      [
        'unit',
        `printf '[Service]\\nExecStart=/bin/sleep 999\\n' > /etc/systemd/system/planned.service; systemctl daemon-reload`,
        'rm /etc/systemd/system/planned.service; systemctl daemon-reload',
      ],
    ])('applying a plan changes nothing if a %s was changed by hand after the plan', async (_name, byHand, undo) => {
      const { plan_digest } = (await plan(desired())).finished;
      await sh(byHand);
      const found = machine.changes();
      const reported = await apply(desired(), { plan_digest });
      expect(reported.finished).toMatchObject({ status: 'failed', error: expect.stringMatching(/^plan_stale: /) });
      expect(reported.results).toEqual([]);
      expect(machine.changes()).toEqual(found);
      await sh(undo);
      // A new plan has the same digest, so the apply proceeds.
      expect((await plan(desired())).finished.plan_digest).toBe(plan_digest);
    });

    test('applying a plan makes exactly the planned changes if the machine has not changed since', async () => {
      const before = machine.changes();
      for (const resources of [desired(), []]) {
        const planned = await plan(resources);
        const { plan_digest } = planned.finished;
        expect((await plan(resources)).finished.plan_digest).toBe(plan_digest);
        const reported = await apply(resources, { plan_digest });
        expect(reported.finished.status, JSON.stringify(reported.results)).toBe('succeeded');
        expect(reported.results.map(({ identity, action, changes }) => ({ identity, action, changes }))).toEqual(
          planned.results.map(({ identity, action, changes }) => ({ identity, action, changes })),
        );
      }
      expect(machine.changes()).toEqual(before);
    });

    test('an apply does not change resources from modules in `keep_modules`', async () => {
      const theirs = desired().map((resource) => ({ ...resource, module: 'theirs' }));
      await apply(theirs);
      const there = machine.changes();
      const selection = { modules: ['ours'], keep_modules: ['theirs'] };
      const reported = await apply([], selection);
      expect(reported.results).toEqual([]);
      expect(machine.changes()).toEqual(there);
      await sh('usermod -s /bin/bash planned');
      const drift = await agent.run(operation('drift'));
      expect(drift.results.map(({ type, changes }) => [type, changes.map(({ field }) => field)])).toEqual([
        ['user-unix', ['shell']],
      ]);
      expect((await apply([])).finished.status).toBe('succeeded');
    });
  });

  describe('interrupted', () => {
    const names = ['first', 'second', 'third'];

    test.each([
      ['units', () => declared(...names.map(runs)), 'process:after', 2],
      ['users', () => declared(...names.map((name) => ({ 'user-unix': { name } }))), 'resource:after', 1],
      [
        'packages',
        () => declared(...['sample-plain', 'sample-slow'].map((name) => ({ 'package-apt': { name } }))),
        'process:after',
        1,
      ],
    ] as const)(
      'the next agent process finishes applying %s if the previous one was stopped midway',
      async (kind, desired, point, nth) => {
        const before = machine.changes();
        await happened();
        const { points, reported } = await agent.interruptedAt(operation('apply', desired()), { point, nth }, 'stop');
        expect(points.filter((one) => one === point).length).toBeGreaterThanOrEqual(nth);
        expect(reported.finished.status, JSON.stringify(reported.results)).toBe('succeeded');
        expect(statuses(reported)).toEqual(desired().map(() => 'changed'));
        if (kind === 'users') expect(reported.results.at(-1)?.message).toContain('the agent was restarted');
        expect((await happened()).length).toBe(kind === 'units' ? names.length : 0);
        expect(await sh('dpkg --audit')).toBe('');
        expect(statuses(await apply(desired()))).toEqual(desired().map(() => 'unchanged'));
        expect((await apply([])).finished.status).toBe('succeeded');
        expect(machine.changes()).toEqual(before);
      },
    );

    test('a canceled operation completes and reports its running batch, and skips the rest', async () => {
      const before = machine.changes();
      const desired = [...declared(...names.map(runs)), file('/var/tmp/after', { content: 'x' })];
      const { reported } = await agent.interruptedAt(
        operation('apply', desired),
        { point: 'process:after', nth: 1 },
        'cancel',
      );
      expect(reported.finished).toMatchObject({ status: 'cancelled', summary: { changed: 3, skipped: 1 } });
      expect(statuses(reported)).toEqual(['changed', 'changed', 'changed', 'skipped']);
      expect(await sh('systemctl is-active first second third')).toBe('active\nactive\nactive\n');
      expect((await apply([])).results.map(({ action }) => action)).toEqual(['remove', 'remove', 'remove']);
      expect(machine.changes()).toEqual(before);
    });

    const conf = (content: string, validate = 'true') => file('/var/tmp/conf', { content, validate });
    const restarted = (): ResolvedResource => ({
      ...resolved({ 'service-systemd': { name: 'first', running: true } }),
      restart_on: ['path:/var/tmp/conf'],
      depends_on: ['path:/var/tmp/conf'],
    });

    test('an apply does not restart a service if its source failed, and keeps a due restart if a later resource fails', async () => {
      await sh(
        `printf '[Service]\\nExecStartPre=/bin/sh -c "echo first started >> ${log}"\\nExecStart=/bin/sleep 1000\\n' > /etc/systemd/system/first.service; systemctl daemon-reload; systemctl start first`,
      );
      await apply([conf('1'), restarted()]);
      await happened();
      expect(statuses(await apply([conf('2', 'false'), restarted()]))).toEqual(['failed', 'skipped']);
      expect(await happened()).toEqual([]);
      // The source changes and another dependency of the unit fails, so the restart remains due.
      const stuck = (apply: string) => script('stuck', { check: 'test -e /var/tmp/go', apply });
      const needing = { ...restarted(), depends_on: ['path:/var/tmp/conf', 'script:stuck'] };
      expect(statuses(await apply([conf('3'), stuck('false'), needing]))).toEqual(['changed', 'failed', 'skipped']);
      expect(await happened()).toEqual([]);
      const killed = await agent.killedAt(operation('apply', [conf('3'), stuck('touch /var/tmp/go'), needing]), {
        point: 'together:after',
        nth: 1,
      });
      expect(killed.points.at(-1)).toBe('together:after');
      expect(killed.reported.results.at(-1)).toMatchObject({ action: 'restart', status: 'changed' });
      expect(await happened()).toEqual(['first started']);
      expect(statuses(await apply([conf('3'), stuck('touch /var/tmp/go'), needing]))).toEqual(
        Array(3).fill('unchanged'),
      );
      expect(await happened()).toEqual([]);
    });
  });
});
