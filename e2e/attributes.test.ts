import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { operation } from '../agent/src/converge/test/desired.ts';
import { sampled } from '../lib/test/sampled.ts';
import { blocksOf } from '../tools/docs/markdown.ts';
import { root } from '../tools/suite/cli.ts';
import { attributesSubjects } from './hosts/attributes/subjects.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** Number of subjects that `npm test` selects at random. */
const sampleSize = 2;

describeSubjects('attributes on a test host', sampled(attributesSubjects, sampleSize), () => TestHosts.open());

const reason = noHosts();

/** Returns the resources with attributes that docs/modules.md declares. */
const documented = (): Declared[] =>
  blocksOf(readFileSync(join(root, 'docs/modules.md'), 'utf8'))
    .filter(({ language, source }) => language === 'yaml' && /\battributes: \[/.test(source))
    .flatMap(({ source }) => (parse(source) as { resources: { resource: Declared }[] }).resources)
    .map(({ resource }) => resource);

describe.skipIf(reason !== null)(`attributes${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await TestHosts.open();
    machine = await hosts.start('attributes');
    agent = await DrivenAgent.start(machine);
  });
  afterAll(() => hosts?.end());

  const run = async (kind: 'plan' | 'apply' | 'drift', ...declared: Declared[]) =>
    (await agent.run(operation(kind, declared.map(resolved)))).results;
  const failed = (message: RegExp) => [{ status: 'failed', message: expect.stringMatching(message) }];

  test('applies and removes the documented example', async () => {
    const examples = documented();
    expect(examples.length).toBeGreaterThan(1);
    expect((await run('apply', ...examples)).map(({ status }) => status)).toEqual(examples.map(() => 'changed'));
    expect((await run('apply', ...examples)).map(({ status }) => status)).toEqual(examples.map(() => 'unchanged'));
    expect((await run('apply')).map(({ status }) => status)).toEqual(examples.map(() => 'changed'));
    expect(await machine.sh('ls /srv')).toBe('');
  });

  test('sets the former attributes again if the change fails', async () => {
    await machine.sh('echo a > /srv/f; chattr +i /srv/f');
    const broken: Declared = {
      'file-unix': { path: '/srv/f', content: 'b\n', validate: 'false %', attributes: ['append_only'] },
    };
    expect(await run('apply', broken)).toMatchObject([{ status: 'failed' }]);
    expect(await machine.sh('cat /srv/f; lsattr /srv/f | cut -d " " -f 1 | tr -d -- -')).toBe('a\ni\n');
    await run('apply');
    await machine.sh('chattr -i /srv/f; rm /srv/f');
  });

  test('does not change an immutable file without `attributes`, and removes one that it made immutable', async () => {
    const declare = (body: object): Declared => ({ 'file-unix': { path: '/srv/f', ...body } });
    await run('apply', declare({ content: 'a\n', attributes: ['immutable'] }));
    expect(await run('apply', declare({ content: 'b\n' }))).toMatchObject(failed(/the file must not be immutable/));
    expect(await machine.sh('cat /srv/f; lsattr /srv/f | cut -d " " -f 1 | tr -d -- -')).toBe('a\ni\n');
    await run('apply', declare({ content: 'a\n', attributes: ['immutable'] }));
    expect(await run('apply', declare({ ensure: 'absent' }))).toMatchObject([{ status: 'changed' }]);
    await run('apply', declare({ content: 'a\n', attributes: ['immutable'] }));
    expect(await run('apply', declare({ symlink: '/srv/g' }))).toMatchObject([{ status: 'changed' }]);
    await run('apply');
    expect(await machine.sh('ls /srv')).toBe('');
  });

  test('reports a file system without attributes, missing programs, and a directory of another user', async () => {
    await machine.sh(
      'mkdir -p /srv/ram; mount -t ramfs none /srv/ram; touch /srv/ram/f; install -d -o games /srv/home',
    );
    const attributes = ['immutable'];
    expect(await run('plan', { 'file-unix': { path: '/srv/ram/f', attributes } })).toMatchObject(
      failed(/^cannot set the attributes of \/srv\/ram\/f: its file system has none/),
    );
    expect(await run('apply', { 'file-unix': { path: '/srv/ram/new', attributes } })).toMatchObject(
      failed(/^cannot set the attributes of \/srv\/ram\/new: its file system/),
    );
    expect(await run('apply', { 'file-unix': { path: '/srv/ram/new', attributes: [] } })).toMatchObject([
      { status: 'unchanged' },
    ]);
    await run('apply');
    await machine.sh('touch /srv/home/f');
    expect(await run('plan', { 'file-unix': { path: '/srv/home/f', attributes } })).toMatchObject(
      failed(/a user other than root can replace the files of its directory/),
    );
    await machine.sh('umount /srv/ram; rm -r /srv/home /srv/ram; mv /usr/bin/chattr /usr/bin/chattr.away');
    const declared: Declared = { 'file-unix': { path: '/srv/f', content: '', attributes } };
    expect(await run('plan', declared)).toMatchObject(failed(/needs the programs lsattr and chattr; install the/));
    const none: Declared[] = [
      { 'file-unix': { path: '/srv/f', content: '', attributes: [] } },
      { 'directory-unix': { path: '/srv/d', attributes: [] } },
    ];
    for (const status of ['changed', 'unchanged'])
      expect(await run('apply', ...none)).toMatchObject([{ status }, { status }]);
    expect((await run('drift')).filter(({ status }) => status === 'failed')).toEqual([]);
    await run('apply');
    expect(await machine.sh('ls /srv')).toBe('');
    await machine.sh('mv /usr/bin/chattr.away /usr/bin/chattr');
    expect(await run('apply', declared)).toMatchObject([{ status: 'changed' }]);
    await run('apply');
  });
});
