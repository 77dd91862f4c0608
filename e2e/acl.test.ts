import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { operation } from '../agent/src/converge/test/desired.ts';
import { sampled } from '../lib/test/sampled.ts';
import { blocksOf } from '../tools/docs/markdown.ts';
import { root } from '../tools/suite/cli.ts';
import { aclRoot, aclSubjects } from './hosts/acl/subjects.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** Number of subjects that `npm test` selects at random. */
const sampleSize = 2;

const open = async () => TestHosts.open({ base: await aclRoot() });

describeSubjects('ACLs on a test host', sampled(aclSubjects, sampleSize), open);

const reason = noHosts();

/** Returns the resources with an ACL that docs/modules.md declares. */
const documented = (): Declared[] =>
  blocksOf(readFileSync(join(root, 'docs/modules.md'), 'utf8'))
    .filter(({ language, source }) => language === 'yaml' && /\bacl: /.test(source))
    .flatMap(({ source }) => (parse(source) as { resources: { resource: Declared }[] }).resources)
    .map(({ resource }) => resource);

describe.skipIf(reason !== null)(`ACLs${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await open();
    machine = await hosts.start('acls');
    agent = await DrivenAgent.start(machine);
  });
  afterAll(() => hosts?.end());

  const run = async (kind: 'plan' | 'apply' | 'drift', ...declared: Declared[]) =>
    (await agent.run(operation(kind, declared.map(resolved)))).results;

  test('applies and removes the documented example', async () => {
    const examples = documented();
    expect(examples.length).toBeGreaterThan(1);
    expect((await run('apply', ...examples)).map(({ status }) => status)).toEqual(examples.map(() => 'changed'));
    expect((await run('apply', ...examples)).map(({ status }) => status)).toEqual(examples.map(() => 'unchanged'));
    await run('apply');
    expect(await machine.sh('getfacl --recursive --absolute-names --skip-base /srv')).toBe('');
  });

  test('keeps the ACL when the content changes, and shows the names in its entries', async () => {
    const declare = (content: string): Declared => ({
      'file-unix': { path: '/srv/f', content, mode: '0640', acl: ['user:games:rw-'] },
    });
    await run('apply', declare('one\n'));
    expect(await run('apply', declare('two\n'))).toMatchObject([{ changes: [{ field: 'content' }] }]);
    expect(await machine.sh('getfacl -p --omit-header /srv/f')).toBe(
      'user::rw-\nuser:games:rw-\ngroup::r--\nmask::rw-\nother::---\n\n',
    );
    // chmod changes the mask, which limits the entries of the ACL.
    await machine.sh('chmod 640 /srv/f');
    expect(await run('drift')).toMatchObject([
      { changes: [{ field: 'acl', from: 'mask::r--, user:games:rw-', to: 'mask::rw-, user:games:rw-' }] },
    ]);
    await run('apply');
  });

  test('keeps the ACL of a file whose content is changed without `acl`', async () => {
    await machine.sh('printf "a=1\\n" > /srv/f; chmod 600 /srv/f; setfacl -m u:games:rw /srv/f; cp -a /srv/f /srv/g');
    const before = await machine.sh('getfacl -p /srv/f /srv/g');
    await run(
      'apply',
      { 'file-unix': { path: '/srv/f', content: 'b\n' } },
      { 'ini-unix': { path: '/srv/g', key: 'a', value: '2' } },
    );
    expect(await machine.sh('cat /srv/f /srv/g; getfacl -p /srv/f /srv/g')).toBe(`b\na=2\n${before}`);
    // Like chmod, a declared mode limits the entries.
    await run('apply', { 'file-unix': { path: '/srv/f', content: 'c\n', mode: '0640' } });
    expect(await machine.sh('getfacl -p --omit-header /srv/f')).toBe(
      'user::rw-\nuser:games:rw-\t#effective:r--\ngroup::---\nmask::r--\nother::---\n\n',
    );
    await run('apply');
    expect(await machine.sh('getfacl -p /srv/f /srv/g')).toBe(before);
    await machine.sh('rm /srv/f /srv/g');
  });

  test('grants no permissions through the mask before the ACL is set', async () => {
    await machine.sh(`mkdir /srv/shared; setfacl -m d:u:games:rwx /srv/shared
echo a > /srv/kept; chmod 640 /srv/kept; setfacl -m u:games:rw,m::r /srv/kept
echo a > /srv/here; setfacl -m u:games:rw /srv/here; chmod 600 /srv/here
mv /usr/bin/setfacl /usr/bin/setfacl.real
printf '#!/bin/sh\\nfor last; do :; done\\nstat -Lc %%a "$last" >> /srv/modes\\nexec setfacl.real "$@"\\n' > /usr/bin/setfacl
chmod 755 /usr/bin/setfacl`);
    const declared: Declared[] = [
      { 'file-unix': { path: '/srv/shared/f', content: 'secret\n', mode: '0640', acl: ['user:bin:r--'] } },
      { 'file-unix': { path: '/srv/kept', content: 'secret\n' } },
      { 'file-unix': { path: '/srv/here', mode: '0640', acl: [] } },
      { 'directory-unix': { path: '/srv/shared/d', mode: '0770', acl: [] } },
    ];
    expect((await run('apply', ...declared)).map(({ status }) => status)).toEqual(declared.map(() => 'changed'));
    const modes = (await machine.sh('cat /srv/modes')).trim().split('\n');
    // The directory has no ACL until its own is set, so its group permissions are those of its mode.
    expect(modes.filter((mode) => !/^.0.$/.test(mode))).toEqual(['770']);
    expect(await machine.sh('getfacl -p --omit-header /srv/shared/d; stat -c %a /srv/here /srv/kept')).toBe(
      'user::rwx\ngroup::rwx\nother::---\n\n640\n640\n',
    );
    await machine.sh('mv /usr/bin/setfacl.real /usr/bin/setfacl; rm /srv/modes');
    await run('apply');
    await machine.sh('rm -r /srv/kept /srv/here /srv/shared');
  });

  test.each([true, false])(
    'does not turn the mask into group permissions, with or without the ACL programs: %s',
    async (has) => {
      await machine.sh(`mkdir -p /srv/d/dir /srv/d/keep; touch /srv/keep
for f in /srv/theirs /srv/line /srv/gone /srv/link /srv/d/file; do echo a=1 > $f; done
chmod 600 /srv/theirs /srv/line /srv/gone /srv/link /srv/d/file; chmod 700 /srv/d/dir; chown games /srv/theirs
for f in /srv/theirs /srv/line /srv/gone /srv/link /srv/d/file /srv/d/dir; do setfacl -m u:mail:r $f; done`);
      const state = async (...paths: string[]) =>
        (await machine.sh(`stat -c %a ${paths.join(' ')}`)).trim().split('\n');
      if (!has) await machine.sh('mv /usr/bin/setfacl /usr/bin/setfacl.away');
      const statuses = await run(
        'apply',
        { 'file-unix': { path: '/srv/theirs', content: 'b\n' } },
        { 'ini-unix': { path: '/srv/line', key: 'a', value: '2' } },
        { 'file-unix': { path: '/srv/gone', ensure: 'absent' } },
        { 'file-unix': { path: '/srv/link', symlink: '/srv/keep' } },
        { 'directory-unix': { path: '/srv/d', purge: true } },
      );
      expect(statuses.map(({ status }) => status)).toEqual(statuses.map(() => 'changed'));
      // If the programs exist, a file owned by root keeps its ACL.
      expect(await state('/srv/theirs', '/srv/line')).toEqual(['600', has ? '640' : '600']);
      await run('apply');
      expect(await state('/srv/theirs', '/srv/gone', '/srv/link', '/srv/d/file', '/srv/d/dir')).toEqual([
        ...['600', '600', '600', '600', '700'],
      ]);
      if (!has) await machine.sh('mv /usr/bin/setfacl.away /usr/bin/setfacl');
      await machine.sh('rm -r /srv/theirs /srv/line /srv/gone /srv/link /srv/d /srv/keep');
    },
  );

  test('does not turn the mask into group permissions when the owner changes', async () => {
    await machine.sh(`mkdir -p /srv/d/below; touch /srv/f /srv/d/below/f; chmod 600 /srv/f /srv/d/below/f
chmod 700 /srv/d /srv/d/below; for f in /srv/f /srv/d /srv/d/below /srv/d/below/f; do
  chown games $f; setfacl -m u:mail:rx $f; done`);
    const state = () => machine.sh('stat -c "%U %a" /srv/f /srv/d /srv/d/below /srv/d/below/f; getfacl -sRp /srv');
    const before = 'games 600\ngames 700\ngames 700\ngames 600\n';
    await run(
      'apply',
      { 'file-unix': { path: '/srv/f', owner: 'root' } },
      { 'directory-unix': { path: '/srv/d', recursive: true, owner: 'root' } },
    );
    expect(await state()).toBe(before.replaceAll('games', 'root'));
    await run('apply');
    expect(await state()).toBe(before);
    await machine.sh('rm -r /srv/f /srv/d');
  });

  test('adds no ACL to a file without one when its content changes', async () => {
    await machine.sh(
      'mkdir /srv/shared; echo a > /srv/shared/f; chmod 640 /srv/shared/f; setfacl -m d:u:games:rwx /srv/shared',
    );
    const declared: Declared = { 'file-unix': { path: '/srv/shared/f', content: 'b\n' } };
    await run('apply', declared);
    expect(await machine.sh('getfacl -p --skip-base /srv/shared/f; stat -c %a /srv/shared/f')).toBe('640\n');
    await run('apply');
    expect(await machine.sh('getfacl -p --skip-base /srv/shared/f; stat -c %a /srv/shared/f')).toBe('640\n');
    await machine.sh('rm -r /srv/shared');
  });

  test('reports a file system without ACLs, missing programs, and unknown accounts', async () => {
    await machine.sh('mkdir -p /srv/ram; mount -t ramfs none /srv/ram; touch /srv/ram/f');
    const acl = ['user:games:r--'];
    const failed = (message: RegExp) => [{ status: 'failed', message: expect.stringMatching(message) }];
    const onRam: Declared = { 'file-unix': { path: '/srv/ram/f', acl } };
    expect(await run('apply', onRam)).toMatchObject(
      failed(/^cannot set the ACL of \/srv\/ram\/f: its file system has/),
    );
    await run('apply');
    expect(await run('plan', { 'file-unix': { path: '/srv/f', acl: ['user:nobody-else:r--'] } })).toMatchObject(
      failed(/there is no user nobody-else/),
    );
    await machine.sh('umount /srv/ram; mv /usr/bin/getfacl /usr/bin/getfacl.away');
    const declared: Declared = { 'file-unix': { path: '/srv/f', content: '', acl } };
    expect(await run('plan', declared)).toMatchObject(failed(/needs the programs getfacl and setfacl; install the/));
    // A script that installs the program replaces a package.
    const brought: Declared = {
      script: {
        program: 'sh',
        manages: 'acl',
        apply: 'mv /usr/bin/getfacl.away /usr/bin/getfacl',
        creates: '/usr/bin/getfacl',
      },
    };
    expect((await run('plan', brought, declared)).map(({ status }) => status)).toEqual([
      'would_change',
      'would_change',
    ]);
    expect((await run('apply', brought, declared)).map(({ status }) => status)).toEqual(['changed', 'changed']);
    await run('apply');
  });

  test('refuses to grant access to a private file of root that a user may have moved to the path', async () => {
    await machine.sh('install -d -o games /srv/home; echo secret > /srv/home/f; chmod 600 /srv/home/f');
    const declared: Declared = { 'file-unix': { path: '/srv/home/f', acl: ['user:games:r--'] } };
    expect(await run('plan', declared)).toMatchObject([
      { status: 'failed', message: expect.stringContaining('a user who can rename files there') },
    ]);
    await machine.sh('chmod 640 /srv/home/f; chgrp mail /srv/home/f; setfacl -m u:bin:r,m::- /srv/home/f');
    // The mask hides the file from its group.
    expect(
      await run('plan', { 'file-unix': { path: '/srv/home/f', group: 'mail', mode: '0640', acl: [] } }),
    ).toMatchObject([{ status: 'failed', message: expect.stringContaining('a user who can rename files there') }]);
    await machine.sh('rm -r /srv/home');
  });

  test('replaces a file that a user with write access under the previous ACL may have open', async () => {
    await machine.sh('echo a > /srv/f; setfacl -m u:games:rw /srv/f');
    const inode = await machine.sh('stat -c %i /srv/f');
    await run('apply', { 'file-unix': { path: '/srv/f', content: 'a\n', acl: ['user:games:r--'] } });
    expect(await machine.sh('stat -c %i /srv/f')).not.toBe(inode);
    await run('apply');
    await machine.sh('rm /srv/f');
  });
});
