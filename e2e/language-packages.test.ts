import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kinds, type ResourceBodies, type ResourceType } from '@muster/protocol/module';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { operation } from '../agent/src/converge/test/desired.ts';
import { isSampling, sampled, seededRandom } from '../lib/test/sampled.ts';
import { blocksOf } from '../tools/docs/markdown.ts';
import { root } from '../tools/suite/cli.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { volatilePaths } from './hosts/root-difference.ts';
import {
  languagesRoot,
  npmRegistry,
  npmRegistryUp,
  npmSubjects,
  pipIndex,
  pipIndexUp,
  pipSubjects,
} from './hosts/subjects/language-packages.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';
import { someTests } from './some-tests.ts';

const open = async () => TestHosts.open({ base: await languagesRoot() });

/** `npm test` tests the packages of one language, because each language takes minutes. */
const languages = sampled(['npm', 'pip'] as const, 1, !isSampling(), seededRandom('language-packages'));
const subjects = { npm: npmSubjects, pip: pipSubjects };
describeSubjects(
  'packages of languages on a test host',
  languages.flatMap((language) => subjects[language]),
  open,
);

const reason = noHosts();
const describePackages = (language: 'npm' | 'pip', define: () => void) => {
  if (languages.includes(language))
    describe.skipIf(reason !== null)(`packages of ${language}${reason === null ? '' : ` (${reason})`}`, define);
};

/** Returns the resources of the modules in docs/modules.md that declare a kind. */
const documented = (kind: ResourceType): Declared[] =>
  blocksOf(readFileSync(join(root, 'docs/modules.md'), 'utf8'))
    .filter(({ language, source }) => language === 'yaml' && source.includes(`${kind}:`))
    .flatMap(({ source }) => (parse(source) as { resources: { resource: Declared }[] }).resources)
    .flatMap(({ resource }) => (Object.hasOwn(resource, kind) ? [resource] : []));

describePackages('npm', () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await open();
    machine = await hosts.start('npm');
    await machine.sh(`${npmRegistryUp}echo registry=${npmRegistry} > /root/.npmrc`);
    agent = await DrivenAgent.start(machine);
  });
  afterAll(() => hosts?.end());

  const apply = async (...declared: Declared[]) =>
    (
      await agent.run(
        operation(
          'apply',
          declared.map((one, i) => ({ ...resolved(one), id: `r${i}` })),
        ),
      )
    ).results;

  test('applies and removes the documented examples', async () => {
    const before = machine.changes();
    const example: Declared = { 'package-npm': parse(kinds['package-npm'].example) };
    for (const declared of [example, ...documented('package-npm')]) {
      expect(await apply(declared), JSON.stringify(declared)).toMatchObject([{ status: 'changed' }]);
      expect(await apply(declared)).toMatchObject([{ status: 'unchanged' }]);
      await apply();
      expect(machine.changes()).toEqual(before);
    }
  });

  test("keeps the previous version if the new version cannot be installed, and shows npm's error message", async () => {
    const before = machine.changes();
    const failing = (version: string): Declared => ({ 'package-npm': { name: 'failing', version } });
    expect(await apply(failing('1.0.0'))).toMatchObject([{ status: 'changed' }]);
    const installed = machine.changes();
    expect(await apply(failing('2.0.0'))).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/npm cannot install failing@2\.0\.0: .*exit 7/) },
    ]);
    expect(machine.changes()).toEqual(installed);
    expect(await apply(failing('3.0.0'))).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/No matching version found for failing@3\.0\.0/) },
    ]);
    expect(machine.changes()).toEqual(installed);
    await apply();
    expect(machine.changes()).toEqual(before);
  });

  test("does not run npm as root in another user's directory", async () => {
    await machine.sh('useradd --create-home eve');
    const before = machine.changes();
    expect(await apply({ 'package-npm': { name: 'tool', prefix: '/home/eve/npm' } })).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/users other than root .*declare its owner as `user`/) },
    ]);
    expect(machine.changes()).toEqual(before);
  });
});

const secretIndex = 'http://ada-u5er:pa55-w0rd@127.0.0.1:4874/private/t0ken-in-path/simple/';

describePackages('pip', () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await open();
    machine = await hosts.start('pip');
    await machine.sh(pipIndexUp);
    agent = await DrivenAgent.start(machine);
  });
  afterAll(() => hosts?.end());

  /** These tests are independent, so `npm test` runs only some of them. */
  const testSome = someTests(test, 2, 'packages of pip');

  const volatile = [...volatilePaths, '/opt/venv/lib/python3.11/site-packages/__pycache__'];
  const changes = () => machine.changes(volatile);
  const apply = async (...declared: Declared[]) =>
    (
      await agent.run(
        operation(
          'apply',
          declared.map((one, i) => ({ ...resolved(one), id: `r${i}` })),
        ),
      )
    ).results;
  const pip = (fields: Partial<ResourceBodies['package-pip']>): Declared => ({
    'package-pip': { name: 'tool', virtualenv: '/opt/venv', index_url: pipIndex, ...fields },
  });
  const inVenv = (command: string) => machine.sh(`/opt/venv/bin/${command}`);
  const byHand = (...packages: string[]) =>
    inVenv(`pip install -q --no-cache-dir --index-url ${pipIndex} ${packages.join(' ')}`);
  const site = '/opt/venv/lib/python3.11/site-packages';

  testSome('applies and removes the documented examples', async () => {
    const before = changes();
    const example: Declared = { 'package-pip': parse(kinds['package-pip'].example) };
    for (const declared of [example, ...documented('package-pip')]) {
      const local = pip(declared['package-pip'] ?? {});
      expect(await apply(local), JSON.stringify(declared)).toMatchObject([{ status: 'changed' }]);
      expect(await apply(local)).toMatchObject([{ status: 'unchanged' }]);
      await apply();
      expect(changes()).toEqual(before);
    }
  });

  testSome('keeps the former version if the new one cannot be installed, and shows the message of pip', async () => {
    const before = changes();
    expect(await apply(pip({ name: 'failing', version: '3' }))).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/No matching distribution found for failing==3/) },
    ]);
    expect(changes()).toEqual(before);
    expect(await apply(pip({ name: 'failing', version: '1.0.0' }))).toMatchObject([{ status: 'changed' }]);
    const installed = changes();
    expect(await apply(pip({ name: 'failing', version: '2.0.0' }))).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/pip cannot install failing==2\.0\.0: .*nowhere/) },
    ]);
    expect(changes()).toEqual(installed);
    await apply();
    expect(changes()).toEqual(before);
  });

  testSome('shows no part of the URL of an index in processes, messages, or results', async () => {
    const installed = await apply(pip({ index_url: secretIndex }));
    expect(installed).toMatchObject([{ status: 'changed' }]);
    const failed = await apply(pip({ index_url: secretIndex }), pip({ name: 'nowhere', index_url: secretIndex }));
    expect(failed).toMatchObject([
      { status: 'unchanged' },
      { status: 'failed', message: expect.stringContaining('No matching distribution found for nowhere') },
    ]);
    const refused = await apply(pip({ name: 'other', index_url: secretIndex.replace('w0rd', 'other-w0rd') }));
    expect(refused.filter(({ status }) => status === 'failed')).toHaveLength(1);
    const drift = (await agent.run(operation('drift'))).results;
    expect(JSON.stringify([installed, failed, refused, drift])).not.toMatch(/u5er|w0rd|t0ken/);
    expect(await machine.sh('grep -c simple/tool /tmp/pip-private; cat /tmp/pip-leaks 2>&1 || true')).toMatch(
      /^[1-9]\d*\ncat: .*No such file/,
    );
    await apply();
  });

  testSome(
    'removes dependencies only if nothing else needs them, and the environment only if nothing else is in it',
    async () => {
      const before = changes();
      await apply(pip({}), pip({ name: 'other' }));
      await apply(pip({ name: 'other' }));
      expect(await inVenv('pip list --format=freeze')).toMatch(/other==1\.0\.0[\s\S]*part==1\.0\.0/);
      await machine.sh('echo mine > /opt/venv/notes.txt');
      await apply();
      expect(await inVenv('pip list --format=freeze')).not.toMatch(/other|part/);
      expect(await machine.sh('cat /opt/venv/notes.txt')).toBe('mine\n');
      await machine.sh('rm -r /opt/venv');
      expect(changes()).toEqual(before);
    },
  );

  testSome('keeps a package that another one needs, and removes it with that one', async () => {
    const before = changes();
    const [part, tool] = [pip({ name: 'part', version: '1.0.0' }), pip({ version: '1.0.0' })];
    await apply(tool, part);
    await apply();
    expect(changes()).toEqual(before);
    await apply(tool);
    await inVenv('pip uninstall -q --yes part');
    await apply(tool, part);
    const results = await apply(tool);
    expect(results.find(({ action }) => action === 'remove')).toMatchObject({
      status: 'changed',
      changes: [{ field: 'requested' }],
      message: 'kept: tool may need it',
    });
    expect(await inVenv('pip list --format=freeze')).toMatch(/part==1/);
    await apply();
    expect(changes()).toEqual(before);
  });

  testSome('keeps packages that others installed', async () => {
    await apply(pip({ version: '1.0.0' }));
    await byHand('other', 'httpie');
    await apply();
    expect(await inVenv('pip list --format=freeze')).toMatch(/httpie==3\.2\.2[\s\S]*other==1\.0\.0[\s\S]*part==1/);
    await machine.sh('rm -r /opt/venv');
  });

  testSome('removes dependencies of the declared version after a removal that was killed', async () => {
    await machine.sh('python3 -m venv /opt/venv');
    await byHand('tool==2.0.0');
    const before = changes();
    // The second agent is killed before the journal has the result.
    for (const at of [0, { point: 'resource:after', nth: 1 }]) {
      await agent.killedAt(operation('apply', [resolved(pip({ version: '1.1.0' }))]), at);
      expect(await inVenv('pip list --format=freeze')).toMatch(/part==1\.0\.0[\s\S]*tool==1\.1\.0/);
      // A removal that is killed at this point has restored the former version, which needs no other package.
      await byHand('tool==2.0.0');
      await apply();
      expect(changes()).toEqual(before);
    }
    await machine.sh('rm -r /opt/venv');
  });

  testSome('repairs a package without files, or without the list of its files', async () => {
    await apply(pip({ version: '1.0.0' }));
    const installed = changes();
    for (const damage of [
      `rm ${site}/tool.py`,
      `rm ${site}/tool-1.0.0.dist-info/RECORD`,
      'rm /opt/venv/bin/tool-old',
    ]) {
      await machine.sh(damage);
      expect(await apply(pip({ version: '1.0.0' })), damage).toMatchObject([
        { status: 'changed', changes: [{ field: 'files' }] },
      ]);
      expect(changes(), damage).toEqual(installed);
    }
    await machine.sh(`rm ${site}/tool-1.0.0.dist-info/RECORD`);
    await apply();
    expect(await machine.sh('ls -d /opt/venv || true')).toBe('');
  });

  testSome('refuses editable and legacy installations', async () => {
    await machine.sh('python3 -m venv /opt/venv');
    for (const entry of ['tool.egg-link', 'tool-1.0-py3.11.egg-info']) {
      await machine.sh(`touch ${site}/${entry}`);
      expect(await apply(pip({ version: '1.0.0' }))).toMatchObject([
        { status: 'failed', message: expect.stringContaining('which pip cannot replace safely: uninstall it first') },
      ]);
      await machine.sh(`rm ${site}/${entry}`);
    }
    await machine.sh('rm -r /opt/venv');
  });

  testSome('does not run pip as root where other users can write', async () => {
    await machine.sh('id eve || useradd --create-home eve; python3 -m venv /opt/venv');
    const before = changes();
    const message = expect.stringMatching(/users other than root|only root can write/);
    for (const [harm, heal] of [
      ['chown eve /opt/venv', 'chown root /opt/venv'],
      ['chown eve /opt/venv/bin', 'chown root /opt/venv/bin'],
      ['chmod o+w /opt/venv/lib/python3.11', 'chmod o-w /opt/venv/lib/python3.11'],
      [`chown eve ${site}`, `chown root ${site}`],
      [`chown eve ${site}/pip`, `chown root ${site}/pip`],
      ['chmod g+w /opt/venv/pyvenv.cfg', 'chmod g-w /opt/venv/pyvenv.cfg'],
      [`echo /home/eve > ${site}/x.pth`, `rm ${site}/x.pth`],
      [`ln -s /home/eve ${site}/x`, `rm ${site}/x`],
      [
        'cp /usr/bin/python3.11 /home/eve/python; ln -sfn /home/eve/python /opt/venv/bin/python3',
        'ln -sfn /usr/bin/python3 /opt/venv/bin/python3; rm /home/eve/python',
      ],
    ] as const) {
      await machine.sh(harm);
      for (const user of [{}, { user: 'root' }])
        expect(await apply(pip(user)), harm).toMatchObject([{ status: 'failed', message }]);
      await machine.sh(heal);
      expect(changes(), harm).toEqual(before);
    }
    await machine.sh('rm -r /opt/venv');
    expect(await apply(pip({ virtualenv: '/home/eve/venv' }))).toMatchObject([{ status: 'failed', message }]);
    expect(await machine.sh('ls /home/eve')).toBe('');
  });
});
