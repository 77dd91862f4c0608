import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { operation } from '../agent/src/converge/test/desired.ts';
import { blocksOf } from '../tools/docs/markdown.ts';
import { root } from '../tools/suite/cli.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { type Declared, resolved, type Subject } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

const state = 'getcap -r /srv';
const subjects: readonly Subject[] = [
  {
    name: 'file-unix with capabilities, created',
    state,
    desired: {
      'file-unix': { path: '/srv/new/f', content: 'one\n', mode: '0755', capabilities: ['cap_net_raw', 'cap_chown'] },
    },
    changed: { 'file-unix': { path: '/srv/new/f', content: 'two\n', mode: '0700', capabilities: ['cap_setuid'] } },
    tamper: 'echo more >> /srv/new/f; setcap cap_net_raw=p /srv/new/f',
    moved: ['content', 'capabilities'],
  },
  {
    name: 'file-unix with capabilities, previously with others',
    state,
    prepare: 'cp /bin/true /srv/f; setcap cap_net_raw=eip /srv/f',
    desired: { 'file-unix': { path: '/srv/f', capabilities: ['cap_net_bind_service'], attributes: [] } },
    changed: { 'file-unix': { path: '/srv/f', content: 'ours\n', capabilities: [], attributes: ['immutable'] } },
    tamper: 'setcap -r /srv/f',
    moved: ['capabilities'],
  },
];

describeSubjects('capabilities on a test host', subjects, () => TestHosts.open());

const reason = noHosts();

/** Returns the resources with capabilities that docs/modules.md declares. */
const documented = (): Declared[] =>
  blocksOf(readFileSync(join(root, 'docs/modules.md'), 'utf8'))
    .filter(({ language, source }) => language === 'yaml' && /\bcapabilities: \[/.test(source))
    .flatMap(({ source }) => (parse(source) as { resources: { resource: Declared }[] }).resources)
    .flatMap(({ resource }) => (Object.hasOwn(resource, 'file-unix') ? [resource] : []));

describe.skipIf(reason !== null)(`capabilities${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await TestHosts.open();
    machine = await hosts.start('capabilities');
    agent = await DrivenAgent.start(machine);
  });
  afterAll(() => hosts?.end());

  const run = async (kind: 'plan' | 'apply' | 'drift', ...declared: Declared[]) =>
    (await agent.run(operation(kind, declared.map(resolved)))).results;
  const declare = (body: object): Declared => ({
    'file-unix': { path: '/srv/f', capabilities: ['cap_net_raw'], ...body },
  });
  const failed = (message: RegExp) => [{ status: 'failed', message: expect.stringMatching(message) }];

  test('applies and removes the documented example', async () => {
    const [example, ...rest] = documented() as [Declared & { 'file-unix': { path: string } }, ...Declared[]];
    expect(rest).toEqual([]);
    const { path } = example['file-unix'];
    await machine.sh(`mkdir -p $(dirname ${path}); cp /bin/true ${path}`);
    expect(await run('apply', example)).toMatchObject([{ status: 'changed' }]);
    expect(await machine.sh(`getcap ${path}; ${path} && echo runs`)).toBe(`${path} cap_net_bind_service=ep\nruns\n`);
    expect(await run('apply', example)).toMatchObject([{ status: 'unchanged' }]);
    // A package manager replaces the file.
    await machine.sh(`cp --remove-destination /bin/true ${path}`);
    expect(await run('drift')).toMatchObject([{ changes: [{ field: 'capabilities', from: null }] }]);
    await run('apply', example);
    await run('apply');
    expect(await machine.sh(`getcap ${path}; rm ${path}`)).toBe('');
  });

  test('gives no capabilities to a file that another user has written or can write', async () => {
    await machine.sh('cp /bin/true /srv/f; chown games /srv/f');
    for (const [body, message] of [
      [{}, /users other than root can write \/srv\/f/],
      [{ content: 'x', mode: '0775' }, /users other than root can write \/srv\/f/],
      [{ owner: 'root', group: 'root', mode: '0755' }, /users other than root may have written \/srv\/f/],
    ] as const)
      for (const kind of ['plan', 'apply'] as const)
        expect(await run(kind, declare(body)), JSON.stringify(body)).toMatchObject(failed(message));
    expect(await machine.sh('getcap /srv/f; stat -c %U /srv/f')).toBe('games\n');
    expect(await run('apply', declare({ content: 'x', owner: 'root', mode: '0755' }))).toMatchObject([
      { status: 'changed' },
    ]);
    await run('apply');
    expect(await machine.sh('getcap /srv/f; stat -c %U /srv/f; rm /srv/f')).toBe('games\n');
  });

  test('does not restore capabilities to a file that another user can write', async () => {
    await machine.sh('cp /bin/true /srv/f; chown games /srv/f; setcap cap_chown=ep /srv/f');
    await run('apply', declare({ content: 'x', owner: 'root', mode: '0755' }));
    expect(await run('apply')).toMatchObject([
      { status: 'changed', message: expect.stringContaining('its capabilities are not restored') },
    ]);
    expect(await machine.sh('getcap /srv/f; stat -c %U /srv/f; rm /srv/f')).toBe('games\n');
  });

  test('plans no capabilities on a file system without them', async () => {
    await machine.sh('mkdir /srv/ram; mount -t ramfs ramfs /srv/ram; cp /bin/true /srv/ram/f');
    for (const path of ['/srv/ram/f', '/srv/ram/new/f'])
      for (const kind of ['plan', 'apply'] as const)
        expect(await run(kind, declare({ path, content: 'a', mode: '0755' })), path).toMatchObject(
          failed(/its file system has none/),
        );
    expect(await machine.sh('cmp /bin/true /srv/ram/f; ls /srv/ram')).toBe('f\n');
    const none = declare({ path: '/srv/ram/f', content: 'a', mode: '0755', capabilities: [] });
    for (const status of ['changed', 'unchanged']) expect(await run('apply', none)).toMatchObject([{ status }]);
    await run('apply');
    await machine.sh('cmp /bin/true /srv/ram/f; umount /srv/ram; rmdir /srv/ram');
  });

  test('replaces no program whose capabilities it cannot set', async () => {
    await machine.sh('cp /bin/true /srv/f; mv /usr/sbin/setcap /usr/sbin/setcap.away');
    await machine.sh("printf '#!/bin/sh\\necho refused >&2; exit 1\\n' > /usr/sbin/setcap; chmod 755 /usr/sbin/setcap");
    expect(await run('apply', declare({ content: 'a', mode: '0755' }))).toMatchObject(failed(/refused/));
    expect(await machine.sh('cmp /bin/true /srv/f; ls -A /srv | grep muster || true')).toBe('');
    await machine.sh('mv /usr/sbin/setcap.away /usr/sbin/setcap');
    await run('apply');
    await machine.sh('rm /srv/f');
  });

  test('refuses capabilities of a user namespace, which it could not restore', async () => {
    await machine.sh('cp /bin/true /srv/f; setcap -n 1000 cap_net_raw=ep /srv/f');
    for (const kind of ['plan', 'apply'] as const)
      expect(await run(kind, declare({}))).toMatchObject(failed(/has capabilities of a user namespace/));
    await machine.sh('setcap -r /srv/f');
    await run('apply', declare({}));
    await machine.sh('setcap -n 1000 cap_net_raw=ep /srv/f');
    expect(await run('drift')).toMatchObject([{ changes: [{ field: 'capabilities' }] }]);
    expect(await run('apply', declare({}))).toMatchObject([{ status: 'changed' }]);
    await run('apply');
    expect(await machine.sh('getcap -n /srv/f; rm /srv/f')).toBe('');
  });

  test('reports missing programs, and a directory of another user', async () => {
    await machine.sh('install -d -o games /srv/home; touch /srv/home/f; mv /usr/sbin/setcap /usr/sbin/setcap.away');
    expect(await run('plan', declare({}))).toMatchObject(failed(/needs the programs getcap and setcap/));
    const none = declare({ content: 'a', capabilities: [] });
    for (const status of ['changed', 'unchanged']) expect(await run('apply', none)).toMatchObject([{ status }]);
    await run('apply');
    await machine.sh('mv /usr/sbin/setcap.away /usr/sbin/setcap');
    expect(await run('plan', declare({ path: '/srv/home/f' }))).toMatchObject(
      failed(/`capabilities` of .* a user other than root can replace the files of its directory/),
    );
    await machine.sh('rm -r /srv/home');
  });
});
