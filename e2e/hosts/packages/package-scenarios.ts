import type { ResolvedResource } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import type { Reported } from '../../../agent/src/converge/test/agent.ts';
import { operation } from '../../../agent/src/converge/test/desired.ts';
import { documentedExamples } from './documented-examples.ts';
import { ends, messageOf, type PackageAgent } from './package-agent.ts';

/** What every package manager must do. */

/**
 * Registers the first tests of a package manager.
 * @param failing packages that cannot be installed, each with a part of the reason
 * @param brought the packages that come with `grumbles`
 */
export function testInstallations(
  packages: () => PackageAgent,
  { failing, grumbles, brought }: { failing: Record<string, string>; grumbles: string; brought: string[] },
): void {
  test('an apply reports only packages that cannot be installed as failed, with the reason', async () => {
    const missing = {
      ...failing,
      absent: 'no repository of this machine offers a package absent',
      webserver: 'declare a package that provides it: web',
    };
    const reported = await packages().apply('other', ...Object.keys(missing), 'grumbles');
    expect(ends(reported)).toEqual({
      ...{ other: 'changed', grumbles: 'changed' },
      ...Object.fromEntries(Object.keys(missing).map((name) => [name, 'failed'])),
    });
    for (const [name, reason] of Object.entries(missing)) expect(messageOf(reported, name)).toContain(reason);
    expect(messageOf(reported, 'grumbles')).toContain(`installed, but ${grumbles}`);
    expect(await packages().names()).toEqual(['grumbles', 'lib', 'other', ...brought]);
  });

  test('removing a package also removes its unneeded dependencies, but no packages that others need', async () => {
    const { machine, manager } = packages();
    await machine.sh(`${manager.install} needs`);
    const reported = await packages().apply('grumbles');
    expect(ends(reported)).toEqual({ other: 'changed', grumbles: 'unchanged' });
    expect(await packages().names()).toEqual(['grumbles', 'lib', 'needs', ...brought]);
    const refused = await packages().apply('grumbles', ['lib', { ensure: 'absent' }]);
    expect(ends(refused)).toEqual({ grumbles: 'unchanged', lib: 'failed' });
    expect(messageOf(refused, 'lib')).toContain('other packages depend on it and would be removed too: needs');
    await packages().remove('needs');
    await packages().apply();
    // The package existed before it was declared absent, so removing the declaration restores it.
    expect(await packages().names()).toEqual(['lib']);
    await packages().remove('lib');
  });
}

/** Expects that an installation waits for a user who holds the lock. */
export async function expectWait(packages: PackageAgent): Promise<void> {
  await packages.machine.sh(packages.holdLock());
  await packages.replace(packages.meetLock);
  expect(ends(await packages.apply('web'))).toEqual({ web: 'changed' });
  expect(await packages.locksMet()).toBe(1);
  await packages.restorePrograms();
  await packages.apply();
  await packages.remove('slow');
}

/** Expects that a removal of `lib` was refused, because a user had installed `needs`, and completes the removal. */
export async function expectLibKept(packages: PackageAgent, reported: Reported): Promise<void> {
  expect(reported.results).toMatchObject([
    {
      identity: 'lib',
      status: 'failed',
      message: expect.stringContaining('other packages depend on it and would be removed too: needs'),
    },
  ]);
  expect(await packages.names()).toEqual(expect.arrayContaining(['lib', 'needs']));
  await packages.remove('needs');
  await packages.restorePrograms();
  expect(ends(await packages.apply())).toEqual({ lib: 'changed' });
}

/** Expects that the examples of the documentation, which declare nginx, are applied as planned, and removed. */
export async function expectExamplesApplied(packages: PackageAgent): Promise<void> {
  const { agent, manager } = packages;
  const examples = documentedExamples(manager.kind);
  expect(examples.length).toBeGreaterThan(1);
  const before = await packages.installed();
  for (const resource of examples) {
    const order = (way: 'plan' | 'apply') => agent.run(operation(way, [resource]));
    const planned = await order('plan');
    const applied = await order('apply');
    expect(applied.results).toMatchObject([{ status: 'changed' }]);
    expect(planned.results).toMatchObject([{ status: 'would_change', changes: applied.results[0]?.changes }]);
    expect(ends(await order('apply'))).toEqual({ nginx: 'unchanged' });
    const added = (await packages.installed()).filter((line) => !before.includes(line));
    expect(added).toEqual([expect.stringContaining('nginx ')]);
    await packages.apply();
    expect(await packages.installed()).toEqual(before);
  }
}

/** Expects that a plan and an apply use a repository with `bonus` that an earlier resource of the operation adds. */
export async function expectRepositoryUsed(packages: PackageAgent, repository: ResolvedResource): Promise<void> {
  const statuses = ({ results }: Reported) => results.map(({ status }) => status);
  await packages.apply('web');
  // The first package makes the agent read the offers before the repository exists.
  const [web, bonus] = [packages.of(['web', { version: 'latest' }]), packages.of(['bonus', { hold: true }])];
  const resources = [...web, repository, ...bonus];
  const order = (way: 'plan' | 'apply') => packages.agent.run(operation(way, resources));
  const planned = await order('plan');
  expect(statuses(planned)).toEqual(['unchanged', 'would_change', 'would_change']);
  expect(messageOf(planned, 'bonus')).toMatch(
    /^will be available after .*; now no repository of this machine offers a package bonus/,
  );
  expect(statuses(await order('apply'))).toEqual(['unchanged', 'changed', 'changed']);
  expect(statuses(await order('apply'))).toEqual(resources.map(() => 'unchanged'));
  expect(statuses(await packages.apply())).toEqual(resources.map(() => 'changed'));
}
