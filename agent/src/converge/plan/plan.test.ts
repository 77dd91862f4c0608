import type { ResolvedResource } from '@muster/protocol/module';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ManagedRecord } from '../../journal/state.ts';
import { directory, file, script } from '../test/desired.ts';
import { satisfied } from './condition.ts';
import { planStep } from './plan.ts';
import { ancestors, managedPaths } from './step-paths.ts';
import { desiredByKey } from './steps.ts';
import { stepsOf } from './steps-of.ts';
import { StepsState, triggersLeft } from './steps-state.ts';

const managed = (resources: ResolvedResource[], before: ManagedRecord['before'] = { was: 'absent' }) =>
  new Map(resources.map((resource, ordinal) => [resource.key, { resource, succeeded: resource, before, ordinal }]));
const none = { read: () => null };
const keys = (steps: ReturnType<typeof stepsOf>) => steps.map(({ kind, resource }) => `${kind} ${resource.identity}`);

describe('steps', () => {
  test('applies the desired resources first, then removes the others in reverse order, except those of kept modules', () => {
    const [a, b, c] = [file('/a'), file('/b'), file('/c', {}, { module: 'kept' })];
    expect(keys(stepsOf([b!], managed([a!, b!, c!]), ['kept']))).toEqual(['apply /b', 'remove /a']);
    expect(keys(stepsOf([], managed([a!, b!, c!]), []))).toEqual(['remove /c', 'remove /b', 'remove /a']);
  });

  test('removes the contents of a directory before the directory, for any order of declaration', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(['/a', '/a/b', '/a/b/c', '/a/b/d', '/e', '/e/f', '/g']), (paths) => {
        const removed = stepsOf([], managed(paths.map((path) => directory(path))), []).map(
          ({ resource }) => resource.identity,
        );
        expect([...removed].sort()).toEqual([...paths].sort());
        for (const [i, path] of removed.entries())
          for (const above of ancestors(path))
            if (paths.includes(above)) expect(removed.indexOf(above)).toBeGreaterThan(i);
      }),
    );
  });

  test('removes unrelated resources in exactly the reverse order', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(['/a', '/b', '/c', '/d', '/e', '/f']), (paths) => {
        const removed = stepsOf([], managed(paths.map((path) => file(path))), []).map(
          ({ resource }) => resource.identity,
        );
        expect(removed).toEqual([...paths].reverse());
      }),
    );
  });
});

describe('decisions', () => {
  const absent = { seen: { found: { type: 'absent' }, ownership: { ownerName: null, groupName: null } } };
  const unknownOwner = {
    seen: { found: { type: 'absent' }, ownership: { ownerName: null, groupName: null, wantedUid: null } },
  };

  async function plan(purpose: 'plan' | 'apply', resources: ResolvedResource[], observations: object[]) {
    const steps = stepsOf(resources, new Map(), []);
    const stepsState = new StepsState(purpose, new Map(), steps);
    const decisions = [];
    for (const step of steps) {
      const observe = () => observations[step.position] as { seen: unknown };
      decisions.push((await planStep(step, observe, stepsState, desiredByKey(steps), none, () => satisfied)).decision);
    }
    return decisions;
  }

  test('expects an earlier step to create a missing user in a plan, but fails in an apply if the user is still missing', async () => {
    const owned = file('/f', { owner: 'deploy' });
    const brings = script('adduser', { apply: 'adduser deploy' });
    expect(await plan('plan', [owned], [unknownOwner])).toMatchObject([
      { verdict: 'fail', message: 'there is no user deploy' },
    ]);
    expect(await plan('plan', [brings, owned], [{ seen: { checkExit: null } }, unknownOwner])).toMatchObject([
      {},
      { verdict: 'act' },
    ]);
    expect(await plan('apply', [brings, owned], [{ seen: { checkExit: null } }, unknownOwner])).toMatchObject([
      {},
      { verdict: 'fail' },
    ]);
    // A step that changes nothing creates no user.
    const done = script('adduser', { apply: 'adduser deploy', check: 'true' });
    expect(await plan('plan', [done, owned], [{ seen: { checkExit: 0 } }, unknownOwner])).toMatchObject([
      { verdict: 'none' },
      { verdict: 'fail' },
    ]);
  });

  test('refuses paths below a file or an absent path', async () => {
    expect(await plan('plan', [file('/a'), file('/a/b')], [absent, absent])).toMatchObject([
      { verdict: 'act' },
      { verdict: 'fail' },
    ]);
    expect(await plan('plan', [file('/a/b'), directory('/a', { ensure: 'absent' })], [absent, absent])).toMatchObject([
      { verdict: 'fail' },
      { verdict: 'none' },
    ]);
  });

  test('skips all direct and indirect dependents of a failure', async () => {
    const [a, b, c, d] = [
      file('/a', { owner: 'nobody-here' }, { id: 'a' }),
      file('/b', {}, { id: 'b', depends_on: ['path:/a'] }),
      file('/c', {}, { id: 'c', depends_on: ['path:/b'] }),
      file('/d', {}, { id: 'd' }),
    ];
    const decisions = await plan('plan', [a!, b!, c!, d!], [unknownOwner, absent, absent, absent]);
    expect(decisions.map(({ verdict }) => verdict)).toEqual(['fail', 'skip', 'skip', 'act']);
    expect(decisions[2]).toMatchObject({ message: 'skipped, because `b` was skipped' });
  });
});

test('keeps due triggers only for resources that failed or were not reached', () => {
  const source = file('/a', {}, { id: 'a' });
  const [ran, failed, skipped, other] = [
    script('ran', { apply: '' }, { rerun_on: [source.key] }),
    script('failed', { apply: '' }, { rerun_on: [source.key] }),
    script('skipped', { apply: '' }, { rerun_on: [source.key] }),
    script('other', { apply: '' }),
  ];
  const steps = stepsOf([source, ran!, failed!, skipped!, other!], new Map(), []);
  const results = (['changed', 'changed', 'failed', 'skipped', 'failed'] as const).map((status) => ({ status }));
  expect(
    triggersLeft(
      steps,
      results,
      new Map([
        ['script:ran', ['old']],
        ['script:gone', ['x']],
      ]),
      [],
      new Map(),
    ),
  ).toEqual([
    ['script:failed', ['a']],
    ['script:skipped', ['a']],
  ]);
  // An unfinished operation keeps all triggers.
  expect(triggersLeft(steps, results, new Map([['script:gone', ['x']]]), null, new Map())).toContainEqual([
    'script:gone',
    ['x'],
  ]);
});

test('lists all files of a repository as managed', () => {
  const repository = {
    ...file('/x'),
    type: 'apt-repository' as const,
    body: {
      name: 'tools',
      uris: ['https://packages.example.com'],
      suites: ['stable'],
      components: ['main'],
      signed_by: '-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nx\n-----END PGP PUBLIC KEY BLOCK-----\n',
    },
  };
  const paths = managedPaths([repository]);
  for (const path of ['/etc/apt/sources.list.d/tools.sources', '/etc/apt/keyrings/tools.asc', '/etc/apt'])
    expect(paths.has(path), path).toBe(true);
});
