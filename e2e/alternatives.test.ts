import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { operation } from '../agent/src/converge/test/desired.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

const reason = noHosts();

describe.skipIf(reason !== null)(`alternatives${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await TestHosts.open();
    machine = await hosts.start('alternatives');
    agent = await DrivenAgent.start(machine);
    await machine.sh('mkdir -p /opt/tool; for each in one one.1 theirs; do echo $each > /opt/tool/$each; done');
  });
  afterAll(() => hosts?.end());

  const run = async (kind: 'plan' | 'apply' | 'drift', ...declared: Declared[]) =>
    (await agent.run(operation(kind, declared.map(resolved)))).results;

  test('does not replace files or links that it did not create', async () => {
    const declared: Declared = {
      alternatives: {
        ...{ name: 'tool', path: '/opt/tool/one', link: '/usr/local/bin/tool' },
        slaves: ['/usr/local/bin/tool.1 tool.1 /opt/tool/one.1'],
      },
    };
    for (const name of ['tool', 'tool.1'])
      for (const make of ['ln -s /opt/tool/theirs', 'cp /opt/tool/theirs']) {
        const path = `/usr/local/bin/${name}`;
        await machine.sh(`${make} ${path}`);
        const before = await machine.sh(`ls -l ${path}`);
        expect(await run('apply', declared), make).toMatchObject([
          { status: 'failed', message: expect.stringContaining(`${path}: not a link of the group tool`) },
        ]);
        expect(await machine.sh(`ls -l ${path}; rm ${path}`)).toBe(before);
      }
    expect(await run('apply', declared)).toMatchObject([{ status: 'changed' }]);
    await run('apply');
    expect(await machine.sh('ls /usr/local/bin')).not.toContain('tool');
  });

  test('restores the only registration of a group after a failed or interrupted change', async () => {
    const tool = 'update-alternatives --quiet';
    await machine.sh(`${tool} --install /usr/local/bin/tool tool /opt/tool/one 10
mv /usr/bin/update-alternatives /usr/bin/update-alternatives.real
printf '#!/bin/sh\\ncase "$*" in *" 20") echo broken >&2; exit 2;; esac\\nexec update-alternatives.real "$@"\\n' > /usr/bin/update-alternatives
chmod 755 /usr/bin/update-alternatives`);
    const before = await machine.sh('update-alternatives --query tool');
    const declare = (priority: number): Declared => ({
      alternatives: { name: 'tool', path: '/opt/tool/one', link: '/usr/local/bin/tool', priority },
    });
    expect(await run('apply', declare(20))).toMatchObject([
      { status: 'failed', message: expect.stringContaining('broken') },
    ]);
    expect(await machine.sh('update-alternatives --query tool')).toBe(before);
    await machine.sh('mv /usr/bin/update-alternatives.real /usr/bin/update-alternatives');
    expect(await run('apply', declare(20))).toMatchObject([{ status: 'changed' }]);
    // A removal that is killed between the two commands leaves no group.
    await machine.sh(`${tool} --remove tool /opt/tool/one`);
    await run('apply');
    expect(await machine.sh('update-alternatives --query tool')).toBe(before);
    await machine.sh(`${tool} --remove tool /opt/tool/one`);
  });
});
