import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { operation } from '../agent/src/converge/test/desired.ts';
import { blocksOf } from '../tools/docs/markdown.ts';
import { root } from '../tools/suite/cli.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { buildDeb, debs, fileServerUp, requestsTo, sha256On, urlOf } from './hosts/registries/package-files.ts';
import { packageAptSubjects } from './hosts/subjects/package-apt.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

// In a separate file, so that these slow tests run in parallel with the tests for other kinds.
describeSubjects('packages on a test host', packageAptSubjects, () => TestHosts.open());

/** Returns the resources of a kind in the modules of docs/modules.md whose text matches. */
const documented = (kind: keyof Declared, pattern: RegExp): Declared[] =>
  blocksOf(readFileSync(join(root, 'docs/modules.md'), 'utf8'))
    .filter(({ language, source }) => language === 'yaml' && source.includes(`${kind}:`) && pattern.test(source))
    .flatMap(({ source }) => (parse(source) as { resources: { resource: Declared }[] }).resources)
    .flatMap(({ resource }) => (Object.hasOwn(resource, kind) ? [resource] : []));

const reason = noHosts();

describe.skipIf(reason !== null)(`packages by apt${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await TestHosts.open();
    machine = await hosts.start('apt');
    agent = await DrivenAgent.start(machine);
  });
  afterAll(() => hosts?.end());

  const of = (name: string, fields: object = {}) => ({ ...resolved({ 'package-apt': { name, ...fields } }), id: name });
  /** Returns shell text that builds a package and adds it to a repository with a `file:` URL. */
  const offer = (repository: string, name: string, version: string, files = '') => `
    mkdir -p ${repository} /srv/deb/DEBIAN
    ${files}
    printf '%s\\n' 'Package: ${name}' 'Version: ${version}' 'Architecture: all' 'Maintainer: Tests <tests@example.com>' \\
      'Description: made for tests' > /srv/deb/DEBIAN/control
    deb=${name}_${version}.deb
    dpkg-deb --build /srv/deb ${repository}/$deb > /dev/null
    { cat /srv/deb/DEBIAN/control; echo "Filename: ./$deb"; echo "Size: $(stat -c %s ${repository}/$deb)"
      echo "SHA256: $(sha256sum ${repository}/$deb | cut -d ' ' -f 1)"; echo; } >> ${repository}/Packages
    rm -r /srv/deb
`;
  const source = (repository: string) => `deb [trusted=yes] file://${repository} ./`;

  test('a plan and an apply use an apt source that a file or a package in the same operation adds', async () => {
    await machine.sh(
      offer(
        '/srv/release',
        'sample-release',
        '1',
        `mkdir -p /srv/deb/etc/apt/sources.list.d; echo '${source('/srv/extra')}' > /srv/deb/etc/apt/sources.list.d/extra.list`,
      ) + offer('/srv/extra', 'sample-extra', '1'),
    );
    const file = resolved({
      'file-unix': { path: '/etc/apt/sources.list.d/release.list', content: `${source('/srv/release')}\n` },
    });
    const release = of('sample-release');
    const extra = of('sample-extra');
    const plan = (...resources: (typeof file)[]) => agent.run(operation('plan', resources));
    // A plan with the file accepts unknown packages, because the new source may offer them.
    expect((await plan(file, release, extra)).results.at(-1)).toMatchObject({ status: 'would_change' });
    expect((await plan(release, extra)).results).toMatchObject([{ status: 'failed' }, { status: 'failed' }]);
    const resources = [file, release, { ...extra, depends_on: [release.key] }];
    expect((await plan(...resources)).results).toMatchObject([
      { status: 'would_change' },
      { status: 'would_change', message: expect.stringContaining('no source of this machine offers a package') },
      {
        status: 'would_change',
        message: expect.stringMatching(/^will be available after .*`sample-release`; now no source/),
      },
    ]);
    const report = await agent.run(operation('apply', resources));
    expect(report.results.map(({ status }) => status)).toEqual(['changed', 'changed', 'changed']);
    expect((await plan(...resources)).results.map(({ status }) => status)).toEqual(resources.map(() => 'unchanged'));
    // The source file exists now, so `file` adds no package source. `sample-release` still adds one for its dependents.
    await machine.sh('dpkg --purge sample-release sample-extra > /dev/null; apt-get update -qq');
    expect((await plan(...resources)).results).toMatchObject([
      { status: 'unchanged' },
      { status: 'would_change' },
      { status: 'would_change', message: expect.stringMatching(/^will be available after `sample-release`; now no/) },
    ]);
    expect((await plan(file, release, of('sample-wrong'))).results.slice(0, 3)).toMatchObject([
      { status: 'unchanged' },
      { status: 'would_change' },
      { status: 'failed', message: expect.stringContaining('offers a package sample-wrong') },
    ]);
    const again = await agent.run(operation('apply', resources));
    expect(again.results.map(({ status }) => status)).toEqual(['unchanged', 'changed', 'changed']);
    await agent.run(operation('apply', []));
  });

  test('an apply evaluates the condition of a package after the packages before it are installed', async () => {
    await machine.sh(
      `rm -rf /srv/*; ${['one', 'two', 'three'].map((name) => offer('/srv/pool', `sample-${name}`, '1')).join('')}
      echo '${source('/srv/pool')}' > /etc/apt/sources.list.d/pool.list; apt-get update -qq`,
    );
    const command = 'dpkg-query --show sample-one';
    const desired = [
      of('sample-one'),
      { ...of('sample-two'), only_if: { not: { command } } },
      { ...of('sample-three'), only_if: [{ exists: '/srv' }, { command }] },
    ];
    const { results } = await agent.run(operation('plan', desired));
    expect(results.map(({ status }) => status)).toEqual(['would_change', 'would_change', 'would_change']);
    expect(results[2]?.message).toContain(`\`${command}\` fails with exit code 1 now: skipped unless changed by`);
    for (const statuses of [
      ['changed', 'skipped', 'changed'],
      ['unchanged', 'skipped', 'unchanged'],
    ])
      expect((await agent.run(operation('apply', desired))).results.map(({ status }) => status)).toEqual(statuses);
    await agent.run(operation('apply', []));
    expect(await machine.sh('dpkg-query --show "sample-*" 2> /dev/null || true')).toBe('');
  });

  test('a package stays on hold if its upgrade fails, and a package that others put on hold is not changed', async () => {
    const failing = `mkdir -p /srv/deb/DEBIAN; printf '#!/bin/sh\\nexit 1\\n' > /srv/deb/DEBIAN/preinst; chmod 755 /srv/deb/DEBIAN/preinst`;
    await machine.sh(
      `rm -rf /srv/*; ${offer('/srv/held', 'sample-kept', '1')}${offer('/srv/held', 'sample-kept', '2', failing)}
      ${offer('/srv/held', 'sample-theirs', '1')}${offer('/srv/held', 'sample-theirs', '2')}
      echo '${source('/srv/held')}' > /etc/apt/sources.list.d/pool.list; apt-get update -qq
      DEBIAN_FRONTEND=noninteractive apt-get install -qq -y sample-theirs=1 > /dev/null; apt-mark hold sample-theirs`,
    );
    const held = () => machine.sh("apt-mark showhold; dpkg-query -W -f '${Package} ${Version}\n' 'sample-*'");
    const kept = (version: string) => of('sample-kept', { version, hold: true });
    const statuses = async (...resources: ReturnType<typeof of>[]) =>
      (await agent.run(operation('apply', resources))).results.map(({ status }) => status);
    const all = 'sample-kept\nsample-theirs\nsample-kept 1\nsample-theirs 1\n';
    expect(await statuses(kept('1'))).toEqual(['changed']);
    expect(await held()).toBe(all);
    expect(await statuses(kept('2'), of('sample-theirs', { version: '2' }))).toEqual(['failed', 'failed']);
    expect(await held()).toBe(all);
    expect(await statuses(kept('1'))).toContain('unchanged');
    await agent.run(operation('apply', []));
    expect(await machine.sh('apt-mark showhold')).toBe('sample-theirs\n');
  });

  describe('from files', () => {
    beforeAll(async () => {
      const plain = ['1.0', '2.0'].map((version) => buildDeb('filed', version));
      await machine.sh(`rm -rf /srv/*; ${plain.join('')}${buildDeb('filed-other', '1.0')}
        ${buildDeb('sample-exporter', '1.4.2')}${buildDeb('filed-alien', '1.0', { Architecture: 'alpha' })}
        echo 'not a package' > ${debs}/text.deb
        head -c 300 ${debs}/filed_1.0.deb > ${debs}/short.deb
        rm -f /etc/apt/sources.list.d/*; apt-get update -qq; ${fileServerUp(debs)}`);
      await requestsTo(machine);
    });

    const fromFile = async (name: string, file: string, fields: object = {}, path = file) =>
      of(name, { url: urlOf(path), sha256: await sha256On(machine, `${debs}/${file}`), ...fields });
    const run = async (kind: 'plan' | 'apply', ...resources: ReturnType<typeof of>[]) =>
      (await agent.run(operation(kind, resources))).results;
    const apply = (...resources: ReturnType<typeof of>[]) => run('apply', ...resources);
    const installed = () => machine.sh("dpkg-query -W -f '${Package} ${Version}\n' 'filed*' 2> /dev/null || true");

    test('a plan downloads a file only if the package is installed and the file is unknown', async () => {
      const one = await fromFile('filed', 'filed_1.0.deb');
      expect(await run('plan', one)).toMatchObject([
        { status: 'would_change', changes: [{ field: 'ensure', from: 'absent', to: 'present' }] },
      ]);
      expect(await requestsTo(machine)).toEqual([]);
      await machine.sh(`dpkg --install ${debs}/filed_1.0.deb > /dev/null`);
      for (const status of ['unchanged', 'unchanged']) expect(await run('plan', one)).toMatchObject([{ status }]);
      expect(await requestsTo(machine)).toEqual(['/filed_1.0.deb']);
      expect(await apply(one)).toMatchObject([{ status: 'unchanged' }]);
      const two = await fromFile('filed', 'filed_2.0.deb', { version: '2.0' });
      expect(await run('plan', two)).toMatchObject([{ changes: [{ field: 'version', from: '1.0', to: '2.0' }] }]);
      expect(await requestsTo(machine)).toEqual([]);
      expect(await apply(two)).toMatchObject([{ status: 'changed' }]);
      expect(await installed()).toBe('filed 2.0\n');
      expect(await run('plan', one)).toMatchObject([{ message: '1.0 is older than 2.0, so this is a downgrade' }]);
      expect(await apply(one)).toMatchObject([{ status: 'changed' }]);
      expect(await requestsTo(machine)).toEqual(['/filed_2.0.deb', '/filed_1.0.deb']);
      await agent.run(operation('apply', []));
      await machine.sh('dpkg --purge filed > /dev/null');
    });

    test('an unsuitable package file fails before anything is installed, and does not stop other packages', async () => {
      const right = await fromFile('filed-other', 'filed-other_1.0.deb', {}, 'cut/filed-other_1.0.deb');
      const wrong: [ReturnType<typeof of>, RegExp][] = [
        [of('filed-hash', { url: urlOf('filed_1.0.deb'), sha256: '0'.repeat(64) }), /not have the declared SHA-256/],
        [await fromFile('filed-text', 'text.deb'), /^the file is not a \.deb file: dpkg-deb: error: .*the file/],
        [await fromFile('filed-short', 'short.deb'), /^the file is not a \.deb file: /],
        [await fromFile('filed-name', 'filed_1.0.deb'), /^the file has the package filed, not filed-name; nothing/],
        [await fromFile('filed-alien', 'filed-alien_1.0.deb'), /architecture alpha, not .*declare filed-alien:alpha/],
        [await fromFile('filed', 'filed_1.0.deb', { version: '2.0' }), /has version 1\.0, not the declared 2\.0/],
        [of('filed-gone', { url: urlOf('gone.deb'), sha256: '1'.repeat(64) }), /gone\.deb: the server answers 404/],
      ];
      const results = await apply(...wrong.map(([resource]) => resource), right);
      wrong.forEach(([{ body }, message], i) => {
        expect(results[i], JSON.stringify(body)).toMatchObject({
          status: 'failed',
          message: expect.stringMatching(message),
        });
      });
      expect(results.at(-1)).toMatchObject({ status: 'changed' });
      expect(await installed()).toBe('filed-other 1.0\n');
      const requests = await requestsTo(machine);
      expect(requests.filter((request) => request.startsWith('/cut/'))).toEqual([
        '/cut/filed-other_1.0.deb',
        expect.stringMatching(/^\/cut\/filed-other_1\.0\.deb bytes=[1-9]/),
      ]);
      await agent.run(operation('apply', []));
      expect(await installed()).toBe('');
    });

    test('a package on hold is changed only if the module declares `hold`', async () => {
      await machine.sh(`dpkg --install ${debs}/filed_1.0.deb > /dev/null; apt-mark -qq hold filed`);
      const two = await fromFile('filed', 'filed_2.0.deb');
      expect(await apply(two)).toMatchObject([{ status: 'failed', message: expect.stringContaining('on hold') }]);
      expect(await apply(await fromFile('filed', 'filed_2.0.deb', { hold: true }))).toMatchObject([
        { status: 'changed' },
      ]);
      expect(await machine.sh('apt-mark showhold')).toContain('filed\n');
      expect(await installed()).toBe('filed 2.0\n');
      // The sources do not offer the previous version.
      expect(await apply()).toMatchObject([{ message: expect.stringContaining('kept at 2.0') }]);
      await machine.sh('apt-mark -qq unhold filed; dpkg --purge filed > /dev/null');
    });

    test('the dependencies of a package file come from sources that changed since the last refresh', async () => {
      const needs = { Depends: 'filed-needed' };
      await machine.sh(`${buildDeb('filed', '3.0', needs)}${offer('/srv/needed', 'filed-needed', '1')}
        echo '${source('/srv/nowhere')}' > /etc/apt/sources.list.d/needed.list`);
      const filed = await fromFile('filed', 'filed_3.0.deb');
      expect(await apply(filed)).toMatchObject([
        {
          status: 'failed',
          message: expect.stringMatching(/filed-needed.*; the package lists could not be refreshed: /s),
        },
      ]);
      expect(await installed()).toBe('');
      await machine.sh(`echo '${source('/srv/needed')}' > /etc/apt/sources.list.d/needed.list`);
      expect(await apply(filed)).toMatchObject([{ status: 'changed' }]);
      expect(await installed()).toBe('filed 3.0\nfiled-needed 1\n');
      expect(await apply()).toMatchObject([{ status: 'changed' }]);
      expect(await installed()).toBe('');
      await machine.sh('rm /etc/apt/sources.list.d/needed.list; apt-get update -qq');
    });

    test('an agent that is killed or stopped while it reads or installs a file completes the installation', async () => {
      const one = await fromFile('filed', 'filed_1.0.deb');
      const cuts = ['process:before', 'process:after', 'together:before', 'together:after'];
      for (const point of cuts) {
        const { points, reported } = await agent.killedAt(operation('apply', [one]), { point, nth: 1 });
        expect(points.at(-1)).toBe(point);
        expect(reported.results, point).toMatchObject([{ status: 'changed' }]);
        expect(await installed()).toBe('filed 1.0\n');
        expect(await apply()).toMatchObject([{ status: 'changed' }]);
        expect(await installed()).toBe('');
      }
      const { reported } = await agent.interruptedAt(
        operation('apply', [one]),
        { point: 'process:after', nth: 1 },
        'stop',
      );
      expect(reported.results).toMatchObject([{ status: 'changed' }]);
      expect(await apply()).toMatchObject([{ status: 'changed' }]);
      expect(await installed()).toBe('');
      expect(await machine.sh('ls /var/lib/muster-agent/state/contents')).toBe('');
    });

    test('a URL with a secret is not shown', async () => {
      const url = urlOf('gone.deb?token=sesame');
      const secret = { ...of('filed', { url, sha256: '2'.repeat(64) }), sensitive_fields: ['url'] };
      const results = await apply(secret);
      expect(results).toMatchObject([{ status: 'failed', message: expect.stringContaining('from `url`: the server') }]);
      expect(JSON.stringify(results)).not.toContain('sesame');
    });

    test('the documented example installs its package file', async () => {
      const [example] = documented('package-apt', /url: /);
      const body = { ...example?.['package-apt'], url: urlOf('sample-exporter_1.4.2.deb') };
      const sha256 = await sha256On(machine, `${debs}/sample-exporter_1.4.2.deb`);
      expect(await apply(of('sample-exporter', { ...body, sha256 }))).toMatchObject([{ status: 'changed' }]);
      expect(await machine.sh('cat /usr/share/sample-exporter/version')).toBe('1.4.2\n');
      await agent.run(operation('apply', []));
    });
  });
});
