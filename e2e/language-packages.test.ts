import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kinds, type ResourceType } from '@muster/protocol/module';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { operation } from '../agent/src/converge/test/desired.ts';
import { blocksOf } from '../tools/docs/markdown.ts';
import { root } from '../tools/suite/cli.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { languagesRoot, npmRegistry, npmRegistryUp, npmSubjects } from './hosts/subjects/language-packages.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

const open = async () => TestHosts.open({ base: await languagesRoot() });

describeSubjects('packages of languages on a test host', npmSubjects, open);

const reason = noHosts();

/** Returns the resources of the modules in docs/modules.md that declare a kind. */
const documented = (kind: ResourceType): Declared[] =>
  blocksOf(readFileSync(join(root, 'docs/modules.md'), 'utf8'))
    .filter(({ language, source }) => language === 'yaml' && source.includes(`${kind}:`))
    .flatMap(({ source }) => (parse(source) as { resources: { resource: Declared }[] }).resources)
    .flatMap(({ resource }) => (Object.hasOwn(resource, kind) ? [resource] : []));

describe.skipIf(reason !== null)(`packages of npm${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await open();
    machine = await hosts.start('npm');
    await machine.sh(`${npmRegistryUp}echo registry=${npmRegistry} > /root/.npmrc`);
    agent = await DrivenAgent.start(machine);
  }, 600_000);
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

  test('keeps the former version if the new one cannot be installed, and shows the message of npm', async () => {
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

  test('does not run npm as root in a directory of another user', async () => {
    await machine.sh('useradd --create-home eve');
    const before = machine.changes();
    expect(await apply({ 'package-npm': { name: 'tool', prefix: '/home/eve/npm' } })).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/users other than root .*declare its owner as `user`/) },
    ]);
    expect(machine.changes()).toEqual(before);
  });
});
