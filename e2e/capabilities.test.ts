import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { operation } from '../agent/src/converge/test/desired.ts';
import { sampled } from '../lib/test/sampled.ts';
import { blocksOf } from '../tools/docs/markdown.ts';
import { root } from '../tools/suite/cli.ts';
import { capabilitiesRoot, capabilitiesSubjects } from './hosts/capabilities/subjects.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** Number of subjects that `npm test` selects at random. */
const sampleSize = 2;

const open = async () => TestHosts.open({ base: await capabilitiesRoot() });

describeSubjects('capabilities on a test host', sampled(capabilitiesSubjects, sampleSize), open);

const reason = noHosts();

/** Returns the resources with capabilities that docs/modules.md declares. */
const documented = (): Declared[] =>
  blocksOf(readFileSync(join(root, 'docs/modules.md'), 'utf8'))
    .filter(({ language, source }) => language === 'yaml' && /\bcapabilities: \[/.test(source))
    .flatMap(({ source }) => (parse(source) as { resources: { resource: Declared }[] }).resources)
    .map(({ resource }) => resource);

describe.skipIf(reason !== null)(`capabilities${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await open();
    machine = await hosts.start('capabilities');
    agent = await DrivenAgent.start(machine);
  }, 600_000);
  afterEach(async () => {
    await agent.forget();
    await machine.sh('rm -rf /srv/*');
  });
  afterAll(() => hosts?.end());

  const run = async (kind: 'plan' | 'apply' | 'drift', ...declared: Declared[]) =>
    (await agent.run(operation(kind, declared.map(resolved)))).results;
  const failed = (message: RegExp) => [{ status: 'failed', message: expect.stringMatching(message) }];
  const unprotected = failed(/are not set, because a user other than root can write it/);
  const capabilities = ['cap_net_raw=ep'];
  const declare = (body: object): Declared => ({ 'file-unix': { path: '/srv/f', capabilities, ...body } });

  test('applies and removes the documented example', async () => {
    const examples = documented();
    expect(examples.length).toBeGreaterThan(0);
    await machine.sh('mkdir -p /srv/app; cp /bin/true /srv/app/proxy');
    expect((await run('apply', ...examples)).map(({ status }) => status)).toEqual(examples.map(() => 'changed'));
    expect((await run('apply', ...examples)).map(({ status }) => status)).toEqual(examples.map(() => 'unchanged'));
    expect((await run('apply')).map(({ status }) => status)).toEqual(examples.map(() => 'changed'));
    expect(await machine.sh('getcap -r /srv; rm -r /srv/app; ls /srv')).toBe('');
  });

  test('gives a program its capabilities, also after its content and its group change', async () => {
    const program = (of: string, group: string): Declared =>
      declare({ path: '/usr/local/bin/bind', copy_of: of, mode: '0755', group, capabilities: ['cap_net_raw+ep'] });
    const held = 'grep CapEff /proc/self/status';
    expect(await run('apply', program('/bin/grep', 'root'))).toMatchObject([{ status: 'changed' }]);
    const asUser = 'setpriv --reuid games --clear-groups --inh-caps=-all /usr/local/bin/bind CapEff /proc/self/status';
    expect(await machine.sh(asUser)).toBe('CapEff:\t0000000000002000\n');
    expect(await machine.sh(`setpriv --reuid games --clear-groups --inh-caps=-all ${held}`)).toBe(
      'CapEff:\t0000000000000000\n',
    );
    await run('apply', program('/bin/cat', 'root'));
    expect(await machine.sh('getcap /usr/local/bin/bind')).toBe('/usr/local/bin/bind cap_net_raw=ep\n');
    expect(await run('plan', program('/bin/cat', 'games'))).toMatchObject([{ changes: [{ field: 'group' }] }]);
    await run('apply', program('/bin/cat', 'games'));
    expect(await machine.sh('stat -c %G /usr/local/bin/bind; getcap /usr/local/bin/bind')).toBe(
      'games\n/usr/local/bin/bind cap_net_raw=ep\n',
    );
    expect(await run('drift')).toEqual([]);
    await run('apply');
    expect(await machine.sh('ls /usr/local/bin')).toBe('');
  });

  test('sets no capabilities on a file that others can write, or whose content another user wrote', async () => {
    await machine.sh('echo theirs > /srv/f; chown games /srv/f; chmod 755 /srv/f');
    for (const body of [
      {},
      { owner: 'root' },
      { content: 'ours\n' },
      { content: 'ours\n', owner: 'root', mode: '0775' },
    ])
      expect(await run('apply', declare(body)), JSON.stringify(body)).toMatchObject(unprotected);
    expect(
      await run('apply', declare({ content: 'ours\n', owner: 'root', mode: '0755', acl: ['user:games:rwx'] })),
    ).toMatchObject(unprotected);
    expect(await machine.sh('cat /srv/f; stat -c %U /srv/f; getcap /srv/f')).toBe('theirs\ngames\n');
    expect(await run('apply', declare({ content: 'ours\n', owner: 'root', mode: '0755' }))).toMatchObject([
      { status: 'changed' },
    ]);
    await run('apply');
    expect(await machine.sh('cat /srv/f; stat -c %U /srv/f; getcap /srv/f; rm /srv/f')).toBe('theirs\ngames\n');
  });

  test('replaces a file that a former writer may have open, before it gets capabilities', async () => {
    await machine.sh('echo ours > /srv/f; chmod 755 /srv/f');
    const inode = await machine.sh('stat -c %i /srv/f');
    await run('apply', declare({ content: 'ours\n' }));
    expect(await machine.sh('stat -c %i /srv/f')).not.toBe(inode);
    await run('apply');
    await machine.sh('rm /srv/f');
  });

  test('does not restore capabilities of a file that another user can write now', async () => {
    await machine.sh('echo theirs > /srv/f; chmod 755 /srv/f; setcap cap_kill=ep /srv/f');
    await run('apply', declare({}));
    await machine.sh('chmod 757 /srv/f');
    expect(await run('apply')).toMatchObject([
      { status: 'changed', message: expect.stringContaining('its capabilities are not restored') },
    ]);
    expect(await machine.sh('getcap /srv/f; rm /srv/f')).toBe('');
  });

  test('accepts paths that look like options or have line breaks', async () => {
    for (const path of ['/srv/-r', '/srv/new\nline -v', '/srv/a b cap_chown=ep']) {
      expect(await run('apply', declare({ path, content: '' })), path).toMatchObject([{ status: 'changed' }]);
      expect(await run('apply', declare({ path, content: '' })), path).toMatchObject([{ status: 'unchanged' }]);
      expect(await machine.sh(`getcap '${path}'`)).toBe(`${path} cap_net_raw=ep\n`);
      await run('apply');
    }
    expect(await machine.sh('ls /srv')).toBe('');
  });

  test('keeps the file if the capabilities cannot be set', async () => {
    await machine.sh('echo theirs > /srv/f; chmod 755 /srv/f; mv /sbin/setcap /sbin/setcap.away');
    await machine.sh(`printf '#!/bin/sh\\necho refused >&2; exit 1\\n' > /sbin/setcap; chmod 755 /sbin/setcap`);
    expect(await run('apply', declare({ content: 'ours\n' }))).toMatchObject(
      failed(/^cannot set the capabilities of \/srv\/f: refused/),
    );
    expect(await machine.sh('cat /srv/f; ls -A /srv')).toBe('theirs\nf\n');
    await machine.sh('mv /sbin/setcap.away /sbin/setcap; rm /srv/f');
    await run('apply');
  });

  test('reports a file system without capabilities, missing programs, a link, and a directory of another user', async () => {
    await machine.sh(
      'mkdir -p /srv/ram; mount -t ramfs none /srv/ram; echo theirs > /srv/ram/f; install -d -o games /srv/home; touch /srv/home/f; ln -s f /srv/link',
    );
    for (const content of [undefined, 'ours\n'])
      expect(await run('apply', declare({ path: '/srv/ram/f', content }))).toMatchObject(
        failed(/^cannot set the capabilities of \/srv\/ram\/f: its file system has none; declare/),
      );
    expect(await machine.sh('cat /srv/ram/f; ls -A /srv/ram')).toBe('theirs\nf\n');
    expect(await run('apply', declare({ path: '/srv/ram/f', capabilities: [] }))).toMatchObject([
      { status: 'unchanged' },
    ]);
    await agent.forget();
    expect(await run('plan', declare({ path: '/srv/home/f' }))).toMatchObject(
      failed(/`capabilities` of \/srv\/home\/f cannot be read or set: a user other than root can replace/),
    );
    expect(await run('plan', declare({ path: '/srv/home/new', content: '' }))).toMatchObject(
      failed(/`capabilities` of \/srv\/home\/new cannot be read or set/),
    );
    expect(await run('apply', declare({ path: '/srv/home/new/f', content: '' }))).toMatchObject(
      failed(/`capabilities` of \/srv\/home\/new\/f cannot be read or set/),
    );
    await agent.forget();
    expect(await run('plan', declare({ path: '/srv/link' }))).toMatchObject(failed(/is a symbolic link/));
    await machine.sh('umount /srv/ram; rm -r /srv/home /srv/ram /srv/link; mv /sbin/getcap /sbin/getcap.away');
    expect(await run('plan', declare({ content: '' }))).toMatchObject(
      failed(/needs the programs getcap and setcap; install the package/),
    );
    await machine.sh('mv /sbin/getcap.away /sbin/getcap');
    expect(await run('apply', declare({ content: '' }))).toMatchObject([{ status: 'changed' }]);
    await run('apply');
    expect(await machine.sh('ls /srv')).toBe('');
  });
});
