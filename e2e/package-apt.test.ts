import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { operation } from '../agent/src/converge/test/desired.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { packageAptSubjects } from './hosts/subjects/package-apt.ts';
import { resolved } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

// In a separate file, so that these slow tests run in parallel with the tests for other kinds.
describeSubjects('packages on a test host', packageAptSubjects, () => TestHosts.open());

const reason = noHosts();

describe.skipIf(reason !== null)(`packages by apt${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await TestHosts.open();
    machine = await hosts.start('apt');
    agent = await DrivenAgent.start(machine);
  }, 600_000);
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

  test('a package stays on hold if its upgrade fails, and a package that others hold is not changed', async () => {
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
});
