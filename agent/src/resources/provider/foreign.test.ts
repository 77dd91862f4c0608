import { existsSync } from 'node:fs';
import { kinds, type ResolvedResource, type ResourceType, resourceTypes } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { file, operation, script } from '../../converge/test/desired.ts';
import { useAgent } from '../../converge/test/harness.ts';
import { providerOf } from '../registry.ts';
import { whyNotApplicable } from './foreign.ts';

const h = useAgent();

const bodies: Partial<Record<ResourceType, ResolvedResource['body']>> = {
  'package-brew': { name: 'jq' },
  'package-choco': { name: 'jq' },
  'package-winget': { name: 'jq' },
  'file-windows': { path: 'C:\\x', content: 'x' },
  'directory-windows': { path: 'C:\\x' },
  'user-windows': { name: 'x' },
  'group-windows': { name: 'x' },
  'service-windows': { name: 'x' },
  'service-launchd': { name: 'x' },
};
const foreign = resourceTypes.filter((type) => !kinds[type].platforms.includes('linux'));
const of = (type: ResourceType, body: ResolvedResource['body']): ResolvedResource => ({
  ...file('/'),
  key: `${type}:x`,
  type,
  identity: 'x',
  id: type,
  body,
});

test('refuses kinds for other platforms, and applies the other resources', async () => {
  const desired = Object.entries(bodies).map(([type, body]) => of(type as ResourceType, body));
  expect(Object.keys(bodies)).toEqual(expect.arrayContaining(foreign));
  const rest = file(`${h.root}/f`);
  const planned = await h.agent.run(operation('plan', [...desired, rest]));
  const outcome = await h.agent.run(operation('apply', [...desired, rest]));
  for (const { type } of desired) {
    expect(providerOf(type)).toBeNull();
    const whose = kinds[type].platforms.includes('windows') ? 'Windows' : 'macOS';
    const refused = {
      status: 'failed',
      message: expect.stringMatching(`${type}: it is for ${whose}, and this .* Linux`),
    };
    for (const { results } of [planned, outcome]) expect(results.find(({ id }) => id === type)).toMatchObject(refused);
  }
  expect(outcome.results.at(-1)).toMatchObject({ status: 'changed' });
  expect(existsSync(`${h.root}/f`)).toBe(true);
  expect((await h.agent.run(operation('apply', [rest]))).finished.status).toBe('succeeded');
});

test('reports at plan that no release supports packages of Alpine Linux, and plans the other resources', async () => {
  const planned = await h.agent.run(operation('plan', [of('package-apk', { name: 'nginx' }), file(`${h.root}/f`)]));
  expect(planned.results).toMatchObject([
    { status: 'failed', message: expect.stringMatching(/^no release of the agent supports package-apk yet/) },
    { status: 'would_change' },
  ]);
});

test('reports that an unknown kind is not supported yet', () => {
  expect(whyNotApplicable('nonsense' as ResourceType)).toMatch(/cannot apply nonsense yet/);
});

test.each(['pwsh', 'powershell', 'cmd'] as const)(
  'refuses a %s script with an error that includes the platform and the supported shells',
  async (program) => {
    const outcome = await h.agent.run(
      operation('apply', [script('s', { program, apply: 'exit 0' }), file(`${h.root}/f`)]),
    );
    expect(outcome.results).toMatchObject([
      {
        status: 'failed',
        message: expect.stringMatching(`^${program} scripts .*(Windows|PowerShell), .*only sh and bash`),
      },
      { status: 'changed' },
    ]);
  },
);
