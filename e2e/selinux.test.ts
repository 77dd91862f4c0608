import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { operation } from '../agent/src/converge/test/desired.ts';
import { sampled } from '../lib/test/sampled.ts';
import { blocksOf } from '../tools/docs/markdown.ts';
import { root } from '../tools/suite/cli.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import { selinuxRoot } from './hosts/selinux/selinux-root.ts';
import { ownSelinux, selinuxSubjects } from './hosts/selinux/subjects.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** Number of subjects that `npm test` selects at random. Each change compiles the policy, which takes seconds. */
const sampleSize = 1;

const open = async () => TestHosts.open({ base: await selinuxRoot() });

describeSubjects('SELinux on a test host', sampled(selinuxSubjects, sampleSize), open);

const reason = noHosts();
/** The module in docs/modules.md. */
const [mode, ...declared] = blocksOf(readFileSync(join(root, 'docs/modules.md'), 'utf8'))
  .filter(({ source }) => source.startsWith('name: selinux-web\n'))
  .flatMap(({ source }) => (parse(source) as { resources: { resource: Declared }[] }).resources)
  .map(({ resource }) => resource) as [Declared, ...Declared[]];

describe.skipIf(reason !== null)(`SELinux${reason === null ? '' : ` (${reason})`}`, () => {
  test('an apply refuses SELinux records while SELinux is off, and can enable SELinux for the next boot', async () => {
    const hosts = await open();
    try {
      const machine = await hosts.start('selinux');
      const agent = await DrivenAgent.start(machine);
      const run = (kind: 'plan' | 'apply', ...resources: Declared[]) =>
        agent.run(operation(kind, resources.map(resolved)));
      for (const kind of ['plan', 'apply'] as const) {
        const { results } = await run(kind, ...declared);
        expect(results.map(({ status, message }) => [status, message])).toEqual(
          declared.map(() => ['failed', expect.stringContaining('SELinux is off on this machine')]),
        );
      }
      expect(await machine.sh('ls /var/lib/selinux/default/active')).not.toContain('.local');

      const planned = await run('plan', mode, ...declared);
      expect(planned.results.map(({ action, status }) => [action, status])).toEqual(
        [mode, ...declared].map((_, index) => [index === 0 ? 'update' : 'create', 'would_change']),
      );
      const turnedOn = await run('apply', mode);
      expect(turnedOn.results).toMatchObject([
        { status: 'changed', message: expect.stringContaining('SELinux is off until the next boot') },
      ]);
      expect(await machine.sh('grep ^SELINUX /etc/selinux/config')).toBe('SELINUX=enforcing\nSELINUXTYPE=default\n');

      // After the boot, everything is applied, and an error contains semanage's message.
      await machine.sh(`${ownSelinux}mkdir -p /srv/web; touch /srv/web/index.html; echo 1 > /sys/fs/selinux/enforce`);
      const applied = await run('apply', mode, ...declared);
      expect(applied.results.map(({ status, message }) => [status, message])).toEqual([
        ['unchanged', null],
        ['changed', null],
        ['changed', null],
        ['changed', 'relabels /srv/web'],
      ]);
      expect(
        await machine.sh(
          `python3 -c "import os; print(os.getxattr('/srv/web/index.html', 'security.selinux').decode())"`,
        ),
      ).toContain('system_u:object_r:httpd_sys_content_t:s0');
      const mistakes: Declared[] = [
        { 'selinux-boolean': { name: 'no_such_boolean', value: true } },
        { 'selinux-port': { port: '9999', protocol: 'tcp', type: 'httpd_sys_content_t' } },
        { 'selinux-port': { port: '8880-8890', protocol: 'tcp', type: 'http_port_t' } },
        { 'selinux-context': { target: '/srv/b[', type: 'var_t' } },
      ];
      const refused = await run('apply', mode, ...declared, ...mistakes);
      expect(refused.results.slice(-mistakes.length).map(({ message }) => message)).toEqual([
        expect.stringContaining('has no boolean no_such_boolean'),
        expect.stringContaining('must be a port type'),
        expect.stringContaining('port overlap between ranges'),
        expect.stringContaining('invalid regex'),
      ]);
    } finally {
      await hosts.end();
    }
  });
});
