import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kinds, type ResourceBodies, type ResourceType } from '@muster/protocol/module';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { operation } from '../agent/src/converge/test/desired.ts';
import { isSampling, sampled, seededRandom } from '../lib/test/sampled.ts';
import { blocksOf } from '../tools/docs/markdown.ts';
import { root } from '../tools/suite/cli.ts';
import { expectModuleApplied } from './hosts/documentation/documented-module.ts';
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

const shopRepository = '/var/cache/shop.git';
/** Shell text that creates a git repository with the lock file of npm and the requirements of pip. */
const shopRepositoryUp = `git init --quiet ${shopRepository}
cd ${shopRepository}
echo '{ "name": "shop", "version": "1.4.2", "dependencies": { "part": "^1.0.0" } }' > package.json
npm install --silent --no-audit --no-fund --package-lock-only --cache=/tmp/npm
printf 'tool==1.0.0\\npart==1.0.0\\n' > requirements.txt
git add .
git -c user.name=a -c user.email=a@example.com commit --quiet --message one
git tag v1.4.2
`;

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
    const packages = documented('package-pip').filter((declared) => declared['package-pip']?.requirements == null);
    for (const declared of [example, ...packages]) {
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

  /** Declares the packages of a requirements file, which it writes. */
  const requirements = async (...lines: string[]): Promise<Declared> => {
    await machine.sh(`cat > /srv/requirements.txt << 'END'\n${lines.join('\n')}\nEND`);
    return fromFile;
  };
  const fromFile: Declared = {
    'package-pip': { requirements: '/srv/requirements.txt', virtualenv: '/opt/venv', index_url: pipIndex },
  };
  const freeze = async () =>
    (await inVenv('pip list --format=freeze')).split('\n').filter((line) => !/^(pip|setuptools|wheel)=|^$/.test(line));

  testSome('applies and removes the documented requirements file', async () => {
    const before = changes();
    const all = blocksOf(readFileSync(join(root, 'docs/modules.md'), 'utf8'))
      .filter(({ language, source }) => language === 'yaml' && source.includes('requirements: /'))
      .flatMap(({ source }) => (parse(source) as { resources: { resource: Declared }[] }).resources)
      .map(
        ({ resource: { 'package-pip': body, ...rest } }): Declared =>
          body === undefined ? rest : { 'package-pip': { ...body, index_url: pipIndex } },
      );
    expect(all.length).toBeGreaterThan(1);
    expect((await apply(...all)).map(({ status }) => status)).toEqual(all.map(() => 'changed'));
    expect((await apply(...all)).map(({ status }) => status)).toEqual(all.map(() => 'unchanged'));
    await apply();
    expect(changes()).toEqual(before);
  });

  testSome('plans which requirements are not satisfied, and restores former versions and dependencies', async () => {
    await machine.sh('python3 -m venv /opt/venv');
    await byHand('tool==1.0.0', 'httpie');
    const before = changes();
    const file = await requirements('tool>=2', 'httpie', 'other', 'nowhere; sys_platform == "win32"');
    expect((await agent.run(operation('plan', [resolved(file)]))).results).toMatchObject([
      {
        action: 'update',
        changes: [{ field: 'requirements', from: 'tool 1.0.0, other absent', to: 'tool>=2, other' }],
      },
    ]);
    expect(await apply(file)).toMatchObject([{ status: 'changed' }]);
    expect(await apply(file)).toMatchObject([{ status: 'unchanged' }]);
    expect(await freeze()).toEqual(['httpie==3.2.2', 'other==1.0.0', 'part==1.0.0', 'tool==2.0.0']);
    // Without the list of its files, pip neither replaces nor uninstalls a package.
    await machine.sh(`rm ${site}/tool-2.0.0.dist-info/RECORD ${site}/other-1.0.0.dist-info/RECORD`);
    await apply();
    await machine.sh('rm /srv/requirements.txt');
    expect(await freeze()).toEqual(['httpie==3.2.2', 'part==1.0.0', 'tool==1.0.0']);
    expect(changes()).toEqual(before);
    await machine.sh('rm -r /opt/venv');
  });

  testSome('removes dependencies of the declared version after a removal that was killed', async () => {
    await machine.sh('python3 -m venv /opt/venv');
    await byHand('tool==2.0.0');
    const file = await requirements('tool<2');
    const before = changes();
    // The second agent is killed before the journal has the result.
    for (const declared of [file, pip({ version: '1.1.0' })])
      for (const at of [0, { point: 'resource:after', nth: 1 }]) {
        await agent.killedAt(operation('apply', [resolved(declared)]), at);
        expect(await freeze()).toEqual(['part==1.0.0', 'tool==1.1.0']);
        // A removal that is killed at this point has restored the former version, which needs no other package.
        await byHand('tool==2.0.0');
        await apply();
        expect(changes()).toEqual(before);
      }
    await machine.sh('rm -r /opt/venv /srv/requirements.txt');
  });

  testSome('restores a dependency without marking it as requested', async () => {
    await machine.sh('python3 -m venv /opt/venv; echo part==0.9.0 > /srv/constraints.txt');
    await byHand('httpie', '-c', '/srv/constraints.txt');
    const isRequested = (version: string) =>
      machine.sh(`ls ${site}/part-${version}.dist-info | grep -c REQUESTED || true`);
    expect(await isRequested('0.9.0')).toBe('0\n');
    await apply(await requirements('part>=1'));
    expect(await isRequested('1.0.0')).toBe('1\n');
    await apply();
    expect(await freeze()).toEqual(['httpie==3.2.2', 'part==0.9.0']);
    expect(await isRequested('0.9.0')).toBe('0\n');
    await machine.sh('rm -r /opt/venv /srv/requirements.txt /srv/constraints.txt');
  });

  testSome('installs the file of an earlier resource, and only changes what its next content changes', async () => {
    const before = changes();
    const both = (content: string): Declared[] => [
      { 'file-unix': { path: '/srv/requirements.txt', content } },
      fromFile,
    ];
    expect(await apply(...both('-r other.txt\n'))).toMatchObject([{ status: 'changed' }, { status: 'failed' }]);
    const first = both('tool==1.0.0\nother\n');
    const planned = first.map((one, i) => ({ ...resolved(one), id: `r${i}` }));
    expect((await agent.run(operation('plan', planned))).results).toMatchObject([
      { action: 'update' },
      { action: 'create', changes: [{ to: 'the later content of /srv/requirements.txt' }] },
    ]);
    expect(await apply(...first)).toMatchObject([{ status: 'changed' }, { status: 'changed' }]);
    expect(await apply(...both('tool==2.0.0\nother\n'))).toMatchObject([
      { status: 'changed' },
      { status: 'changed', changes: [{ field: 'requirements', from: 'tool 1.0.0', to: 'tool==2.0.0' }] },
    ]);
    expect(await apply(...both('tool==2.0.0\nother\n'))).toMatchObject([
      { status: 'unchanged' },
      { status: 'unchanged' },
    ]);
    await apply();
    expect(changes()).toEqual(before);
  });

  testSome('keeps or removes a package as the later requirements file of the operation lists it', async () => {
    const before = changes();
    const other = pip({ name: 'other' });
    const file = (content: string): Declared => ({ 'file-unix': { path: '/srv/requirements.txt', content } });
    const removal = async (kind: 'plan' | 'apply', ...declared: Declared[]) =>
      (await agent.run(operation(kind, declared.map(resolved)))).results.at(-1);
    const later = {
      status: 'would_change',
      message: expect.stringContaining('unless the later content of /srv/requirements.txt lists it'),
    };
    await apply(other);
    // At the time of the plan, there is no file.
    const listed = [file('tool==1.0.0\nother\n'), fromFile];
    expect(await removal('plan', ...listed)).toMatchObject(later);
    expect(await removal('apply', ...listed)).toMatchObject({ message: 'kept: a requirements file lists it' });
    expect(await freeze()).toContain('other==1.0.0');
    await apply();
    await machine.sh('rm -rf /opt/venv');
    await apply(other, ...listed);
    const unlisted = [file('tool==1.0.0\n'), fromFile];
    expect(await removal('plan', ...unlisted)).toMatchObject(later);
    expect(await removal('apply', ...unlisted)).toMatchObject({ status: 'changed', message: 'removes the package' });
    expect(await freeze()).not.toContain('other==1.0.0');
    await apply();
    await machine.sh('rm -rf /opt/venv');
    expect(changes()).toEqual(before);
  });

  testSome('shares packages with other resources of the environment', async () => {
    const before = changes();
    const other = pip({ name: 'other' });
    const removalOf = (results: Awaited<ReturnType<typeof apply>>) => results.find(({ action }) => action === 'remove');
    const file = await requirements('tool==1.0.0', 'part');
    expect(await apply(other, file)).toMatchObject([{ status: 'changed' }, { status: 'changed' }]);
    expect(removalOf(await apply(other))).toMatchObject({
      status: 'changed',
      message: 'restores the original state; kept: other packages may need part',
    });
    expect(await freeze()).toEqual(['other==1.0.0', 'part==1.0.0']);
    await apply(other, await requirements('tool==1.0.0', 'part', 'other'));
    await requirements('tool==1.0.0', '-r part.txt');
    // The packages in a file that cannot be read are unknown, so nothing is removed.
    const message = expect.stringContaining('/srv/requirements.txt, line 2: -r is refused');
    expect(await apply(fromFile)).toMatchObject([
      { status: 'failed', message },
      { status: 'failed', message },
    ]);
    await requirements('tool==1.0.0', 'part', 'other');
    await apply(fromFile);
    expect(await freeze()).toEqual(['other==1.0.0', 'part==1.0.0', 'tool==1.0.0']);
    await apply();
    expect(await freeze()).toEqual(['other==1.0.0', 'part==1.0.0']);
    await machine.sh('rm -r /opt/venv /srv/requirements.txt');
    expect(changes()).toEqual(before);
  });

  testSome('installs only wheels with a declared hash', async () => {
    const before = changes();
    const hashOf = async (name: string) =>
      (
        await machine.sh(
          `python3 -c "import hashlib, urllib.request as r; print(hashlib.sha256(r.urlopen('http://127.0.0.1:4874/files/${name}').read()).hexdigest())"`,
        )
      ).trim();
    const tool = await hashOf('tool-1.0.0-py3-none-any.whl');
    const part = await hashOf('part-1.0.0-py3-none-any.whl');
    const wrong = '0'.repeat(64);
    const file = (hash: string) =>
      requirements(
        '--require-hashes',
        `tool==1.0.0 \\`,
        `    --hash=sha256:${hash}`,
        `part==1.0.0 --hash=sha256:${part}`,
      );
    expect(await apply(await file(wrong))).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/DO NOT MATCH THE HASHES/) },
    ]);
    expect(await apply(await file(tool))).toMatchObject([{ status: 'changed' }]);
    expect(await apply(await file(tool))).toMatchObject([{ status: 'unchanged' }]);
    await machine.sh(`rm ${site}/tool.py`);
    expect(await apply(await file(tool))).toMatchObject([{ status: 'changed', changes: [{ field: 'files' }] }]);
    expect(await apply(await requirements('--require-hashes', 'other==1.0.0'))).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/Hashes are required/) },
    ]);
    await apply();
    await machine.sh('rm /srv/requirements.txt');
    expect(changes()).toEqual(before);
  });

  testSome('refuses lines with options and URLs, and a file that others can write', async () => {
    for (const [line, message] of [
      ['-r /etc/shadow', /requirements\.txt, line 2: -r is refused/],
      ['--index-url http://u:p4ss@127.0.0.1:4874/simple/', /line 2: --index-url is refused: declare `index_url`/],
      ['http://u:p4ss@127.0.0.1:4874/files/tool.whl', /line 2: URLs and paths are refused/],
    ] as const) {
      const results = await apply(await requirements('tool', line));
      expect(results, line).toMatchObject([{ status: 'failed', message: expect.stringMatching(message) }]);
      expect(JSON.stringify(results)).not.toContain('p4ss');
    }
    await requirements('tool');
    await machine.sh('chmod 666 /srv/requirements.txt');
    const only = { status: 'failed', message: expect.stringMatching(/only root can write, or declare `user`/) };
    expect(await apply(fromFile)).toMatchObject([only]);
    await machine.sh('for i in ada eve; do id $i || useradd --create-home $i; done');
    await machine.sh('chmod 644 /srv/requirements.txt; chown eve /srv/requirements.txt');
    const ofAda: Declared = {
      'package-pip': { ...fromFile['package-pip'], virtualenv: '/home/ada/venv', user: 'ada' } as never,
    };
    expect(await apply(ofAda)).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/make it a file that only root and ada can write/) },
    ]);
    expect(await machine.sh('ls /home/ada')).toBe('');
    await machine.sh('rm /srv/requirements.txt; ln -s /etc/shadow /srv/requirements.txt');
    expect(await apply(fromFile)).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/is a symlink, not a requirements file/) },
    ]);
    await machine.sh('rm /srv/requirements.txt');
    expect(await apply(fromFile)).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/there is no requirements file \/srv\/requirements\.txt/) },
    ]);
    expect(await machine.sh('ls /opt')).toBe('');
  });
});

describe.skipIf(reason !== null)(`packages of npm and pip${reason === null ? '' : ` (${reason})`}`, () => {
  test('the idioms of the documentation are planned as they are applied, and removed', async () => {
    const hosts = await open();
    try {
      const machine = await hosts.start('idiom-languages');
      await machine.sh(`${npmRegistryUp}echo registry=${npmRegistry} > /root/.npmrc
${pipIndexUp}${shopRepositoryUp}`);
      const agent = await DrivenAgent.start(machine);
      const changes = () => machine.changes([...volatilePaths, '/root/.npm']);
      const before = changes();
      const replacements = {
        'https://git.example.com/shop.git': shopRepository,
        'virtualenv: /opt/httpie': `virtualenv: /opt/httpie, index_url: "${pipIndex}"`,
        'virtualenv: /opt/shop': `virtualenv: /opt/shop, index_url: "${pipIndex}"`,
      };
      await expectModuleApplied(agent, 'idiom-languages', { replacements, present: ['npm', 'python3-venv'] });
      expect(changes()).toEqual(before);
    } finally {
      await hosts.end();
    }
  });
});
